// Why the service refuses something, in the reader's language.

import { Refused } from "./client";
import { count, counted, list, language, say, type Counted, type Text } from "./text";
import { words } from "./words";

/** Phrases of the API that follow a field's name. What is not here is said as the API says it. */
const REASONS: [RegExp, Text][] = [
  [/^is required/, ["Please fill this in.", "Preencha este campo.", "Complete este campo."]],
  [/^must not be (blank|empty)/, ["Please fill this in.", "Preencha este campo.", "Complete este campo."]],
  [/^is taken$/, ["This is taken already.", "Já está em uso.", "Ya está en uso."]],
  [/^must be unique/, ["This is there twice.", "Está repetido.", "Está repetido."]],
  [/^must have at most (\d+) characters/, ["At most {0} characters.", "No máximo {0} caracteres.", "Como máximo {0} caracteres."]],
  [/^must have at least (\d+) characters/, ["At least {0} characters.", "No mínimo {0} caracteres.", "Al menos {0} caracteres."]],
  [/^must have at most (\d+) items/, ["At most {0}.", "No máximo {0}.", "Como máximo {0}."]],
  [/^must have (\d+) to (\d+) characters/, ["From {0} to {1} characters.", "De {0} a {1} caracteres.", "De {0} a {1} caracteres."]],
  [/^must not contain spaces/, ["Without spaces, please.", "Sem espaços, por favor.", "Sin espacios, por favor."]],
  [/^must be an integer from (\d+) to (\d+)/, ["A whole number from {0} to {1}.", "Um número inteiro de {0} a {1}.", "Un número entero de {0} a {1}."]],
  [/^must be (a number|an integer)/, ["A number, please.", "Digite um número.", "Escriba un número."]],
  [/^must not be negative/, ["Not below zero.", "Não pode ser negativo.", "No puede ser negativo."]],
  [/^must be above 0/, ["More than zero.", "Maior que zero.", "Mayor que cero."]],
  [/^must be an e-mail address/, ["This is no e-mail address.", "Isto não é um e-mail.", "Esto no es un correo electrónico."]],
  [/^must be an https? (or https )?(URL|address)/, ["An address that starts with https://.", "Um endereço que comece com https://.", "Una dirección que empiece por https://."]],
  [/^must be one line/, ["One line, please.", "Em uma só linha.", "En una sola línea."]],
  [/^must be in the future/, ["A moment in the future, please.", "Escolha um momento no futuro.", "Elija un momento futuro."]],
  [/^must be a phone number/, ["8 to 15 digits, with the country's code.", "De 8 a 15 dígitos, com o código do país.", "De 8 a 15 dígitos, con el código del país."]],
  [/^must be a colour/, ["A color such as #2563eb.", "Uma cor como #2563eb.", "Un color como #2563eb."]],
  [/^must be one word/, ["One word, please.", "Uma só palavra.", "Una sola palabra."]],
  [/^must be a letter followed by up to (\d+) letters, digits/, ["A letter first, then letters, digits and _: at most {0} more.", "Primeiro uma letra, depois letras, dígitos e _: no máximo mais {0}.", "Primero una letra, después letras, dígitos y _: como máximo {0} más."]],
  [/^must be a whole number from (\S+) to (\S+)/, ["A whole number from {0} to {1}.", "Um número inteiro de {0} a {1}.", "Un número entero de {0} a {1}."]],
  [/^must have words of 1 to (\d+) characters/, ["Words of at most {0} characters.", "Palavras de no máximo {0} caracteres.", "Palabras de como máximo {0} caracteres."]],
  [/^must grant at least one permission/, ["Permit something at least.", "Permita ao menos alguma coisa.", "Permita al menos algo."]],
  [/^must be an IPv4 address or range/, ["IPv4 addresses or ranges, such as 203.0.113.7 or 198.51.100.0/24.", "Endereços ou faixas IPv4, como 203.0.113.7 ou 198.51.100.0/24.", "Direcciones o rangos IPv4, como 203.0.113.7 o 198.51.100.0/24."]],
  [/^must have at most (\d+) addresses and ranges/, ["At most {0} addresses.", "No máximo {0} endereços.", "Como máximo {0} direcciones."]],
  [/^must be an origin/, ["An origin such as https://shop.example.", "Uma origem como https://loja.example.", "Un origen como https://tienda.example."]],
  [/^must be a URL that starts with/, ["An address that starts with https://.", "Um endereço que comece com https://.", "Una dirección que empiece por https://."]],
  [/^must have at most (\d+) decimals/, ["At most {0} decimals.", "No máximo {0} casas decimais.", "Como máximo {0} decimales."]],
  [/^must be a CPF/, ["A CPF or CNPJ with valid check digits.", "Um CPF ou CNPJ com dígitos verificadores válidos.", "Un CPF o CNPJ con dígitos de control válidos."]],
  [/^must be a date like/, ["A date such as 2026-01-31.", "Uma data como 2026-01-31.", "Una fecha como 2026-01-31."]],
  [/^must be (one of|true or false)/, ["Choose one of what is offered.", "Escolha uma das opções.", "Elija una de las opciones."]],
  [/^must be a value of/, ["Choose one of what is offered.", "Escolha uma das opções.", "Elija una de las opciones."]],
  [/^is not your password/, ["This is not your password.", "Esta não é a sua senha.", "Esta no es su contraseña."]],
  [/^is not the current code/, ["This is not the code that the app shows now.", "Este não é o código que o aplicativo mostra agora.", "Este no es el código que la aplicación muestra ahora."]],
  [/^is one of the most common passwords/, ["This password is too easy to guess.", "Esta senha é fácil demais de adivinhar.", "Esta contraseña es demasiado fácil de adivinar."]],
  [/^cannot be required before you set up a second factor/, ["Set up your own second factor first.", "Configure antes o seu próprio segundo fator.", "Configure antes su propio segundo factor."]],
  [/^does not apply to a/, ["Channels of this type do not have it.", "Canais deste tipo não têm isto.", "Los canales de este tipo no lo tienen."]],
  [/^must be a time zone/, ["A time zone such as America/Sao_Paulo.", "Um fuso como America/Sao_Paulo.", "Una zona como America/Sao_Paulo."]],
];

