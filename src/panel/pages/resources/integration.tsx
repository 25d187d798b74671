// Custom fields and webhooks.

import { post, type Of } from "../core/client";
import { notify } from "../core/notices";
import { go, href } from "../core/router";
import { may } from "../core/session";
import { say, type Text } from "../core/text";
import { words } from "../core/words";
import { resource } from "../resource/types";
import { confirm } from "../ui/dialog";
import type { Option } from "../ui/fields";
import { Badge, Button } from "../ui/parts";
import { reveal } from "../ui/reveal";
import { Active } from "../ui/states";
import { EVENT_TYPES } from "./events";

const APPLIES: Text = ["Used for", "Usado em", "Usado en"];

const APPLICATIONS: readonly Option[] = [
  ["contact", ["Contacts", "Contatos", "Contactos"]],
  ["card", ["Cards", "Cards", "Tarjetas"]],
];

const TYPES: readonly Option[] = [
  ["text", ["Short text", "Texto curto", "Texto corto"]],
  ["textarea", ["Long text", "Texto longo", "Texto largo"]],
  ["number", ["Number", "Número", "Número"]],
  ["boolean", ["Yes or no", "Sim ou não", "Sí o no"]],
  ["date", ["Date", "Data", "Fecha"]],
  ["datetime", ["Date and time", "Data e hora", "Fecha y hora"]],
  ["email", words.email],
  ["url", ["Web address", "Endereço web", "Dirección web"]],
  ["phone", ["Phone number", "Telefone", "Teléfono"]],
  ["select", ["List (one option)", "Lista (uma opção)", "Lista (una opción)"]],
  ["multiselect", ["List (several options)", "Lista (várias opções)", "Lista (varias opciones)"]],
];

const labelOf = (options: readonly Option[], value: string) => {
  const found = options.find(([known]) => known === value);
  return found ? say(found[1]) : value;
};

const hasOptions = (values: Record<string, unknown>) => values.type === "select" || values.type === "multiselect";

export const customFields = resource<Of<"CustomField">, Of<"CustomFieldCreate">>({
  path: "custom-fields",
  isOrdered: true,
  module: "customFields",
  words: {
    many: ["Custom fields", "Campos personalizados", "Campos personalizados"],
    make: ["New field", "Novo campo", "Nuevo campo"],
    lead: ["Extra information to store on contacts and cards.", "Informações extras para guardar em contatos e cards.", "Información adicional que guardar en contactos y tarjetas."],
    empty: ["Create your first field, such as “Plan”.", "Crie seu primeiro campo, como “Plano”.", "Cree su primer campo, como «Plan»."],
    goesWith: ["Its values are deleted from all contacts or cards.", "Os valores também são excluídos de todos os contatos ou cards.", "También se eliminan sus valores en todos los contactos o tarjetas."],
  },
  nameOf: (field) => field.name,
  columns: [
    { label: words.name, show: (field) => field.name },
    { label: ["Key", "Chave", "Clave"], show: (field) => <code>{field.key}</code> },
    { label: APPLIES, show: (field) => labelOf(APPLICATIONS, field.application) },
    { label: ["Type", "Tipo", "Tipo"], show: (field) => labelOf(TYPES, field.type) },
  ],
  filters: [
    { name: "application", kind: "choice", label: APPLIES, options: APPLICATIONS },
    { name: "type", kind: "choice", label: ["Type", "Tipo", "Tipo"], options: TYPES },
  ],
  actions: () =>
    may("customFields", "PUT") && (
      <a class="button" href={href("/custom-fields/order")}>
        {say(["Reorder", "Reordenar", "Reordenar"])}
      </a>
    ),
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "application", kind: "choice", label: APPLIES, options: APPLICATIONS, initial: "contact", isFixed: true },
    { name: "type", kind: "choice", label: ["Type", "Tipo", "Tipo"], options: TYPES, initial: "text", hint: ["You can change it only while the field has no values.", "Só pode ser alterado enquanto o campo não tem valores.", "Solo se puede cambiar mientras el campo no tenga valores."] },
    { name: "options", kind: "lines", label: ["Options", "Opções", "Opciones"], hint: ["One per line.", "Uma por linha.", "Una por línea."], isRequired: true, when: hasOptions },
    { name: "required", kind: "check", label: ["Required", "Obrigatório", "Obligatorio"] },
  ],
});

const secretWords: Record<"title" | "text" | "label" | "rotate", Text> = {
  rotate: ["Rotate secret", "Trocar segredo", "Rotar secreto"],
  title: ["Save this secret", "Guarde este segredo", "Guarde este secreto"],
  text: ["Use it to verify that requests come from Hotline. Copy it now: it won't be shown again.", "Use-o para verificar que as requisições vêm do Hotline. Copie agora: ele não será mostrado de novo.", "Úselo para verificar que las solicitudes vienen de Hotline. Cópielo ahora: no se volverá a mostrar."],
  label: ["Secret", "Segredo", "Secreto"],
};

