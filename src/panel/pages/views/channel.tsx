// Around a channel: what is to be done elsewhere before anybody can write to it, and its secret.

import { useSignal } from "@preact/signals";

import { post, whole } from "../core/client";
import { useLoaded } from "../core/loaded";
import type { ChannelSetup, Template } from "../core/shapes";
import { count, say, type Text } from "../core/text";
import { words } from "../core/words";
import { confirm } from "../ui/dialog";
import { Await, Badge, Button, Copyable, Trouble } from "../ui/parts";
import { reveal } from "../ui/reveal";
import { State } from "../ui/states";
import { Table } from "../ui/table";

const said = {
  next: ["Next steps", "Próximos passos", "Próximos pasos"],
  embed: ["Paste this code into your website, before </body>", "Cole este código no seu site, antes de </body>", "Pegue este código en su sitio web, antes de </body>"],
  hook: ["Enter this callback URL at the provider", "Informe esta URL de callback no provedor", "Indique esta URL de callback en el proveedor"],
  hookLead: ["Enter your verify token there too, and subscribe to “messages”.", "Informe lá também o token de verificação e assine “messages”.", "Indique allí también el token de verificación y suscríbase a «messages»."],
  kept: ["Stored", "Salvo", "Guardado"],
  missing: ["Missing", "Faltando", "Falta"],
  accessToken: ["Access token", "Token de acesso", "Token de acceso"],
  appSecret: ["App secret", "Segredo do aplicativo", "Secreto de la aplicación"],
  verifyToken: ["Verify token", "Token de verificação", "Token de verificación"],
  identity: ["Identity secret", "Segredo de identidade", "Secreto de identidad"],
  identityLead: ["Prove who your signed-in customers are.", "Comprove quem são seus clientes autenticados.", "Demuestre quiénes son sus clientes autenticados."],
  good: ["Active secrets: {count}", "Segredos ativos: {count}", "Secretos activos: {count}"],
  none: ["No secret yet", "Nenhum segredo ainda", "Todavía no hay ningún secreto"],
  make: ["Create a secret", "Criar um segredo", "Crear un secreto"],
  makeText: ["An existing secret keeps working until you create the one after this, so you have time to update your server.", "O segredo existente continua valendo até você criar o próximo depois deste, para dar tempo de atualizar seu servidor.", "El secreto existente sigue valiendo hasta que cree el siguiente después de este, para que pueda actualizar su servidor."],
  leaked: ["Replace it now (old one stops working)", "Substituir agora (o antigo deixa de funcionar)", "Reemplazar ahora (el anterior deja de funcionar)"],
  leakedText: ["Use this if the secret has leaked. Visitors signed in with an old secret are rejected immediately.", "Use se o segredo vazou. Visitantes autenticados com um segredo antigo são recusados imediatamente.", "Úselo si el secreto se ha filtrado. Los visitantes autenticados con un secreto anterior se rechazan de inmediato."],
  once: ["Copy it now: it won't be shown again. Keep it on your server only.", "Copie agora: ele não será mostrado de novo. Guarde-o apenas no seu servidor.", "Cópielo ahora: no se volverá a mostrar. Guárdelo solo en su servidor."],
  phone: ["Phone number", "Número de telefone", "Número de teléfono"],
  quality: ["Quality", "Qualidade", "Calidad"],
  normal: ["Normal", "Normal", "Normal"],
  low: ["Low", "Baixa", "Baja"],
  limit: ["Messaging limit", "Limite de mensagens", "Límite de mensajes"],
  unreported: ["Not reported yet", "Ainda não informado", "Aún no informado"],
  showTemplates: ["Show templates", "Mostrar modelos", "Mostrar plantillas"],
  templates: ["Templates", "Modelos", "Plantillas"],
  noTemplates: ["The account has no templates.", "A conta não tem modelos.", "La cuenta no tiene plantillas."],
  language: ["Language", "Idioma", "Idioma"],
  category: ["Category", "Categoria", "Categoría"],
} as const satisfies Record<string, Text>;

/** What a phone channel's provider says of its number and of its templates. */
export function PhoneAccount({ channel }: { channel: ChannelSetup }) {
  // Only on demand, because the provider is asked for them.
  const isOpen = useSignal(false);
  if (channel.type !== "whatsapp") return null;
  return (
    <section class="card">
      <h2>{say(said.phone)}</h2>
      <dl class="facts">
        <dt>{say(said.quality)}</dt>
        <dd>{channel.quality ? <Badge kind={channel.quality === "low" ? "bad" : "good"}>{say(said[channel.quality])}</Badge> : say(said.unreported)}</dd>
        <dt>{say(said.limit)}</dt>
        <dd>{channel.messagingLimit ?? say(said.unreported)}</dd>
      </dl>
      {isOpen.value ? <Templates channel={channel} /> : <Button onClick={() => (isOpen.value = true)}>{say(said.showTemplates)}</Button>}
    </section>
  );
}

function Templates({ channel }: { channel: ChannelSetup }) {
  const what = useLoaded(() => whole<Template>(`/channels/${channel.id}/templates`, { all: true }), [channel.id]);
  return (
    <>
      <h3>{say(said.templates)}</h3>
      <Await what={what}>
        {(templates) =>
          templates.length ? (
            <Table
              label={say(said.templates)}
              columns={[
                { label: say(words.name), show: (template) => template.name },
                { label: say(said.language), show: (template) => template.language },
                { label: say(said.category), show: (template) => template.category },
                { label: say(words.state), show: (template) => <State is={template.status.toLowerCase()} /> },
              ]}
              rows={templates}
              keyOf={(template) => `${template.name} ${template.language}`}
            />
          ) : (
            <p class="soft">{say(said.noTemplates)}</p>
          )
        }
      </Await>
    </>
  );
}

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
      title: say(revokePrevious ? said.leaked : said.make),
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
      <p>{channel.secrets.identitySecrets ? say(said.good, { count: count(channel.secrets.identitySecrets) }) : say(said.none)}</p>
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
