// Why the service refuses something, in the reader's language.

import { Refused } from "./client";
import { counted, list, say, type Counted, type Text } from "./text";
import { words } from "./words";

/** Phrases of the API that follow a field's name. What is not here is said as the API says it. */
const REASONS: [RegExp, Text][] = [
  [/^is required/, ["This field is required.", "Preencha este campo.", "Complete este campo."]],
  [/^must not be (blank|empty)/, ["This field is required.", "Preencha este campo.", "Complete este campo."]],
  [/^is taken$/, ["Already in use.", "Já está em uso.", "Ya está en uso."]],
  [/^must be unique/, ["Each value must be different.", "Há valores repetidos.", "Hay valores repetidos."]],
  [/^must have at most (\d+) characters/, ["Use at most {0} characters.", "Use no máximo {0} caracteres.", "Use como máximo {0} caracteres."]],
  [/^must have at least (\d+) characters/, ["Use at least {0} characters.", "Use no mínimo {0} caracteres.", "Use al menos {0} caracteres."]],
  [/^must have at most (\d+) items/, ["At most {0} items.", "No máximo {0} itens.", "Como máximo {0} elementos."]],
  [/^must have (\d+) to (\d+) characters/, ["Use {0} to {1} characters.", "Use de {0} a {1} caracteres.", "Use de {0} a {1} caracteres."]],
  [/^must not contain spaces/, ["Spaces are not allowed.", "Não use espaços.", "No use espacios."]],
  [/^must be an integer from (\d+) to (\d+)/, ["Enter a whole number from {0} to {1}.", "Digite um número inteiro de {0} a {1}.", "Escriba un número entero de {0} a {1}."]],
  [/^must be (a number|an integer)/, ["Enter a number.", "Digite um número.", "Escriba un número."]],
  [/^must not be negative/, ["Enter zero or more.", "Digite zero ou mais.", "Escriba cero o más."]],
  [/^must be above 0/, ["Enter a number above zero.", "Digite um número maior que zero.", "Escriba un número mayor que cero."]],
  [/^must be an e-mail address/, ["Enter a valid e-mail address.", "Digite um e-mail válido.", "Escriba un correo electrónico válido."]],
  [/^must be an https? (or https )?(URL|address)/, ["Enter an address that starts with https://.", "Digite um endereço que comece com https://.", "Escriba una dirección que empiece por https://."]],
  [/^must be one line/, ["Use one line only.", "Use uma só linha.", "Use una sola línea."]],
  [/^must be in the future/, ["Choose a time in the future.", "Escolha um horário no futuro.", "Elija un momento futuro."]],
  [/^must be a phone number/, ["Use 8 to 15 digits, with the country code.", "Use de 8 a 15 dígitos, com o código do país.", "Use de 8 a 15 dígitos, con el código de país."]],
  [/^must be a colour/, ["Enter a color such as #2563eb.", "Digite uma cor como #2563eb.", "Escriba un color como #2563eb."]],
  [/^must be one word/, ["Use one word only.", "Use uma só palavra.", "Use una sola palabra."]],
  [/^must be a letter followed by up to (\d+) letters, digits/, ["Start with a letter, then use letters, digits and _ (at most {0} more).", "Comece com uma letra e use letras, dígitos e _ (no máximo mais {0}).", "Empiece por una letra y use letras, dígitos y _ (como máximo {0} más)."]],
  [/^must be a whole number from (\S+) to (\S+)/, ["Enter a whole number from {0} to {1}.", "Digite um número inteiro de {0} a {1}.", "Escriba un número entero de {0} a {1}."]],
  [/^must have words of 1 to (\d+) characters/, ["Use words of at most {0} characters.", "Use palavras de no máximo {0} caracteres.", "Use palabras de como máximo {0} caracteres."]],
  [/^must grant at least one permission/, ["Choose at least one permission.", "Escolha ao menos uma permissão.", "Elija al menos un permiso."]],
  [/^must be an IPv4 address or range/, ["Use IPv4 addresses or ranges, such as 203.0.113.7 or 198.51.100.0/24.", "Use endereços ou faixas IPv4, como 203.0.113.7 ou 198.51.100.0/24.", "Use direcciones o rangos IPv4, como 203.0.113.7 o 198.51.100.0/24."]],
  [/^must have at most (\d+) addresses and ranges/, ["Use at most {0} addresses.", "Use no máximo {0} endereços.", "Use como máximo {0} direcciones."]],
  [/^must be an origin/, ["Each line must be a website address such as https://shop.example.", "Cada linha deve ser um endereço de site como https://loja.example.", "Cada línea debe ser una dirección de sitio web como https://tienda.example."]],
  [/^must be a URL that starts with/, ["Enter an address that starts with https://.", "Digite um endereço que comece com https://.", "Escriba una dirección que empiece por https://."]],
  [/^must have at most (\d+) decimals/, ["Use at most {0} decimal places.", "Use no máximo {0} casas decimais.", "Use como máximo {0} decimales."]],
  [/^must be a CPF/, ["Enter a valid CPF or CNPJ.", "Digite um CPF ou CNPJ válido.", "Escriba un CPF o CNPJ válido."]],
  [/^must be a date like/, ["Enter a date such as 2026-01-31.", "Digite uma data como 2026-01-31.", "Escriba una fecha como 2026-01-31."]],
  [/^must be (one of|true or false)/, ["Choose one of the options.", "Escolha uma das opções.", "Elija una de las opciones."]],
  [/^must be a value of/, ["Choose one of the options.", "Escolha uma das opções.", "Elija una de las opciones."]],
  [/^is not your password/, ["Wrong password.", "Senha incorreta.", "Contraseña incorrecta."]],
  [/^is not the current code/, ["Wrong code. Enter the one that your app shows now.", "Código incorreto. Digite o que o aplicativo mostra agora.", "Código incorrecto. Escriba el que muestra ahora la aplicación."]],
  [/^is too easy to guess: it repeats/, ["This password repeats characters or follows the alphabet or the keyboard.", "Esta senha repete caracteres ou segue o alfabeto ou o teclado.", "Esta contraseña repite caracteres o sigue el alfabeto o el teclado."]],
  [/^is too easy to guess: it is based on/, ["This password is too similar to the e-mail address or the name.", "Esta senha é parecida demais com o e-mail ou o nome.", "Esta contraseña se parece demasiado al correo electrónico o al nombre."]],
  [/^is one of the most common passwords/, ["This password is too easy to guess.", "Esta senha é fácil demais de adivinhar.", "Esta contraseña es demasiado fácil de adivinar."]],
  [/^cannot be required before you set up a second factor/, ["Set up your own two-step verification first.", "Configure antes a sua própria verificação em duas etapas.", "Configure antes su propia verificación en dos pasos."]],
  [/^does not apply to a/, ["Not available for this type of channel.", "Não disponível neste tipo de canal.", "No disponible en este tipo de canal."]],
  [/^must be a time zone/, ["Enter a time zone such as America/Sao_Paulo.", "Digite um fuso horário como America/Sao_Paulo.", "Escriba una zona horaria como America/Sao_Paulo."]],
];

