// What the widget says, in the visitor's language.

import { said } from "./script.js";

const ENGLISH = {
  title: "Chat with us",
  greeting: "Hi, how can we help?",
  open: "Open the chat",
  openUnread: (count) => `Open the chat, ${count} unread`,
  close: "Close the chat",
  online: "Online now",
  away: "Leave us a message",
  dismiss: "Dismiss",
  connecting: "Connecting…",
  offline: "You're offline. Your messages will be sent when you're back online.",
  unreachable: "Reconnecting… Your messages are saved and will be sent.",
  conversation: "Conversation",
  write: "Write a message…",
  send: "Send",
  attach: "Attach a file",
  you: "You",
  us: "Support",
  typing: (name) => `${name} is typing`,
  waiting: "Waiting to be sent",
  sent: "Sent",
  read: "Read",
  failed: "Not sent",
  retry: "Try again",
  discard: "Delete",
  today: "Today",
  yesterday: "Yesterday",
  newMessages: "New messages",
  announce: (name, text) => `New message from ${name}: ${text}`,
  ended: "This conversation has ended.",
  again: "Start a new conversation",
  end: "End the conversation",
  endAsk: "End this conversation?",
  endYes: "End conversation",
  endNo: "Keep chatting",
  notEnded: "Couldn't end the conversation. Try again.",
  before: "Before we begin",
  beforeText: "Tell us who you are so we can get back to you.",
  name: "Name",
  email: "E-mail",
  number: "Phone number",
  begin: "Start the chat",
  notBegun: "Couldn't start the chat. Try again.",
  required: "Please fill in this field.",
  badEmail: "Enter a valid e-mail address.",
  badNumber: "Use 8 to 15 digits, with country and area code.",
  choose: "Choose one",
  chosen: "Your choice",
  closeList: "Close the list",
  shareLocation: "Share my location",
  locating: "Finding your location…",
  noLocation: "We couldn't get your location. You can write your address instead.",
  location: "Location",
  previous: "Previous",
  next: "Next",
  cards: (count) => `${count} ${count === 1 ? "card" : "cards"}`,
  image: "Image",
  video: "Video",
  file: "File",
  opensNew: "opens in a new tab",
  tooLarge: (size) => `The file is larger than ${size}.`,
  badFile: "This file type can't be sent.",
  unreadable: "The file has changed or no longer exists. Please attach it again.",
  lostFile: "The page was reloaded before the file was sent. Please attach it again.",
  tooLong: "This is too long. Please shorten it.",
  emptyFile: "This file is empty.",
  earlier: "Show earlier messages",
  busy: "Too many messages at once. Sending shortly…",
  quoted: "In reply to",
  drop: "Drop the file to send it",
};

const PORTUGUESE = {
  title: "Fale conosco",
  greeting: "Olá, como podemos ajudar?",
  open: "Abrir o chat",
  openUnread: (count) => `Abrir o chat, ${count} não ${count === 1 ? "lida" : "lidas"}`,
  close: "Fechar o chat",
  online: "Online agora",
  away: "Deixe uma mensagem",
  dismiss: "Dispensar",
  connecting: "Conectando…",
  offline: "Você está offline. Suas mensagens serão enviadas quando a conexão voltar.",
  unreachable: "Reconectando… Suas mensagens foram salvas e serão enviadas.",
  conversation: "Conversa",
  write: "Escreva uma mensagem…",
  send: "Enviar",
  attach: "Anexar um arquivo",
  you: "Você",
  us: "Atendimento",
  typing: (name) => `${name} está digitando`,
  waiting: "Aguardando envio",
  sent: "Enviada",
  read: "Lida",
  failed: "Não enviada",
  retry: "Tentar de novo",
  discard: "Apagar",
  today: "Hoje",
  yesterday: "Ontem",
  newMessages: "Novas mensagens",
  announce: (name, text) => `Nova mensagem de ${name}: ${text}`,
  ended: "Esta conversa foi encerrada.",
  again: "Iniciar uma nova conversa",
  end: "Encerrar a conversa",
  endAsk: "Encerrar esta conversa?",
  endYes: "Encerrar conversa",
  endNo: "Continuar conversando",
  notEnded: "Não foi possível encerrar a conversa. Tente de novo.",
  before: "Antes de começar",
  beforeText: "Diga quem você é para podermos responder.",
  name: "Nome",
  email: "E-mail",
  number: "Telefone",
  begin: "Iniciar o chat",
  notBegun: "Não foi possível iniciar o chat. Tente de novo.",
  required: "Preencha este campo.",
  badEmail: "Digite um e-mail válido.",
  badNumber: "Use de 8 a 15 dígitos, com código do país e DDD.",
  choose: "Escolha uma opção",
  chosen: "Sua escolha",
  closeList: "Fechar a lista",
  shareLocation: "Enviar minha localização",
  locating: "Buscando sua localização…",
  noLocation: "Não conseguimos obter sua localização. Você pode escrever seu endereço.",
  location: "Localização",
  previous: "Anterior",
  next: "Próximo",
  cards: (count) => `${count} ${count === 1 ? "cartão" : "cartões"}`,
  image: "Imagem",
  video: "Vídeo",
  file: "Arquivo",
  opensNew: "abre em nova aba",
  tooLarge: (size) => `O arquivo passa de ${size}.`,
  badFile: "Este tipo de arquivo não pode ser enviado.",
  unreadable: "O arquivo mudou ou não existe mais. Anexe-o de novo.",
  lostFile: "A página foi recarregada antes do envio do arquivo. Anexe-o de novo.",
  tooLong: "O texto é longo demais. Encurte-o.",
  emptyFile: "Este arquivo está vazio.",
  earlier: "Mostrar mensagens anteriores",
  busy: "Muitas mensagens de uma vez. Enviando em instantes…",
  quoted: "Em resposta a",
  drop: "Solte o arquivo para enviar",
};

