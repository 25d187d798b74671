// Entry: finds the door in the script's own address, asks how the widget looks, and puts it on the page.

import { backoff } from "./backoff.js";
import { Chat } from "./chat.js";
import { themed } from "./color.js";
import { Door } from "./door.js";
import { Memory } from "./memory.js";
import { Panel } from "./panel.js";
import { said, script } from "./script.js";
import { define, stay } from "./stay.js";
import { language } from "./words.js";
import css from "./style.css";

const TAG = "hotline-webchat";

/** When the dark colours apply: the line may choose, otherwise the visitor's system does. */
const DARK_WHEN = { __proto__: null, light: "not all", dark: "all" }[said("theme")];

/** How often a page that seems not to be allowed asks again: for some seconds. */
const CLOSED_TRIES = 3;

/** The panel, once it is on the page; null when this page may not show it. */
async function start(base, publicKey) {
  define(TAG);
  const host = document.createElement(TAG);
  host.dataset.channel = publicKey;
  host.lang = language;
  // All its languages are written so, whatever the page is.
  host.dir = "ltr";
  if (DARK_WHEN) host.dataset.theme = said("theme");

  const door = new Door(base);
  const memory = new Memory(publicKey);
  const config = await configOf(door, memory);
  if (!config) return null;
  if (document.readyState === "loading") await new Promise((ready) => addEventListener("DOMContentLoaded", ready, { once: true }));

  // Sheets made by script are none of the page's styles: its Content-Security-Policy lets them be.
  const root = host.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [css, themed(config.color)].map((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(DARK_WHEN ? text.replace(/\(prefers-color-scheme: ?dark\)/g, ` ${DARK_WHEN}`) : text);
    return sheet;
  });
  const chat = new Chat(door, memory, config);
  const panel = new Panel(chat);
  root.append(panel.node);
  stay(host, panel, () => (script.dataset.in && document.querySelector(script.dataset.in)) || document.body);
  panel.follow();
  if ("open" in script.dataset) panel.open(false);
  return panel;
}

/** What the page may do with it, from the moment the script has run. Each resolves once it is done. */
function handle(ready) {
  const later = (work) => async (...given) => {
    const panel = await ready;
    return panel ? work(panel, ...given) : undefined;
  };
  return {
    open: later((panel) => panel.open()),
    close: later((panel) => panel.close()),
    /** Who the visitor is, as the page's server has signed it; whether it is accepted. */
    identify: later((panel, identity) => panel.chat.identify(String(identity))),
    /** The visitor leaves this browser. */
    logout: later((panel) => panel.chat.logout()),
  };
}

/** How the widget looks; when the service is away, how it looked last. Null when this page may not show it. */
async function configOf(door, memory) {
  for (let attempts = 0; ; attempts++) {
    try {
      const config = await door.config();
      memory.set("config", config);
      return config;
    } catch (refused) {
      const isClosed = refused.status === 0 && (await door.isClosed());
      // A proxy may answer for a service that is away for a moment: a page that it is closed to is refused again.
      if (isClosed && attempts < CLOSED_TRIES) {
        await new Promise((wait) => setTimeout(wait, backoff(attempts)));
        continue;
      }
      if (isClosed || !refused.isPassing) {
        const reason = isClosed ? `${location.origin} is not one of the channel's allowed websites` : refused.message;
        console.warn(`Hotline webchat: ${reason}`);
        return null;
      }
      const known = memory.get("config");
      // Who was there then says nothing of who is there now.
      if (known) return { ...known, availability: undefined };
      await new Promise((wait) => setTimeout(wait, backoff(attempts)));
    }
  }
}

/**
 * The widgets of this page, by public key. A page may include the line more than once, a theme and a tag manager, or a page that replaces
 * its body and runs the line anew: it has one widget all the same.
 */
const widgets = (window[Symbol.for("hotline-webchat")] ||= new Map());

if (script) {
  const base = script.src.replace(/\/widget\.js(\?.*)?$/, "");
  const publicKey = base.split("/").pop();
  const isFirst = !widgets.has(publicKey);
  if (isFirst) widgets.set(publicKey, handle(start(base, publicKey)));
  const widget = widgets.get(publicKey);
  if (isFirst) window.HotlineWebchat = widget;
  if (script.dataset.identity) widget.identify(script.dataset.identity);
  if (isFirst) dispatchEvent(new Event("hotline-webchat"));
}
