// Channels, profiles and companies.

import type { Of } from "../core/client";
import { notify } from "../core/notices";
import { go } from "../core/router";
import { administers, isAdmin } from "../core/session";
import type { ChannelSetup, Company, ProfileSetup } from "../core/shapes";
import { count, counted, say, type Text } from "../core/text";
import { words } from "../core/words";
import { resource } from "../resource/types";
import type { Option } from "../ui/fields";
import { Button, LinkButton } from "../ui/parts";
import { Moment } from "../ui/moment";
import { Active, optionsOf, State } from "../ui/states";
import { queues, users } from "./organization";
import { boards } from "./sales";
import { IdentitySecret, NextSteps } from "../views/channel";
import { DEFAULT_COLOR, Preview } from "../views/preview";

const CHANNEL_TYPES: readonly Option[] = [
  ["webchat", ["Webchat", "Webchat", "Webchat"]],
  ["whatsapp", ["WhatsApp", "WhatsApp", "WhatsApp"]],
  ["messenger", ["Messenger", "Messenger", "Messenger"]],
  ["instagram", ["Instagram", "Instagram", "Instagram"]],
];

type Typed = { type?: unknown };
const isPhone = (values: Typed) => values.type === "whatsapp";
const isSocial = (values: Typed) => values.type === "messenger" || values.type === "instagram";
const isProvided = (values: Typed) => isPhone(values) || isSocial(values);
const isChat = (values: Typed) => values.type === "webchat";

/** A setting is below `settings` in the answer, and beside the name in a body. */
const setting = (name: string) => (channel: Record<string, unknown>) => (channel.settings as Record<string, unknown> | undefined)?.[name];

/** Where each credential is found at the provider. */
const KEPT: Text = ["It is kept and never shown. Empty: it stays as it is.", "Fica guardado e nunca é mostrado. Vazio: fica como está.", "Se guarda y nunca se muestra. Vacío: queda como está."];

