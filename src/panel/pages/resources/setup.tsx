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
import { IdentitySecret, NextSteps, PhoneAccount } from "../views/channel";
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
const KEPT: Text = ["Stored encrypted. Leave empty to keep the current value.", "Salvo com criptografia. Deixe vazio para manter o valor atual.", "Se guarda cifrado. Déjelo vacío para conservar el valor actual."];

export const channels = resource<ChannelSetup, Of<"ChannelCreate">>({
  path: "channels",
  module: "channels",
  isFor: administers,
  recordPath: (id) => `/channels/${encodeURIComponent(id)}/setup`,
  cannot: ["delete"],
  words: {
    many: ["Channels", "Canais", "Canales"],
    make: ["New channel", "Novo canal", "Nuevo canal"],
    lead: ["How contacts reach you: website chat, WhatsApp, Messenger or Instagram.", "Por onde os contatos falam com você: chat no site, WhatsApp, Messenger ou Instagram.", "Por dónde le escriben los contactos: chat en su sitio web, WhatsApp, Messenger o Instagram."],
    empty: ["Start with a webchat: all it needs is your website's address.", "Comece por um webchat: ele só precisa do endereço do seu site.", "Empiece por un webchat: solo necesita la dirección de su sitio web."],
    goesWith: ["", "", ""],
  },
  nameOf: (channel) => channel.name,
  columns: [
    { label: words.name, show: (channel) => channel.name },
    { label: ["Type", "Tipo", "Tipo"], show: (channel) => CHANNEL_TYPES.filter(([type]) => type === channel.type).map(([, label]) => say(label)) },
    { label: ["Queue", "Fila", "Cola"], show: (channel) => channel.queue?.name },
    { label: words.state, show: (channel) => <State is={channel.status} /> },
    { label: ["Last error", "Último erro", "Último error"], show: (channel) => channel.lastError && <span class="clamp">{channel.lastError}</span> },
  ],
  filters: [
    { name: "type", kind: "choice", label: ["Type", "Tipo", "Tipo"], options: CHANNEL_TYPES },
    { name: "status", kind: "choice", label: words.state, options: optionsOf("connected", "disconnected", "error") },
  ],
  fields: [
    { name: "type", kind: "choice", label: ["Type", "Tipo", "Tipo"], options: CHANNEL_TYPES, initial: "webchat", isFixed: true },
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "queueId", kind: "one", label: ["Queue", "Fila", "Cola"], hint: ["New conversations go to this queue.", "As novas conversas vão para esta fila.", "Las conversaciones nuevas van a esta cola."], of: { path: "/queues" }, from: (channel) => channel.queue },

    { name: "allowedOrigins", kind: "lines", label: ["Allowed websites", "Sites permitidos", "Sitios web permitidos"], hint: ["One address per line, e.g. https://www.example.com", "Um endereço por linha, p. ex. https://www.example.com", "Una dirección por línea, p. ej. https://www.example.com"], example: "https://www.example.com", when: isChat, from: setting("allowedOrigins") },
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
      label: ["Ask before the chat", "Perguntar antes do chat", "Preguntar antes del chat"],
      when: isChat,
      options: [
        ["name", words.name],
        ["email", words.email],
        ["number", ["Phone number", "Telefone", "Teléfono"]],
      ],
      from: setting("preChatFields"),
    },
    { name: "requireIdentity", kind: "check", label: ["Only signed-in customers", "Apenas clientes autenticados", "Solo clientes autenticados"], when: isChat, from: setting("requireIdentity") },

    { name: "number", kind: "line", label: ["Phone number", "Telefone", "Teléfono"], when: isPhone },
    { name: "phoneNumberId", kind: "line", label: ["Phone number ID", "ID do número de telefone", "ID del número de teléfono"], when: isPhone, from: setting("phoneNumberId"), hint: ["In the provider's console, under WhatsApp > API setup.", "No painel do provedor, em WhatsApp > Configuração da API.", "En la consola del proveedor, en WhatsApp > Configuración de la API."] },
    { name: "businessAccountId", kind: "line", label: ["Business account ID", "ID da conta comercial", "ID de la cuenta comercial"], when: isPhone, from: setting("businessAccountId"), hint: ["Needed to list message templates.", "Necessário para listar os modelos de mensagem.", "Necesario para listar las plantillas de mensajes."] },
    { name: "pageId", kind: "line", label: ["Page ID", "ID da página", "ID de la página"], when: isSocial, from: setting("pageId") },
    { name: "accessToken", kind: "password", label: ["Access token", "Token de acesso", "Token de acceso"], hint: KEPT, when: isProvided },
    { name: "appSecret", kind: "password", label: ["App secret", "Segredo do aplicativo", "Secreto de la aplicación"], hint: KEPT, when: isProvided },
    { name: "verifyToken", kind: "password", label: ["Verify token", "Token de verificação", "Token de verificación"], hint: ["Choose any word and enter the same one at the provider.", "Escolha uma palavra e informe a mesma no provedor.", "Elija una palabra e indique la misma en el proveedor."], when: isProvided },
  ],
  preview: (values, channel) => (isChat({ type: values.type || channel?.type }) ? <Preview values={values} /> : null),
  made: (answer) => {
    notify(say(words.created));
    // What is to be put into one's pages, or entered at the provider, is the first thing there.
    go(`/channels/${(answer as ChannelSetup).id}`);
  },
  above: (channel) => <NextSteps channel={channel} />,
  beside: (channel, again) => (
    <>
      <PhoneAccount channel={channel} />
      <IdentitySecret channel={channel} again={again} />
    </>
  ),
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
    lead: ["Decide what users can do. Each user has one profile.", "Defina o que os usuários podem fazer. Cada usuário tem um perfil.", "Defina qué pueden hacer los usuarios. Cada usuario tiene un perfil."],
    empty: ["Create your first profile.", "Crie seu primeiro perfil.", "Cree su primer perfil."],
    goesWith: ["You can't delete a profile in use, or the last administrator profile.", "Não é possível excluir um perfil em uso nem o último de administrador.", "No se puede eliminar un perfil en uso ni el último de administrador."],
  },
  nameOf: (profile) => profile.name,
  columns: [
    { label: words.name, show: (profile) => profile.name },
    { label: ["Permissions", "Permissões", "Permisos"], kind: "number", show: (profile) => count(Object.keys(profile.permissions).length) },
    { label: ["Sees all cards", "Vê todos os cards", "Ve todas las tarjetas"], show: (profile) => say(profile.seesAllCards ? words.yes : words.no) },
    { label: words.updatedAt, show: (profile) => <Moment at={profile.updatedAt} /> },
  ],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "administers", kind: "check", label: ["Administrator: manages channels, users, profiles and API tokens", "Administrador: gerencia canais, usuários, perfis e tokens da API", "Administrador: gestiona canales, usuarios, perfiles y tokens de la API"] },
    { name: "seesAllCards", kind: "check", label: ["See all cards", "Ver todos os cards", "Ver todas las tarjetas"] },
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
      <p class="soft">{say(["Users see the boards of their queues. With “See all cards”, they see every board.", "Os usuários veem os quadros das suas filas. Com “Ver todos os cards”, veem todos os quadros.", "Los usuarios ven los tableros de sus colas. Con «Ver todas las tarjetas», ven todos los tableros."])}</p>
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
    lead: ["Companies on this server. Each sees only its own data.", "Empresas neste servidor. Cada uma só vê os próprios dados.", "Empresas en este servidor. Cada una solo ve sus propios datos."],
    empty: ["Create your first company, then go to it to set it up.", "Crie sua primeira empresa e acesse-a para configurá-la.", "Cree su primera empresa y acceda a ella para configurarla."],
    goesWith: ["", "", ""],
  },
  nameOf: (company) => company.name,
  columns: [
    { label: words.name, show: (company) => company.name },
    { label: ["Time zone", "Fuso horário", "Zona horaria"], show: (company) => company.timeZone },
    { label: ["API access", "Acesso à API", "Acceso a la API"], show: (company) => say(company.apiEnabled ? words.yes : words.no) },
    { label: words.state, show: (company) => <Active is={company.active} /> },
    { label: words.actions, kind: "actions", show: (company) => <OpenCompany company={company} /> },
  ],
  filters: [{ name: "active", kind: "choice", label: words.state, options: [["true", words.active], ["false", words.inactive]] }],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "timeZone", kind: "line", label: ["Time zone", "Fuso horário", "Zona horaria"], example: "America/Sao_Paulo", initial: Intl.DateTimeFormat().resolvedOptions().timeZone },
    { name: "apiEnabled", kind: "check", label: ["API access", "Acesso à API", "Acceso a la API"], initial: true },
    { name: "ratePerMinute", kind: "number", label: ["API calls per minute", "Chamadas da API por minuto", "Llamadas a la API por minuto"], hint: ["Leave empty for the server's default.", "Deixe vazio para usar o padrão do servidor.", "Déjelo vacío para usar el valor del servidor."] },
    { name: "secondFactorRequired", kind: "check", label: ["Require two-step verification for everyone", "Exigir verificação em duas etapas para todos", "Exigir la verificación en dos pasos a todos"], only: "old" },
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
      label={`${say(["Go to company", "Acessar empresa", "Ir a la empresa"])}: ${company.name}`}
      onClick={() => {
        go("/", { scope: company.id });
      }}
    >
      {say(["Go to company", "Acessar empresa", "Ir a la empresa"])}
    </Button>
  );
}