export function reason(phrase: string): string {
  for (const [pattern, text] of REASONS) {
    const found = pattern.exec(phrase);
    if (found) return say(text, Object.fromEntries(found.slice(1).map((value, at) => [at, value])));
  }
  // English without the translation is better than nothing said.
  return `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;
}

/** What stands in the way of a deletion. */
const TYPES: Record<string, Counted> = {
  ticket: { one: ["{count} open ticket", "{count} atendimento aberto", "{count} ticket abierto"], other: ["{count} open tickets", "{count} atendimentos abertos", "{count} tickets abiertos"] },
  channel: { one: ["{count} channel", "{count} canal", "{count} canal"], other: ["{count} channels", "{count} canais", "{count} canales"] },
  user: { one: ["{count} user", "{count} usuário", "{count} usuario"], other: ["{count} users", "{count} usuários", "{count} usuarios"] },
  wrapupType: { one: ["{count} wrap-up type", "{count} tipo de encerramento", "{count} tipo de cierre"], other: ["{count} wrap-up types", "{count} tipos de encerramento", "{count} tipos de cierre"] },
  card: { one: ["{count} card", "{count} card", "{count} tarjeta"], other: ["{count} cards", "{count} cards", "{count} tarjetas"] },
  session: { one: ["{count} active visitor session", "{count} sessão de visitante ativa", "{count} sesión de visitante activa"], other: ["{count} active visitor sessions", "{count} sessões de visitantes ativas", "{count} sesiones de visitantes activas"] },
  campaign: { one: ["{count} campaign", "{count} campanha", "{count} campaña"], other: ["{count} campaigns", "{count} campanhas", "{count} campañas"] },
  schedule: { one: ["{count} scheduled message", "{count} mensagem agendada", "{count} mensaje programado"], other: ["{count} scheduled messages", "{count} mensagens agendadas", "{count} mensajes programados"] },
};

/** Why a change does not fit how things are, by the API's word for it. */
const CONFLICTS: Record<string, Text> = {
  revoked: ["The token is revoked.", "O token está revogado.", "El token está revocado."],
  in_force: ["There is a second factor already.", "Já existe um segundo fator.", "Ya hay un segundo factor."],
  none: ["There is no second factor.", "Não há segundo fator.", "No hay segundo factor."],
  required: ["A second factor is required here.", "Aqui o segundo fator é obrigatório.", "Aquí se exige un segundo factor."],
  last_administering_profile: ["No profile would administer the company any more.", "Nenhum perfil administraria mais a empresa.", "Ningún perfil administraría ya la empresa."],
  last_administrator: ["Nobody would administer the company any more.", "Ninguém administraria mais a empresa.", "Nadie administraría ya la empresa."],
  type: ["Channels of this type do not have it.", "Canais deste tipo não têm isto.", "Los canales de este tipo no lo tienen."],
  in_use: ["It is still in use.", "Ainda está em uso.", "Todavía está en uso."],
};

const reasonOf = (details: unknown): string =>
  details && typeof details === "object" && "reason" in details && typeof details.reason === "string" ? details.reason : "";

/** What to say of anything that went wrong. */
export function explain(failed: unknown): string {
  if (!(failed instanceof Refused)) return failed instanceof Error ? failed.message : String(failed);
  if (failed.status === 0 || failed.status === 503) return say(words.unreachable);
  if (failed.status === 429) return counted(failed.retryAfterS ?? 60, words.tooFast);
  if (failed.status === 404) return say(words.gone);
  if (failed.status === 403) return language.value === "en" && failed.message ? failed.message : say(words.forbidden);
  if (failed.status >= 500) return say(words.broken, { message: failed.message });
  if (failed.by.length) {
    const what = failed.by.map((it) => (TYPES[it.type] ? counted(it.count, TYPES[it.type]!) : `${count(it.count)} ${it.type}`));
    return say(words.inTheWay, { what: list(what) });
  }
  if (failed.fields.length) return say(words.fieldsWrong);
  const conflict = CONFLICTS[reasonOf(failed.details)];
  if (failed.status === 409 && conflict) return say(conflict);
  return failed.message;
}
