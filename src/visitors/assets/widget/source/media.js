// Files inside a message: shown when the browser can, else offered.

import { h, icon, hidden } from "./dom.js";
import { link, safeUrl } from "./text.js";
import { fileSize, words } from "./words.js";

/** The last part of an address, in letters; as it is where they are not those of UTF-8. */
function nameOf(url) {
  const name = new URL(url).pathname.split("/").pop() || "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** A file to open, with its name and size. */
export function file(url, name, size) {
  const label = name || nameOf(url) || words.file;
  return link(
    url,
    { class: "file" },
    h("span", { class: "file-icon" }, icon("file")),
    h("span", { class: "file-name" }, h("bdi", {}, label), size ? h("small", {}, fileSize(size)) : null),
    hidden(`(${words.opensNew})`),
  );
}

/** A picture, which gives way to a link when it does not load or the page forbids it. */
export function image(url, name) {
  const shown = h("img", { src: url, alt: name || words.image, loading: "lazy", referrerpolicy: "no-referrer" });
  const frame = link(url, { class: "picture loading" }, shown, hidden(`(${words.opensNew})`));
  shown.addEventListener("load", () => frame.classList.remove("loading"));
  shown.addEventListener("error", () => frame.replaceWith(file(url, name)));
  return frame;
}

function player(kind, url, name) {
  const shown = h(kind, { src: url, controls: true, preload: "metadata", class: "player", "aria-label": name || words[kind] });
  shown.addEventListener("error", () => shown.replaceWith(file(url, name)));
  return shown;
}

/** What `media` of a message holds: `{url, mimeType, fileName, size}`. Null when its address is none to follow. */
export function media({ url, mimeType, fileName, size }, base) {
  let address = null;
  try {
    address = safeUrl(new URL(url, base).href);
  } catch {
    // Shown as nothing, below.
  }
  if (!address) return null;
  const kind = String(mimeType || "").split("/")[0];
  // A drawing may hold script: it runs in no <img>, but would when opened beside the page.
  if (kind === "image" && !/svg/i.test(mimeType)) return image(address, fileName);
  if (kind === "video" || kind === "audio") return player(kind, address, fileName);
  return file(address, fileName, size);
}

/** The header of an interactive message: text, or a public link to a file. */
export function header(of) {
  if (!of) return null;
  if (of.type === "text") return of.text ? h("strong", { class: "head", dir: "auto" }, of.text) : null;
  const url = of[of.type] && safeUrl(of[of.type].link);
  if (!url || url.startsWith("mailto:")) return null;
  if (of.type === "image") return image(url);
  if (of.type === "video") return player("video", url);
  return file(url, of.document && of.document.filename);
}