const showSecret = (hook: { secret: string | null }, then: () => void) =>
  reveal({ title: say(secretWords.title), text: <p>{say(secretWords.text)}</p>, items: [{ label: say(secretWords.label), value: hook.secret }], then });

export const webhooks = resource<Of<"Webhook">, Of<"WebhookCreate">>({
  path: "webhooks",
  module: "webhooks",
  words: {
    many: ["Webhooks", "Webhooks", "Webhooks"],
    make: ["New webhook", "Novo webhook", "Nuevo webhook"],
    lead: ["Send events to your own systems as they happen.", "Envie eventos para seus próprios sistemas assim que acontecem.", "Envíe eventos a sus propios sistemas en cuanto ocurren."],
    empty: ["Add your server's URL to receive events.", "Adicione a URL do seu servidor para receber eventos.", "Añada la URL de su servidor para recibir eventos."],
    goesWith: ["Pending deliveries are canceled and the delivery history is deleted.", "As entregas pendentes são canceladas e o histórico de entregas é excluído.", "Las entregas pendientes se cancelan y también se elimina el historial de entregas."],
  },
  nameOf: (hook) => hook.description ?? hook.url,
  columns: [
    { label: ["URL", "URL", "URL"], show: (hook) => <span class="clamp">{hook.url}</span> },
    { label: words.description, show: (hook) => hook.description },
    { label: ["Events", "Eventos", "Eventos"], show: (hook) => (hook.types.length ? hook.types.length : say(words.all)) },
    { label: words.state, show: (hook) => (hook.disabledReason ? <Badge kind="bad">{hook.disabledReason}</Badge> : <Active is={hook.active} />) },
  ],
  filters: [{ name: "active", kind: "choice", label: words.state, options: [["true", words.active], ["false", words.inactive]] }],
  branches: [{ label: ["Deliveries", "Entregas", "Entregas"], to: (hook) => `/webhooks/${hook.id}/deliveries` }],
  fields: [
    { name: "url", kind: "url", label: ["URL", "URL", "URL"], isRequired: true, example: "https://example.com/hotline" },
    { name: "description", kind: "line", label: words.description },
    { name: "active", kind: "check", label: words.active, initial: true },
    { name: "types", kind: "checks", label: ["Events", "Eventos", "Eventos"], hint: ["Leave all unchecked to receive every event.", "Deixe tudo desmarcado para receber todos os eventos.", "Deje todo sin marcar para recibir todos los eventos."], options: EVENT_TYPES.map((name) => [name, [name, name, name]] as const) },
  ],
  made: (answer) => showSecret(answer as Of<"WebhookWithSecret">, () => go(`/webhooks/${(answer as Of<"Webhook">).id}`)),
  beside: (hook, again) => <WebhookTools hook={hook} again={again} />,
});

function WebhookTools({ hook, again }: { hook: Of<"Webhook">; again: () => void }) {
  if (!may("webhooks", "POST")) return null;
  const test = async () => {
    const how = await post<Of<"WebhookTest">>(`/webhooks/${hook.id}/test`);
    const said = how.delivered
      ? say(["Your server responded with {status} in {ms} ms.", "Seu servidor respondeu {status} em {ms} ms.", "Su servidor respondió {status} en {ms} ms."], { status: how.status ?? 0, ms: how.durationMs })
      : say(["Delivery failed: {error}", "A entrega falhou: {error}", "La entrega falló: {error}"], { error: how.error ?? "" });
    notify(said, !how.delivered);
  };
  const rotate = () =>
    confirm({
      title: say(["Rotate the secret?", "Trocar o segredo?", "¿Rotar el secreto?"]),
      text: <p>{say(["The current secret keeps working for one more day, so you have time to update your server.", "O segredo atual continua valendo por mais um dia, para você atualizar seu servidor.", "El secreto actual sigue valiendo un día más, para que pueda actualizar su servidor."])}</p>,
      yes: say(secretWords.rotate),
      isDangerous: false,
      act: async () => showSecret(await post<Of<"WebhookWithSecret">>(`/webhooks/${hook.id}/rotate-secret`), again),
    });
  return (
    <section class="card">
      <h2>{say(["Test", "Testar", "Probar"])}</h2>
      <p class="soft">{say(["Send a test event now and see how your server responds.", "Envie um evento de teste agora e veja a resposta do seu servidor.", "Envíe un evento de prueba ahora y vea cómo responde su servidor."])}</p>
      <div class="row">
        <Button onClick={test}>{say(["Send test event", "Enviar evento de teste", "Enviar evento de prueba"])}</Button>
        <Button onClick={rotate} icon="key">
          {say(secretWords.rotate)}
        </Button>
      </div>
    </section>
  );
}
