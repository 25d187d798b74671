// Shows what a person wrote: words as they are, addresses as links.

import { h } from "./dom.js";

// The bounds keep a long word without an address from being searched again from each of its letters.
const ADDRESS = /\b(?:https?:\/\/|mailto:|www\.)[^\s<>"]{1,2048}|\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/gi;

/** Punctuation after an address belongs to the sentence, as does a parenthesis that was opened before it. */
function trimmed(address) {
  let end = address.length;
  for (; end > 0; end--) {
    const last = address[end - 1];
    if (last === ")" && address.slice(0, end).split("(").length >= address.slice(0, end).split(")").length) break;
    if (!".,;:!?)]}'*_~»”’…".includes(last)) break;
  }
  return address.slice(0, end);
}

/** The address as a browser reads it, when it is one that a link may have; else null. */
export function safeUrl(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** A link that opens beside the page and tells the other side nothing of it. */
export function link(url, attributes, ...children) {
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow", ...attributes }, ...children);
}

/** The text in pieces: strings, and links. */
export function linked(text) {
  const pieces = [];
  let done = 0;
  for (const match of text.matchAll(ADDRESS)) {
    const words = trimmed(match[0]);
    const begins = /^(https?:|mailto:)/i.test(words) ? "" : words.includes("@") ? "mailto:" : "https://";
    const url = safeUrl(begins + words);
    if (!url) continue;
    pieces.push(text.slice(done, match.index), link(url, {}, words));
    done = match.index + words.length;
  }
  pieces.push(text.slice(done));
  return pieces.filter((piece) => piece !== "");
}

/** The beginning of a longer text, which says that there is more of it. */
export const short = (text, charactersMax) => (text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text);