export function reason(phrase: string): string {
  for (const [pattern, text] of REASONS) {
    const found = pattern.exec(phrase);
    if (found) return say(text, Object.fromEntries(found.slice(1).map((value, at) => [at, value])));
  }
  // English without the translation is better than nothing said.
  return `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;
}

/** What the service counts: records in the way of a change, or as many of them as there may be. */
const TYPES: Record<string, Counted> = {
  ticket: { one: ["{count} conversation", "{count} conversa", "{count} conversación"], other: ["{count} conversations", "{count} conversas", "{count} conversaciones"] },
  openTicket: { one: ["{count} open conversation", "{count} conversa aberta", "{count} conversación abierta"], other: ["{count} open conversations", "{count} conversas abertas", "{count} conversaciones abiertas"] },
  channel: { one: ["{count} channel", "{count} canal", "{count} canal"], other: ["{count} channels", "{count} canais", "{count} canales"] },
  queue: { one: ["{count} queue", "{count} fila", "{count} cola"], other: ["{count} queues", "{count} filas", "{count} colas"] },
  queueLink: { one: ["{count} link to a queue", "{count} vínculo com fila", "{count} vínculo con cola"], other: ["{count} links to queues", "{count} vínculos com filas", "{count} vínculos con colas"] },
  user: { one: ["{count} user", "{count} usuário", "{count} usuario"], other: ["{count} users", "{count} usuários", "{count} usuarios"] },
  contact: { one: ["{count} contact", "{count} contato", "{count} contacto"], other: ["{count} contacts", "{count} contatos", "{count} contactos"] },
  wrapupType: { one: ["{count} wrap-up type", "{count} tipo de encerramento", "{count} tipo de cierre"], other: ["{count} wrap-up types", "{count} tipos de encerramento", "{count} tipos de cierre"] },
  customField: { one: ["{count} custom field", "{count} campo personalizado", "{count} campo personalizado"], other: ["{count} custom fields", "{count} campos personalizados", "{count} campos personalizados"] },
  globalVariable: { one: ["{count} variable", "{count} variável", "{count} variable"], other: ["{count} variables", "{count} variáveis", "{count} variables"] },
  webhook: { one: ["{count} webhook", "{count} webhook", "{count} webhook"], other: ["{count} webhooks", "{count} webhooks", "{count} webhooks"] },
  token: { one: ["{count} token", "{count} token", "{count} token"], other: ["{count} tokens", "{count} tokens", "{count} tokens"] },
  card: { one: ["{count} card", "{count} card", "{count} tarjeta"], other: ["{count} cards", "{count} cards", "{count} tarjetas"] },
  crmBoardList: { one: ["{count} stage", "{count} etapa", "{count} etapa"], other: ["{count} stages", "{count} etapas", "{count} etapas"] },
  webchatSession: { one: ["{count} active visitor session", "{count} sessão de visitante ativa", "{count} sesión de visitante activa"], other: ["{count} active visitor sessions", "{count} sessões de visitantes ativas", "{count} sesiones de visitantes activas"] },
  campaign: { one: ["{count} campaign", "{count} campanha", "{count} campaña"], other: ["{count} campaigns", "{count} campanhas", "{count} campañas"] },
  schedule: { one: ["{count} scheduled message", "{count} mensagem agendada", "{count} mensaje programado"], other: ["{count} scheduled messages", "{count} mensagens agendadas", "{count} mensajes programados"] },
  record: { one: ["{count} record", "{count} registro", "{count} registro"], other: ["{count} records", "{count} registros", "{count} registros"] },
};

/** What stands in the way of another change than a deletion. */
const COUNTED_CONFLICTS: Record<string, Text> = {
  limit: ["You already have the maximum of {what}.", "Você já tem o máximo de {what}.", "Ya tiene el máximo de {what}."],
  too_many: ["You already have the maximum of {what}.", "Você já tem o máximo de {what}.", "Ya tiene el máximo de {what}."],
  has_values: ["Can't change the type: the field has values in {what}.", "Não é possível mudar o tipo: o campo tem valores em {what}.", "No se puede cambiar el tipo: el campo tiene valores en {what}."],
  options_in_use: ["Can't remove options that are in use in {what}.", "Não é possível remover opções em uso em {what}.", "No se pueden quitar opciones en uso en {what}."],
};

/** Records that count, and that the reader may not see. */
const UNSEEN: Text = ["records that you can't see", "registros que você não pode ver", "registros que usted no puede ver"];

/** A type as the service names it: `wrap-up type`, or `wrapupType`. */
const camel = (type: string) => type.replace(/-/g, "").replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase());

function inTheWay(failed: Refused): string {
  const why = reasonOf(failed.details);
  const what = failed.by
    .filter((it) => it.count > 0)
    .map((it) => counted(it.count, TYPES[why.startsWith("open_ticket") && it.type === "ticket" ? "openTicket" : camel(it.type)] ?? TYPES.record!));
  return say(COUNTED_CONFLICTS[why] ?? words.inTheWay, { what: what.length ? list(what) : say(UNSEEN) });
}

/** Why a change does not fit how things are, by the API's word for it. */
const CONFLICTS: Record<string, Text> = {
  revoked: ["The token is revoked.", "O token está revogado.", "El token está revocado."],
  in_force: ["Two-step verification is already on.", "A verificação em duas etapas já está ativa.", "La verificación en dos pasos ya está activa."],
  none: ["Two-step verification is not set up.", "A verificação em duas etapas não está configurada.", "La verificación en dos pasos no está configurada."],
  required: ["Two-step verification is required here.", "A verificação em duas etapas é obrigatória aqui.", "Aquí la verificación en dos pasos es obligatoria."],
  last_administering_profile: ["At least one profile must be an administrator profile.", "Pelo menos um perfil precisa ser de administrador.", "Al menos un perfil debe ser de administrador."],
  last_administrator: ["The company needs at least one active administrator.", "A empresa precisa de pelo menos um administrador ativo.", "La empresa necesita al menos un administrador activo."],
  type: ["Not available for this type of channel.", "Não disponível neste tipo de canal.", "No disponible en este tipo de canal."],
  inactive: ["Inactive. Activate it first.", "Inativo. Ative primeiro.", "Inactivo. Actívelo primero."],
  in_use: ["Still in use.", "Ainda está em uso.", "Todavía está en uso."],
};

const reasonOf = (details: unknown): string =>
  details && typeof details === "object" && "reason" in details && typeof details.reason === "string" ? details.reason : "";

function forbidden({ code, message }: Refused): string {
  // Who has set up a proxy reads what is missing there.
  if (code === "ERR_API_FORBIDDEN_ORIGIN" && message) return message;
  return say(code === "ERR_API_COMPANY_INACTIVE" ? words.companyInactive : words.forbidden);
}

/** What to say of anything that went wrong. */
export function explain(failed: unknown): string {
  if (!(failed instanceof Refused)) return failed instanceof Error ? failed.message : String(failed);
  if (failed.status === 0 || failed.status === 503) return say(words.unreachable);
  if (failed.status === 429) return counted(failed.retryAfterS ?? 60, words.tooFast);
  if (failed.status === 404) return say(words.gone);
  if (failed.status === 403) return forbidden(failed);
  if (failed.status >= 500) return say(words.broken, { message: failed.message });
  if (failed.by.length) return inTheWay(failed);
  if (failed.fields.length) return say(words.fieldsWrong);
  const conflict = CONFLICTS[reasonOf(failed.details)];
  if (failed.status === 409 && conflict) return say(conflict);
  return failed.message;
}
