// API tokens: made, changed, given another key, and revoked.

import { post, type Of } from "../core/client";
import { MODULES } from "../core/modules";
import { notify } from "../core/notices";
import { go } from "../core/router";
import { administers } from "../core/session";
import type { NewToken, Token } from "../core/shapes";
import { list, say, type Text } from "../core/text";
import { words } from "../core/words";
import { resource } from "../resource/types";
import { confirm } from "../ui/dialog";
import { Moment } from "../ui/moment";
import { Button, Note } from "../ui/parts";
import { reveal } from "../ui/reveal";
import { optionsOf, State } from "../ui/states";

const keyWords = {
  title: ["Save this key", "Guarde esta chave", "Guarde esta clave"],
  text: ["Copy it now: it won't be shown again.", "Copie agora: ela não será mostrada de novo.", "Cópiela ahora: no se volverá a mostrar."],
  key: ["Key", "Chave", "Clave"],
  prefix: ["Starts with", "Começa com", "Empieza por"],
  rotate: ["Rotate key", "Trocar chave", "Rotar clave"],
  curl: ["Try it", "Testar", "Probar"],
} as const satisfies Record<string, Text>;

/** A call that the token may make. */
function tryIt({ token, key }: NewToken): string {
  const paths: Record<string, string> = { wrapupTypes: "wrapup-types", quickMessages: "quick-messages", customFields: "custom-fields", crm: "crm/boards", reports: "dashboards/service", webchat: "channels", messages: "messages" };
  const module = Object.keys(token.permissions).find((name) => name !== "webchat" && token.permissions[name]?.includes("GET")) ?? "tags";
  return `curl -H "Authorization: Bearer ${key}" "${location.origin}/api/v1/${paths[module] ?? module}"`;
}

const showKey = (made: NewToken, then: () => void) =>
  reveal({
    title: say(keyWords.title),
    text: <p>{say(keyWords.text)}</p>,
    items: [
      { label: say(keyWords.key), value: made.key },
      ...(made.key === null ? [] : [{ label: say(keyWords.curl), value: tryIt(made), isLong: true }]),
    ],
    then,
  });

export const tokens = resource<Token, Of<"TokenCreate">>({
  path: "tokens",
  module: "tokens",
  isFor: administers,
  words: {
    many: ["API tokens", "Tokens da API", "Tokens de la API"],
    make: ["New token", "Novo token", "Nuevo token"],
    lead: ["Keys for other systems to use the API, each with its own permissions.", "Chaves para outros sistemas usarem a API, cada uma com suas permissões.", "Claves para que otros sistemas usen la API, cada una con sus permisos."],
    empty: ["Create a token for your first integration.", "Crie um token para sua primeira integração.", "Cree un token para su primera integración."],
    goesWith: ["", "", ""],
  },
  nameOf: (token) => token.name,
  cannot: ["delete"],
  columns: [
    { label: words.name, show: (token) => token.name },
    { label: keyWords.prefix, show: (token) => <code>{token.prefix}…</code> },
    { label: words.state, show: (token) => <State is={token.status} /> },
    { label: ["Expires", "Expira", "Caduca"], show: (token) => <Moment at={token.expiresAt} none={say(words.never)} /> },
    { label: ["IP addresses", "Endereços IP", "Direcciones IP"], show: (token) => (token.allowedIps.length ? <span class="clamp">{token.allowedIps.join(", ")}</span> : say(words.any)) },
    { label: ["Last used", "Último uso", "Último uso"], show: (token) => <Moment at={token.lastUsedAt} none={say(words.never)} /> },
  ],
  filters: [
    {
      name: "status",
      kind: "choice",
      label: words.state,
      options: optionsOf("active", "revoked", "expired"),
    },
  ],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true, hint: ["Name the system that uses it. Its actions appear under this name.", "Nome do sistema que o usa. As ações dele aparecem com este nome.", "Nombre del sistema que lo usa. Sus acciones aparecen con este nombre."] },
    { name: "expiresAt", kind: "moment", label: ["Expires", "Expira", "Caduca"], hint: ["It stops working at this time, without warning. Leave empty for no expiration.", "Deixa de funcionar neste horário, sem aviso. Deixe vazio para não expirar.", "Deja de funcionar en este momento, sin aviso. Déjelo vacío para que no caduque."] },
    { name: "allowedIps", kind: "lines", label: ["Allowed IP addresses", "Endereços IP permitidos", "Direcciones IP permitidas"], example: "203.0.113.7\n198.51.100.0/24", hint: ["IPv4 addresses or ranges, one per line, 50 at most. Leave empty to allow any address.", "Endereços ou faixas IPv4, um por linha, no máximo 50. Deixe vazio para permitir qualquer endereço.", "Direcciones o rangos IPv4, uno por línea, 50 como máximo. Déjelo vacío para permitir cualquier dirección."] },
    { name: "permissions", kind: "matrix", label: ["Permissions", "Permissões", "Permisos"], isRequired: true },
  ],
  made: (answer) => showKey(answer as NewToken, () => go(`/tokens/${(answer as NewToken).token.id}`)),
  beside: (token, again) => <TokenTools token={token} again={again} />,
});

