// One message in the transcript.

import { FILE_WAITS_MS } from "./chat.js";
import { h, hidden, icon } from "./dom.js";
import { interactive } from "./interactive.js";
import { media } from "./media.js";
import { locationIn } from "./place.js";
import { link, linked, short } from "./text.js";
import { fileSize, time, words } from "./words.js";

/** How much of a message that is answered stands above the answer. */
const QUOTE_CHARACTERS_MAX = 200;

/** Reasons a visitor can do something about. */
const REASONS = { lostFile: words.lostFile, unreadable: words.unreadable, ERR_API_MEDIA_TYPE_MISMATCH: words.badFile, ERR_API_MEDIA_TYPE_UNKNOWN: words.badFile };

function reason(entry, chat) {
  if (entry.failed === "tooLarge" || (entry.file && entry.status === 413)) return words.tooLarge(fileSize(chat.fileBytesMax));
  if (entry.status === 413) return words.tooLong;
  if (entry.failed === "empty" || entry.failed === "ERR_API_MEDIA_EMPTY") return words.emptyFile;
  if (entry.status === 415) return words.badFile;
  return REASONS[entry.failed] || "";
}

const text = (body) => h("p", { dir: "auto" }, linked(body));

function place({ lat, lon }, url) {
  const where = `${lat.toFixed(4)}, ${lon.toFixed(4)}`;
  return link(
    url,
    { class: "file place" },
    h("span", { class: "file-icon" }, icon("pin")),
    h("span", { class: "file-name" }, words.location, h("small", {}, where)),
    hidden(`(${words.opensNew})`),
  );
}

/** A picture that is not sent yet, drawn, because a page may forbid pictures from memory. */
function preview(file) {
  const canvas = h("canvas", { class: "preview", role: "img", "aria-label": file.name });
  createImageBitmap(file).then(
    (bitmap) => {
      const scale = Math.min(1, 480 / Math.max(bitmap.width, bitmap.height));
      canvas.width = Math.max(1, Math.round(bitmap.width * scale));
      canvas.height = Math.max(1, Math.round(bitmap.height * scale));
      canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      bitmap.close();
    },
    () => canvas.replaceWith(chip(file)),
  );
  return canvas;
}

const chip = ({ name, size }) =>
  h(
    "span",
    { class: "file" },
    h("span", { class: "file-icon" }, icon("file")),
    h("span", { class: "file-name" }, h("bdi", {}, name), size ? h("small", {}, fileSize(size)) : null),
  );

/** The content of the bubble, and a function that takes the answer chosen from it. */
function content(message, chat) {
  if (message.type === "interactive" && message.interactive) return interactive(message, chat);
  const shared = locationIn(message.body);
  const parts = [];
  if (message.file) parts.push(message.file instanceof File && message.file.type.startsWith("image/") && !message.file.type.includes("svg") ? preview(message.file) : chip(message.file));
  if (message.media) parts.push(media(message.media, chat.door.base));
  if (shared) parts.push(place(shared, message.body));
  else if (message.body) parts.push(text(message.body));
  return { node: h("div", { class: "bubble" }, parts) };
}

/** The line of a message that this one answers. */
function quote(message, chat) {
  const quoted = message.direction === "outbound" && chat.messages.get(message.quotedMessageId);
  const excerpt = quoted && (quoted.body || (quoted.interactive && quoted.interactive.body && quoted.interactive.body.text));
  return excerpt ? h("p", { class: "quote" }, hidden(words.quoted), " ", h("bdi", {}, short(excerpt, QUOTE_CHARACTERS_MAX))) : null;
}

const TICKS = { waiting: words.waiting, sent: words.sent, read: words.read };

/**
 * A message, or what waits to become one. `update` takes `{message, name, isFirst, isLast, answer, isOver}`: nothing that
 * stands there already is made anew, so that a screen reader says it once.
 */
export function bubble(message, name, chat) {
  const isOwn = message.direction !== "outbound";
  const tick = h("span", { class: "tick", role: "img" });
  const at = h("time", {});
  const failure = h("div", { class: "failure" });
  const who = hidden("");
  const label = h("span", { class: "name", "aria-hidden": "true", dir: "auto" }, name);
  const body = h("div", { class: "body" });
  const node = h(
    "div",
    { class: `message ${isOwn ? "own" : "theirs"}` },
    isOwn ? null : h("span", { class: "face", "aria-hidden": "true" }, initials(name)),
    h("div", { class: "column" }, isOwn ? null : label, who, body, failure, h("div", { class: "meta" }, at, isOwn ? tick : null)),
  );
  let shown = null;
  let part = null;
  let wasLong = false;

  const update = ({ message, isFirst, isLast, answer, isOver }) => {
    const date = new Date(message.createdAt);
    const signature = JSON.stringify([message.type, message.body, message.media, message.interactive, message.file && message.file.name]);
    if (signature !== shown) {
      shown = signature;
      part = content(message, chat);
      body.replaceChildren(...[quote(message, chat), part.node].filter(Boolean));
      who.textContent = `${isOwn ? words.you : name}, ${time(date)}: `;
    }
    if (part.update) part.update({ answer, isOver });
    node.dataset.id = message.id || message.clientId;
    node.classList.toggle("first", isFirst);
    node.classList.toggle("last", isLast);
    if (at.dateTime !== date.toISOString()) {
      at.dateTime = date.toISOString();
      at.textContent = time(date);
    }
    if (isOwn) mark(message);
  };

  const mark = (message) => {
    const state = message.failed ? "failed" : !message.id ? "waiting" : message.readAt ? "read" : "sent";
    const isLong = state === "waiting" && Boolean(message.file) && Date.now() - message.at >= FILE_WAITS_MS;
    if (node.dataset.state === state && isLong === wasLong) return;
    node.dataset.state = state;
    wasLong = isLong;
    tick.setAttribute("aria-label", TICKS[state] || words.failed);
    tick.replaceChildren(icon(TICKS[state] ? state : "alert"));
    failure.replaceChildren(...(message.failed ? trouble(message, chat) : isLong ? [discardOf(message, chat)] : []));
  };

  return { node, update };
}

const discardOf = ({ clientId }, chat) => h("button", { type: "button", onclick: () => chat.outbox.remove(clientId) }, words.discard);

function trouble(entry, chat) {
  const retry = () => chat.outbox.retry(entry.clientId);
  const isHopeless = entry.file && (!(entry.file instanceof File) || ["tooLarge", "empty", "unreadable", "ERR_API_MEDIA_EMPTY"].includes(entry.failed));
  return [
    h("span", {}, [words.failed, reason(entry, chat)].filter(Boolean).join(": ").replace(/([^.])$/, "$1.")),
    isHopeless ? null : h("button", { type: "button", onclick: retry }, words.retry),
    discardOf(entry, chat),
  ].filter(Boolean);
}

/** The first letters of first and last name. */
export function initials(name) {
  const parts = name.trim().split(/\s+/);
  const letters = parts.length > 1 ? [parts[0], parts[parts.length - 1]] : [parts[0]];
  return letters.map((part) => [...part][0] || "").join("").toUpperCase();
}