export const channels = resource<ChannelSetup, Of<"ChannelCreate">>({
  path: "channels",
  module: "channels",
  isFor: administers,
  recordPath: (id) => `/channels/${encodeURIComponent(id)}/setup`,
  cannot: ["delete"],
  words: {
    many: ["Channels", "Canais", "Canales"],
    make: ["New channel", "Novo canal", "Nuevo canal"],
    lead: ["Where contacts write: a chat on your pages, a phone number, a social account.", "Por onde os contatos escrevem: um chat no site, um telefone, uma rede social.", "Por donde escriben los contactos: un chat en su web, un teléfono, una red social."],
    empty: ["Create a webchat first: it needs nothing but the address of your website.", "Comece por um webchat: só precisa do endereço do seu site.", "Empiece por un webchat: solo necesita la dirección de su sitio."],
    goesWith: ["", "", ""],
  },
  nameOf: (channel) => channel.name,
  columns: [
    { label: words.name, show: (channel) => channel.name },
    { label: ["Kind", "Tipo", "Tipo"], show: (channel) => CHANNEL_TYPES.filter(([type]) => type === channel.type).map(([, label]) => say(label)) },
    { label: ["Queue", "Fila", "Cola"], show: (channel) => channel.queue?.name },
    { label: words.state, show: (channel) => <State is={channel.status} /> },
    { label: ["Last error", "Último erro", "Último error"], show: (channel) => channel.lastError && <span class="clamp">{channel.lastError}</span> },
  ],
  filters: [
    { name: "type", kind: "choice", label: ["Kind", "Tipo", "Tipo"], options: CHANNEL_TYPES },
    { name: "status", kind: "choice", label: words.state, options: optionsOf("connected", "disconnected", "error") },
  ],
  fields: [
    { name: "type", kind: "choice", label: ["Kind", "Tipo", "Tipo"], options: CHANNEL_TYPES, initial: "webchat", isFixed: true },
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "queueId", kind: "one", label: ["Queue", "Fila", "Cola"], hint: ["Where new conversations wait.", "Onde as novas conversas esperam.", "Donde esperan las conversaciones nuevas."], of: { path: "/queues" }, from: (channel) => channel.queue },

    { name: "allowedOrigins", kind: "lines", label: ["Websites that may show it", "Sites que podem mostrá-lo", "Sitios que pueden mostrarlo"], hint: ["One a line, with https:// and without a path.", "Um por linha, com https:// e sem caminho.", "Uno por línea, con https:// y sin ruta."], example: "https://www.example.com", when: isChat, from: setting("allowedOrigins") },
    { name: "title", kind: "line", label: ["Title", "Título", "Título"], when: isChat, from: setting("title") },
    { name: "greeting", kind: "text", label: ["Greeting", "Saudação", "Saludo"], when: isChat, from: setting("greeting") },
    { name: "color", kind: "color", label: words.color, when: isChat, from: setting("color"), example: DEFAULT_COLOR },
    {
      name: "position",
      kind: "choice",
      label: ["Corner", "Canto", "Esquina"],
      when: isChat,
      initial: "right",
      options: [
        ["right", ["Right", "Direita", "Derecha"]],
        ["left", ["Left", "Esquerda", "Izquierda"]],
      ],
      from: (channel) => setting("position")(channel) ?? "right",
    },
    {
      name: "preChatFields",
      kind: "checks",
      label: ["Asked before the chat", "Perguntar antes do chat", "Preguntar antes del chat"],
      when: isChat,
      options: [
        ["name", words.name],
        ["email", words.email],
        ["number", ["Phone", "Telefone", "Teléfono"]],
      ],
      from: setting("preChatFields"),
    },
    { name: "requireIdentity", kind: "check", label: ["Only visitors whom your server has signed in", "Só visitantes que o seu servidor identificou", "Solo visitantes que su servidor identificó"], when: isChat, from: setting("requireIdentity") },

    { name: "number", kind: "line", label: ["Phone number", "Número de telefone", "Número de teléfono"], when: isPhone },
    { name: "phoneNumberId", kind: "line", label: ["Phone number id", "Id do número", "Id del número"], when: isPhone, from: setting("phoneNumberId"), hint: ["In the provider's console: WhatsApp, API setup.", "No painel do provedor: WhatsApp, configuração da API.", "En la consola del proveedor: WhatsApp, configuración de la API."] },
    { name: "businessAccountId", kind: "line", label: ["Business account id", "Id da conta comercial", "Id de la cuenta comercial"], when: isPhone, from: setting("businessAccountId"), hint: ["For the list of templates.", "Para a lista de modelos.", "Para la lista de plantillas."] },
    { name: "pageId", kind: "line", label: ["Page id", "Id da página", "Id de la página"], when: isSocial, from: setting("pageId") },
    { name: "accessToken", kind: "password", label: ["Access token", "Token de acesso", "Token de acceso"], hint: KEPT, when: isProvided },
    { name: "appSecret", kind: "password", label: ["App secret", "Segredo do aplicativo", "Secreto de la aplicación"], hint: KEPT, when: isProvided },
    { name: "verifyToken", kind: "password", label: ["Verify token", "Token de verificação", "Token de verificación"], hint: ["A word of your own, entered at the provider as well.", "Uma palavra sua, informada também no provedor.", "Una palabra suya, indicada también en el proveedor."], when: isProvided },
  ],
  preview: (values, channel) => (isChat({ type: values.type || channel?.type }) ? <Preview values={values} /> : null),
  made: (answer) => {
    notify(say(words.created));
    // What is to be put into one's pages, or entered at the provider, is the first thing there.
    go(`/channels/${(answer as ChannelSetup).id}`);
  },
  above: (channel) => <NextSteps channel={channel} />,
  beside: (channel, again) => <IdentitySecret channel={channel} again={again} />,
});

export const profiles = resource<ProfileSetup, Of<"ProfileCreate">>({
  path: "profiles",
  module: "profiles",
  isFor: administers,
  recordPath: (id) => `/profiles/${encodeURIComponent(id)}/setup`,
  changePath: (id) => `/profiles/${encodeURIComponent(id)}`,
  words: {
    many: ["Profiles", "Perfis", "Perfiles"],
    make: ["New profile", "Novo perfil", "Nuevo perfil"],
    lead: ["What users may do. Each user has one.", "O que os usuários podem fazer. Cada um tem um.", "Qué pueden hacer los usuarios. Cada uno tiene uno."],
    empty: ["Create a first profile.", "Crie o primeiro perfil.", "Cree un primer perfil."],
    goesWith: ["One that users have cannot go, nor the last that administers.", "Um perfil em uso não pode ser excluído, nem o último que administra.", "Uno que tienen usuarios no puede irse, ni el último que administra."],
  },
  nameOf: (profile) => profile.name,
  columns: [
    { label: words.name, show: (profile) => profile.name },
    { label: ["Modules", "Módulos", "Módulos"], kind: "number", show: (profile) => count(Object.keys(profile.permissions).length) },
    { label: ["Sees all cards", "Vê todos os cards", "Ve todas las tarjetas"], show: (profile) => say(profile.seesAllCards ? words.yes : words.no) },
    { label: words.updatedAt, show: (profile) => <Moment at={profile.updatedAt} /> },
  ],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "administers", kind: "check", label: ["Sets up the company: tokens, channels, profiles, users", "Administra a empresa: tokens, canais, perfis, usuários", "Administra la empresa: tokens, canales, perfiles, usuarios"] },
    { name: "seesAllCards", kind: "check", label: ["Sees the cards of others", "Vê os cards dos outros", "Ve las tarjetas de otros"] },
    { name: "permissions", kind: "matrix", label: ["Permissions", "Permissões", "Permisos"] },
  ],
  beside: (profile) => <ProfileReach has={profile.users} />,
});

