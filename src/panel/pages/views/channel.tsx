// Around a channel: what is to be done elsewhere before anybody can write to it, and its secret.

import { post } from "../core/client";
import type { ChannelSetup } from "../core/shapes";
import { count, say, type Text } from "../core/text";
import { words } from "../core/words";
import { confirm } from "../ui/dialog";
import { Badge, Button, Copyable, Trouble } from "../ui/parts";
import { reveal } from "../ui/reveal";
import { State } from "../ui/states";

const said = {
  next: ["Next steps", "Próximos passos", "Próximos pasos"],
  embed: ["Put this line into your pages", "Ponha esta linha nas suas páginas", "Ponga esta línea en sus páginas"],
  hook: ["Enter this address at the provider as callback URL", "Informe este endereço no provedor como URL de callback", "Indique esta dirección en el proveedor como URL de callback"],
  hookLead: ["With it goes your verify token. Subscribe to “messages” there.", "Junto vai o seu token de verificação. Assine lá o campo “messages”.", "Con ella va su token de verificación. Suscríbase allí a «messages»."],
  kept: ["Kept", "Guardado", "Guardado"],
  missing: ["Missing", "Faltando", "Falta"],
  accessToken: ["Access token", "Token de acesso", "Token de acceso"],
  appSecret: ["App secret", "Segredo do aplicativo", "Secreto de la aplicación"],
  verifyToken: ["Verify token", "Token de verificação", "Token de verificación"],
  identity: ["Identity secret", "Segredo de identidade", "Secreto de identidad"],
  identityLead: ["Your server signs with it who a visitor is.", "Com ele o seu servidor assina quem é o visitante.", "Con él su servidor firma quién es el visitante."],
  good: ["Secrets in force: {count}", "Segredos em vigor: {count}", "Secretos en vigor: {count}"],
  make: ["Create a secret", "Criar um segredo", "Crear un secreto"],
  makeText: ["The previous one stays valid until the next is created, so that your server can change over.", "O anterior vale até o próximo ser criado, para o seu servidor trocar.", "El anterior vale hasta que se cree el próximo, para que su servidor cambie."],
  leaked: ["The secret has leaked", "O segredo vazou", "El secreto se filtró"],
  leakedText: ["There is a new one, and those before are no longer valid: visitors signed with them are refused at once.", "Há um novo, e os anteriores deixam de valer: visitantes assinados com eles são recusados na hora.", "Hay uno nuevo, y los anteriores dejan de valer: los visitantes firmados con ellos se rechazan de inmediato."],
  once: ["It is shown this once. Only your server may know it.", "Só aparece desta vez. Só o seu servidor pode conhecê-lo.", "Solo se muestra esta vez. Solo su servidor puede conocerlo."],
} as const satisfies Record<string, Text>;

/** What is to be done elsewhere before anybody can write to it. */
export function NextSteps({ channel }: { channel: ChannelSetup }) {
  const secrets = ["accessToken", "appSecret", "verifyToken"] as const;
  return (
    <section class="card">
      <h2>{say(said.next)}</h2>
      <p>
        <State is={channel.status} />
      </p>
      {channel.lastError && <Trouble text={channel.lastError} />}
      {channel.embed && <Copyable label={say(said.embed)} value={channel.embed} isLong />}
      {channel.hookUrl && (
        <>
          <Copyable label={say(said.hook)} value={channel.hookUrl} isLong />
          <p class="hint">{say(said.hookLead)}</p>
          <dl class="facts">
            {secrets.map((name) => (
              <>
                <dt>{say(said[name])}</dt>
                <dd>
                  <Badge kind={channel.secrets[name] ? "good" : "bad"}>{say(channel.secrets[name] ? said.kept : said.missing)}</Badge>
                </dd>
              </>
            ))}
          </dl>
        </>
      )}
    </section>
  );
}

/** What a website's server signs its visitors with. */
export function IdentitySecret({ channel, again }: { channel: ChannelSetup; again: () => void }) {
  if (channel.type !== "webchat") return null;
  const rotate = (revokePrevious: boolean) => () =>
    confirm({
      title: say(said.make),
      text: <p>{say(revokePrevious ? said.leakedText : said.makeText)}</p>,
      yes: say(words.create),
      isDangerous: revokePrevious,
      act: async () => {
        const made = await post<{ identitySecret: string | null }>(`/channels/${channel.id}/identity-secret`, { revokePrevious });
        reveal({ title: say(said.identity), text: <p>{say(said.once)}</p>, items: [{ label: say(said.identity), value: made.identitySecret }], then: again });
      },
    });
  return (
    <section class="card">
      <h2>{say(said.identity)}</h2>
      <p class="soft">{say(said.identityLead)}</p>
      <p>{say(said.good, { count: count(channel.secrets.identitySecrets) })}</p>
      <div class="row">
        <Button icon="key" onClick={rotate(false)}>
          {say(said.make)}
        </Button>
        {channel.secrets.identitySecrets > 0 && (
          <Button kind="danger" onClick={rotate(true)}>
            {say(said.leaked)}
          </Button>
        )}
      </div>
    </section>
  );
}
