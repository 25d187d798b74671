// Why the service refuses something, in the reader's language.

import { Refused } from "./client";
import { count, list, language, say, type Text } from "./text";
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
  [/^must not contain blanks/, ["Without spaces, please.", "Sem espaços, por favor.", "Sin espacios, por favor."]],
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
const TYPES: Record<string, Text> = {
  ticket: ["open tickets", "atendimentos abertos", "tickets abiertos"],
  channel: ["channels", "canais", "canales"],
  user: ["users", "usuários", "usuarios"],
  wrapupType: ["wrap-up types", "tipos de encerramento", "tipos de cierre"],
  card: ["cards", "cards", "tarjetas"],
  session: ["active visitor sessions", "sessões de visitantes ativas", "sesiones de visitantes activas"],
  campaign: ["campaigns", "campanhas", "campañas"],
  schedule: ["scheduled messages", "mensagens agendadas", "mensajes programados"],
};

/** What to say of anything that went wrong. */
export function explain(failed: unknown): string {
  if (!(failed instanceof Refused)) return failed instanceof Error ? failed.message : String(failed);
  if (failed.status === 0 || failed.status === 503) return say(words.unreachable);
  if (failed.status === 429) return say(words.tooFast, { seconds: failed.retryAfterS ?? 60 });
  if (failed.status === 404) return say(words.gone);
  if (failed.status === 403) return language.value === "en" && failed.message ? failed.message : say(words.forbidden);
  if (failed.status >= 500) return say(words.broken, { message: failed.message });
  if (failed.by.length) {
    const what = failed.by.map((it) => `${count(it.count)} ${TYPES[it.type] ? say(TYPES[it.type]!) : it.type}`);
    return say(words.inTheWay, { what: list(what) });
  }
  if (failed.fields.length) return say(words.fieldsWrong);
  return failed.message;
}