/** What a profile does not say: whose conversations and boards its users see. */
function ProfileReach({ has }: { has: number }) {
  return (
    <section class="card">
      <h2>{say(["Users, queues and boards", "Usuários, filas e quadros", "Usuarios, colas y tableros"])}</h2>
      <p>{counted(has, { one: ["{count} user has this profile.", "{count} usuário tem este perfil.", "{count} usuario tiene este perfil."], other: ["{count} users have this profile.", "{count} usuários têm este perfil.", "{count} usuarios tienen este perfil."] })}</p>
      <p class="soft">{say(["They see the boards of the queues that they work in; who sees the cards of others sees every board.", "Veem os quadros das filas em que trabalham; quem vê os cards dos outros vê todos os quadros.", "Ven los tableros de las colas en que trabajan; quien ve las tarjetas de otros ve todos los tableros."])}</p>
      <div class="row">
        {[users, queues, boards].map((of) => (
          <LinkButton key={of.path} to={`/${of.path}`}>
            {say(of.words.many)}
          </LinkButton>
        ))}
      </div>
    </section>
  );
}

export const companies = resource<Company, Of<"CompanyCreate"> & Of<"CompanyUpdate">>({
  path: "companies",
  module: "companies",
  isFor: isAdmin,
  cannot: ["delete"],
  words: {
    many: ["Companies", "Empresas", "Empresas"],
    make: ["New company", "Nova empresa", "Nueva empresa"],
    lead: ["Who works with this installation. Each sees its own data only.", "Quem trabalha com esta instalação. Cada uma só vê os próprios dados.", "Quién trabaja con esta instalación. Cada una ve solo sus datos."],
    empty: ["Create a first company, then open it.", "Crie a primeira empresa e depois abra-a.", "Cree una primera empresa y luego ábrala."],
    goesWith: ["", "", ""],
  },
  nameOf: (company) => company.name,
  columns: [
    { label: words.name, show: (company) => company.name },
    { label: ["Time zone", "Fuso horário", "Zona horaria"], show: (company) => company.timeZone },
    { label: ["API", "API", "API"], show: (company) => say(company.apiEnabled ? words.yes : words.no) },
    { label: words.state, show: (company) => <Active is={company.active} /> },
    { label: words.actions, kind: "actions", show: (company) => <OpenCompany company={company} /> },
  ],
  filters: [{ name: "active", kind: "choice", label: words.state, options: [["true", words.active], ["false", words.inactive]] }],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "timeZone", kind: "line", label: ["Time zone", "Fuso horário", "Zona horaria"], example: "America/Sao_Paulo", initial: Intl.DateTimeFormat().resolvedOptions().timeZone },
    { name: "apiEnabled", kind: "check", label: ["The plan includes the API", "O plano inclui a API", "El plan incluye la API"], initial: true },
    { name: "ratePerMinute", kind: "number", label: ["API calls a minute", "Chamadas da API por minuto", "Llamadas de la API por minuto"], hint: ["Empty: as many as the installation says.", "Vazio: o que a instalação define.", "Vacío: lo que define la instalación."] },
    { name: "secondFactorRequired", kind: "check", label: ["Everybody needs a second factor", "Todos precisam do segundo fator", "Todos necesitan un segundo factor"], only: "old" },
    { name: "active", kind: "check", label: words.active, only: "old" },
  ],
  above: (company) => (
    <div class="row">
      <OpenCompany company={company} isMain />
    </div>
  ),
});

function OpenCompany({ company, isMain = false }: { company: Company; isMain?: boolean }) {
  return (
    <Button
      {...(isMain ? { kind: "primary" as const } : {})}
      label={`${say(["Open", "Abrir", "Abrir"])}: ${company.name}`}
      onClick={() => {
        go("/", { scope: company.id });
      }}
    >
      {say(["Open", "Abrir", "Abrir"])}
    </Button>
  );
}
