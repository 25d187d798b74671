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
  title: ["The token's key", "A chave do token", "La clave del token"],
  text: ["It is shown this once and cannot be recovered: store it now.", "Só aparece desta vez e não pode ser recuperada: guarde agora.", "Solo se muestra esta vez y no se puede recuperar: guárdela ahora."],
  key: ["Key", "Chave", "Clave"],
  prefix: ["Begins with", "Começa com", "Empieza por"],
  rotate: ["Rotate the key", "Trocar a chave", "Rotar la clave"],
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
    lead: ["Keys with which other systems use the API, each with its own permissions.", "Chaves com que outros sistemas usam a API, cada uma com suas permissões.", "Claves con que otros sistemas usan la API, cada una con sus permisos."],
    empty: ["Create a token for a first integration.", "Crie um token para a primeira integração.", "Cree un token para una primera integración."],
    goesWith: ["", "", ""],
  },
  nameOf: (token) => token.name,
  cannot: ["delete"],
  columns: [
    { label: words.name, show: (token) => token.name },
    { label: keyWords.prefix, show: (token) => <code>{token.prefix}…</code> },
    { label: words.state, show: (token) => <State is={token.status} /> },
    { label: ["Expires", "Expira", "Caduca"], show: (token) => <Moment at={token.expiresAt} none={say(words.never)} /> },
    { label: ["Addresses", "Endereços", "Direcciones"], show: (token) => (token.allowedIps.length ? <span class="clamp">{token.allowedIps.join(", ")}</span> : say(words.any)) },
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
    { name: "name", kind: "line", label: words.name, isRequired: true, hint: ["Which system uses it: its acts carry this name.", "Que sistema o usa: os atos dele levam este nome.", "Qué sistema lo usa: sus actos llevan este nombre."] },
    { name: "expiresAt", kind: "moment", label: ["Expires", "Expira", "Caduca"], hint: ["At this moment it stops working, without a warning. Empty: never.", "Neste momento deixa de funcionar, sem aviso. Vazio: nunca.", "En este momento deja de funcionar, sin aviso. Vacío: nunca."] },
    { name: "allowedIps", kind: "lines", label: ["Allowed addresses", "Endereços permitidos", "Direcciones permitidas"], example: "203.0.113.7\n198.51.100.0/24", hint: ["IPv4 addresses or ranges, one a line, 50 at most. Empty: from anywhere.", "Endereços ou faixas IPv4, um por linha, no máximo 50. Vazio: de qualquer lugar.", "Direcciones o rangos IPv4, uno por línea, 50 como máximo. Vacío: desde cualquier lugar."] },
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
      text: <p>{say(["There is a new one, and the current key stops working at once. Name, permissions and addresses stay.", "Há uma nova, e a chave atual para de funcionar na hora. Nome, permissões e endereços ficam.", "Hay una nueva, y la clave actual deja de funcionar de inmediato. Nombre, permisos y direcciones quedan."])}</p>,
      yes: say(keyWords.rotate),
      act: async () => showKey(await post<NewToken>(`/tokens/${token.id}/rotate`), again),
    });
  const revoke = () =>
    confirm({
      title: say(["Revoke “{name}”?", "Revogar “{name}”?", "¿Revocar «{name}»?"], { name: token.name }),
      text: <p>{say(["It stops working at once and for good. What was done with it keeps its name.", "Para de funcionar na hora e para sempre. O que foi feito com ele mantém o nome.", "Deja de funcionar de inmediato y para siempre. Lo que se hizo con él conserva su nombre."])}</p>,
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
        <dt>{say(["Reaches", "Alcança", "Alcanza"])}</dt>
        <dd>{may || say(words.none)}</dd>
      </dl>
      {token.status === "revoked" ? (
        <Note>{say(["It is revoked for good.", "Está revogado para sempre.", "Está revocado para siempre."])}</Note>
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