const SPANISH = {
  title: "Chatea con nosotros",
  greeting: "Hola, ¿en qué podemos ayudarte?",
  open: "Abrir el chat",
  openUnread: (count) => `Abrir el chat, ${count} sin leer`,
  close: "Cerrar el chat",
  online: "En línea ahora",
  away: "Déjanos un mensaje",
  dismiss: "Cerrar",
  connecting: "Conectando…",
  offline: "No tienes conexión. Tus mensajes se enviarán cuando vuelva.",
  unreachable: "Reconectando… Tus mensajes están guardados y se enviarán.",
  conversation: "Conversación",
  write: "Escribe un mensaje…",
  send: "Enviar",
  attach: "Adjuntar un archivo",
  you: "Tú",
  us: "Atención al cliente",
  typing: (name) => `${name} está escribiendo`,
  waiting: "Pendiente de envío",
  sent: "Enviado",
  read: "Leído",
  failed: "No enviado",
  retry: "Reintentar",
  discard: "Borrar",
  today: "Hoy",
  yesterday: "Ayer",
  newMessages: "Mensajes nuevos",
  announce: (name, text) => `Mensaje nuevo de ${name}: ${text}`,
  ended: "Esta conversación ha terminado.",
  again: "Empezar una conversación nueva",
  end: "Terminar la conversación",
  endAsk: "¿Terminar esta conversación?",
  endYes: "Terminar conversación",
  endNo: "Seguir chateando",
  notEnded: "No se pudo terminar la conversación. Inténtalo de nuevo.",
  before: "Antes de empezar",
  beforeText: "Dinos quién eres para poder responderte.",
  name: "Nombre",
  email: "Correo electrónico",
  number: "Teléfono",
  begin: "Empezar el chat",
  notBegun: "No se pudo empezar el chat. Inténtalo de nuevo.",
  required: "Completa este campo.",
  badEmail: "Escribe un correo electrónico válido.",
  badNumber: "Usa de 8 a 15 dígitos, con código de país y de área.",
  choose: "Elige una opción",
  chosen: "Tu elección",
  closeList: "Cerrar la lista",
  shareLocation: "Enviar mi ubicación",
  locating: "Buscando tu ubicación…",
  noLocation: "No pudimos obtener tu ubicación. Puedes escribir tu dirección.",
  location: "Ubicación",
  previous: "Anterior",
  next: "Siguiente",
  cards: (count) => `${count} ${count === 1 ? "tarjeta" : "tarjetas"}`,
  image: "Imagen",
  video: "Vídeo",
  file: "Archivo",
  opensNew: "se abre en otra pestaña",
  tooLarge: (size) => `El archivo supera ${size}.`,
  badFile: "Este tipo de archivo no se puede enviar.",
  unreadable: "El archivo cambió o ya no existe. Adjúntalo de nuevo.",
  lostFile: "La página se recargó antes de enviar el archivo. Adjúntalo de nuevo.",
  tooLong: "El texto es demasiado largo. Acórtalo.",
  emptyFile: "Este archivo está vacío.",
  earlier: "Mostrar mensajes anteriores",
  busy: "Demasiados mensajes a la vez. Enviando en un momento…",
  quoted: "En respuesta a",
  drop: "Suelta el archivo para enviarlo",
};

const LANGUAGES = { en: ENGLISH, pt: PORTUGUESE, es: SPANISH };

/** Whether dates and numbers can be written in it: what a page says may be no language. */
function isLanguage(tag) {
  try {
    Intl.getCanonicalLocales(tag);
    return true;
  } catch {
    return false;
  }
}

/** The language of the line, or the first of the browser's that the widget speaks, with its region for dates and numbers. */
function preferred() {
  const own = navigator.languages && navigator.languages.length ? navigator.languages : [navigator.language || "en"];
  const wanted = isLanguage(said("language")) ? [said("language"), ...own] : own;
  return wanted.find((tag) => tag.slice(0, 2).toLowerCase() in LANGUAGES) || "en";
}

export const language = preferred();

export const words = LANGUAGES[language.slice(0, 2).toLowerCase()];

const timeFormat = new Intl.DateTimeFormat(language, { hour: "numeric", minute: "2-digit" });
const dayFormat = new Intl.DateTimeFormat(language, { weekday: "long", day: "numeric", month: "long" });
const oldDayFormat = new Intl.DateTimeFormat(language, { day: "numeric", month: "long", year: "numeric" });

export const time = (date) => timeFormat.format(date);

/** Days between two moments, by the visitor's calendar. */
const daysBetween = (one, other) =>
  Math.round((new Date(other).setHours(12, 0, 0, 0) - new Date(one).setHours(12, 0, 0, 0)) / 86_400_000);

export const isSameDay = (one, other) => daysBetween(one, other) === 0;

export function day(date, now = new Date()) {
  const ago = daysBetween(date, now);
  if (ago <= 0) return words.today;
  if (ago === 1) return words.yesterday;
  const text = (ago < 180 ? dayFormat : oldDayFormat).format(date);
  return text[0].toUpperCase() + text.slice(1);
}

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"];

export function fileSize(bytes) {
  const power = bytes < 1 ? 0 : Math.min(3, Math.floor(Math.log2(bytes) / 10));
  const options = { style: "unit", unit: UNITS[power], unitDisplay: power ? "short" : "long", maximumFractionDigits: power > 1 ? 1 : 0 };
  return new Intl.NumberFormat(language, options).format(bytes / 1024 ** power);
}
