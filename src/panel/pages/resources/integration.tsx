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
  ["text", ["Line of text", "Linha de texto", "Línea de texto"]],
  ["textarea", ["Longer text", "Texto longo", "Texto largo"]],
  ["number", ["Number", "Número", "Número"]],
  ["boolean", ["Yes or no", "Sim ou não", "Sí o no"]],
  ["date", ["Date", "Data", "Fecha"]],
  ["datetime", ["Date and time", "Data e hora", "Fecha y hora"]],
  ["email", words.email],
  ["url", ["Web address", "Endereço web", "Dirección web"]],
  ["phone", ["Phone", "Telefone", "Teléfono"]],
  ["select", ["One of several", "Um de vários", "Uno de varios"]],
  ["multiselect", ["Some of several", "Alguns de vários", "Algunos de varios"]],
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
    lead: ["What the company wants to know of its contacts and cards.", "O que a empresa quer saber dos contatos e cards.", "Lo que la empresa quiere saber de sus contactos y tarjetas."],
    empty: ["Create a first field, such as “Plan”.", "Crie o primeiro campo, como “Plano”.", "Cree un primer campo, como «Plan»."],
    goesWith: ["Its values go with it, of every contact or card.", "Os valores de todos os contatos ou cards vão junto.", "Sus valores se van con él, de todos los contactos o tarjetas."],
  },
  nameOf: (field) => field.name,
  columns: [
    { label: words.name, show: (field) => field.name },
    { label: ["Key", "Chave", "Clave"], show: (field) => <code>{field.key}</code> },
    { label: APPLIES, show: (field) => labelOf(APPLICATIONS, field.application) },
    { label: ["Kind", "Tipo", "Tipo"], show: (field) => labelOf(TYPES, field.type) },
  ],
  filters: [
    { name: "application", kind: "choice", label: APPLIES, options: APPLICATIONS },
    { name: "type", kind: "choice", label: ["Kind", "Tipo", "Tipo"], options: TYPES },
  ],
  actions: () =>
    may("customFields", "PUT") && (
      <a class="button" href={href("/custom-fields/order")}>
        {say(["Order", "Ordenar", "Ordenar"])}
      </a>
    ),
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "application", kind: "choice", label: APPLIES, options: APPLICATIONS, initial: "contact", isFixed: true },
    { name: "type", kind: "choice", label: ["Kind", "Tipo", "Tipo"], options: TYPES, initial: "text", hint: ["It can be changed only while there are no values.", "Só pode mudar enquanto não há valores.", "Solo se puede cambiar mientras no haya valores."] },
    { name: "options", kind: "lines", label: ["Options", "Opções", "Opciones"], hint: ["One a line.", "Uma por linha.", "Una por línea."], isRequired: true, when: hasOptions },
    { name: "required", kind: "check", label: ["Forms ask for it", "Formulários exigem", "Los formularios lo exigen"] },
  ],
});

const secretWords: Record<"title" | "text" | "label" | "rotate", Text> = {
  rotate: ["Rotate the secret", "Trocar o segredo", "Rotar el secreto"],
  title: ["The webhook's secret", "O segredo do webhook", "El secreto del webhook"],
  text: ["Your server checks with it that a call is ours. It is shown this once: store it now.", "Seu servidor confere com ele que a chamada é nossa. Só aparece desta vez: guarde agora.", "Su servidor comprueba con él que la llamada es nuestra. Solo se muestra esta vez: guárdelo ahora."],
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
    lead: ["Where other systems are told what happens here.", "Onde outros sistemas são avisados do que acontece aqui.", "Donde otros sistemas se enteran de lo que pasa aquí."],
    empty: ["Create a first one with the address of your server.", "Crie o primeiro com o endereço do seu servidor.", "Cree un primero con la dirección de su servidor."],
    goesWith: ["Nothing is sent to it any more, also what is pending. Its deliveries go with it.", "Nada mais é enviado, nem o que está pendente. O histórico de entregas vai junto.", "Nada más se envía, tampoco lo pendiente. Sus entregas se van con él."],
  },
  nameOf: (hook) => hook.description ?? hook.url,
  columns: [
    { label: ["Address", "Endereço", "Dirección"], show: (hook) => <span class="clamp">{hook.url}</span> },
    { label: words.description, show: (hook) => hook.description },
    { label: ["Events", "Eventos", "Eventos"], show: (hook) => (hook.types.length ? hook.types.length : say(words.all)) },
    { label: words.state, show: (hook) => (hook.disabledReason ? <Badge kind="bad">{hook.disabledReason}</Badge> : <Active is={hook.active} />) },
  ],
  filters: [{ name: "active", kind: "choice", label: words.state, options: [["true", words.active], ["false", words.inactive]] }],
  branches: [{ label: ["Deliveries", "Entregas", "Entregas"], to: (hook) => `/webhooks/${hook.id}/deliveries` }],
  fields: [
    { name: "url", kind: "url", label: ["Address", "Endereço", "Dirección"], isRequired: true, example: "https://example.com/hotline" },
    { name: "description", kind: "line", label: words.description },
    { name: "active", kind: "check", label: words.active, initial: true },
    { name: "types", kind: "checks", label: ["Events", "Eventos", "Eventos"], hint: ["None chosen: all are sent.", "Nenhum escolhido: todos são enviados.", "Ninguno elegido: se envían todos."], options: EVENT_TYPES.map((name) => [name, [name, name, name]] as const) },
  ],
  made: (answer) => showSecret(answer as Of<"WebhookWithSecret">, () => go(`/webhooks/${(answer as Of<"Webhook">).id}`)),
  beside: (hook, again) => <WebhookTools hook={hook} again={again} />,
});

function WebhookTools({ hook, again }: { hook: Of<"Webhook">; again: () => void }) {
  if (!may("webhooks", "POST")) return null;
  const test = async () => {
    const how = await post<Of<"WebhookTest">>(`/webhooks/${hook.id}/test`);
    const said = how.delivered
      ? say(["It answered {status} within {ms} ms.", "Respondeu {status} em {ms} ms.", "Respondió {status} en {ms} ms."], { status: how.status ?? 0, ms: how.durationMs })
      : say(["It did not take it: {error}", "Não aceitou: {error}", "No lo aceptó: {error}"], { error: how.error ?? "" });
    notify(said, !how.delivered);
  };
  const rotate = () =>
    confirm({
      title: say(["Rotate the secret?", "Trocar o segredo?", "¿Rotar el secreto?"]),
      text: <p>{say(["There is a new one. The current one stays valid beside it for a day, so that your server can change over.", "Há um novo. O atual vale por mais um dia junto com ele, para o seu servidor trocar.", "Hay uno nuevo. El actual sigue valiendo un día junto a él, para que su servidor cambie."])}</p>,
      yes: say(secretWords.rotate),
      isDangerous: false,
      act: async () => showSecret(await post<Of<"WebhookWithSecret">>(`/webhooks/${hook.id}/rotate-secret`), again),
    });
  return (
    <section class="card">
      <h2>{say(["Try it", "Testar", "Probar"])}</h2>
      <p class="soft">{say(["Sends a test now, and shows what your server answers.", "Envia um teste agora e mostra a resposta do seu servidor.", "Envía una prueba ahora y muestra qué responde su servidor."])}</p>
      <div class="row">
        <Button onClick={test}>{say(["Send a test", "Enviar teste", "Enviar prueba"])}</Button>
        <Button onClick={rotate} icon="key">
          {say(secretWords.rotate)}
        </Button>
      </div>
    </section>
  );
}