function TokenTools({ token, again }: { token: Token; again: () => void }) {
  const may = list(MODULES.filter(({ name }) => token.permissions[name]?.length).map(({ label }) => say(label)));
  const rotate = () =>
    confirm({
      title: say(["Rotate the key of “{name}”?", "Trocar a chave de “{name}”?", "¿Rotar la clave de «{name}»?"], { name: token.name }),
      text: <p>{say(["The current key stops working immediately. Name, permissions and IP addresses stay the same.", "A chave atual para de funcionar imediatamente. Nome, permissões e endereços IP continuam os mesmos.", "La clave actual deja de funcionar de inmediato. El nombre, los permisos y las direcciones IP no cambian."])}</p>,
      yes: say(keyWords.rotate),
      act: async () => showKey(await post<NewToken>(`/tokens/${token.id}/rotate`), again),
    });
  const revoke = () =>
    confirm({
      title: say(["Revoke “{name}”?", "Revogar “{name}”?", "¿Revocar «{name}»?"], { name: token.name }),
      text: <p>{say(["It stops working immediately and can't be restored. Past actions keep its name.", "Ele para de funcionar imediatamente e não pode ser restaurado. As ações anteriores mantêm o nome.", "Deja de funcionar de inmediato y no se puede restaurar. Las acciones anteriores conservan su nombre."])}</p>,
      yes: say(["Revoke", "Revogar", "Revocar"]),
      act: async () => {
        await post(`/tokens/${token.id}/revoke`);
        again();
        notify(say(["Revoked.", "Revogado.", "Revocado."]));
      },
    });
  return (
    <section class="card">
      <h2>{say(keyWords.key)}</h2>
      <dl class="facts">
        <dt>{say(words.state)}</dt>
        <dd>
          <State is={token.status} />
        </dd>
        <dt>{say(keyWords.prefix)}</dt>
        <dd>
          <code>{token.prefix}…</code>
        </dd>
        <dt>{say(["Last used", "Último uso", "Último uso"])}</dt>
        <dd>
          <Moment at={token.lastUsedAt} none={say(words.never)} />
        </dd>
        <dt>{say(words.createdAt)}</dt>
        <dd>
          <Moment at={token.createdAt} />
        </dd>
        <dt>{say(["Access to", "Acesso a", "Acceso a"])}</dt>
        <dd>{may || say(words.none)}</dd>
      </dl>
      {token.status === "revoked" ? (
        <Note>{say(["This token is revoked and can't be restored.", "Este token foi revogado e não pode ser restaurado.", "Este token está revocado y no se puede restaurar."])}</Note>
      ) : (
        <div class="row">
          <Button icon="key" onClick={rotate}>
            {say(keyWords.rotate)}
          </Button>
          <Button kind="danger" onClick={revoke}>
            {say(["Revoke", "Revogar", "Revocar"])}
          </Button>
        </div>
      )}
    </section>
  );
}
