// The messages from the first to the newest, with the days between them.

import { bubble, initials } from "./bubble.js";
import { h, hidden, icon } from "./dom.js";
import { linked } from "./text.js";
import { day, isSameDay, words } from "./words.js";

/** Messages of one side that follow each other this closely stand together. */
const TOGETHER_MS = 5 * 60_000;

/** So near to the end, the visitor is reading the newest. */
const END_PX = 60;

export class Transcript {
  constructor(chat) {
    this.chat = chat;
    this.views = new Map();
    this.list = h("div", { class: "list" });
    this.typing = h("div", { class: "message theirs first last typing", hidden: true });
    // What was said before the page was loaded is not read out; what comes from then on is.
    this.log = h(
      "div",
      { class: "log", role: "log", "aria-live": "off", "aria-label": words.conversation, tabindex: 0 },
      this.list,
      this.typing,
    );
    this.jump = h(
      "button",
      { type: "button", class: "jump", hidden: true, onclick: () => this.toEnd(true) },
      icon("down"),
      h("span", {}, words.newMessages),
    );
    this.node = h("div", { class: "transcript" }, this.log, this.jump);
    this.isAtEnd = true;
    this.log.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // Pictures arrive, the keyboard opens: who reads the end stays there.
    const grown = new ResizeObserver(() => this.isAtEnd && this.toEnd());
    grown.observe(this.list);
    grown.observe(this.log);
  }

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    // A box that is not shown has no height, and says nothing of where its reader is.
    if (clientHeight) this.isAtEnd = scrollHeight - scrollTop - clientHeight < END_PX;
    if (this.isAtEnd) this.jump.hidden = true;
  }

  toEnd(isSmooth = false) {
    const behavior = isSmooth && !matchMedia("(prefers-reduced-motion: reduce)").matches ? "smooth" : "auto";
    this.log.scrollTo({ top: this.log.scrollHeight, behavior });
    this.isAtEnd = true;
    this.jump.hidden = true;
  }

  update() {
    const items = this.items();
    const isNew = items.some(({ key, isTheirs }) => isTheirs && !this.views.has(key));
    const isSaid = items.some(({ key, isOwn }) => isOwn && !this.views.has(key));
    const kept = new Set();
    let place = this.list.firstChild;
    for (const item of items) {
      kept.add(item.key);
      let view = this.views.get(item.key);
      if (!view) this.views.set(item.key, (view = item.make()));
      if (view.update) view.update(item.state);
      if (view.node === place) place = place.nextSibling;
      else this.list.insertBefore(view.node, place);
    }
    for (const [key, view] of this.views) {
      if (kept.has(key)) continue;
      view.node.remove();
      this.views.delete(key);
    }
    this.showTyping();
    if (isSaid || this.isAtEnd) this.toEnd();
    else if (isNew) this.jump.hidden = false;
  }

  /** Reads out what comes from now on. */
  speak() {
    this.log.setAttribute("aria-live", "polite");
  }

  items() {
    const { chat } = this;
    const waiting = chat.outbox.list().map((entry) => ({ ...entry, direction: "inbound", type: "text", createdAt: entry.at }));
    const all = [...chat.list(), ...waiting];
    const items = [greeting(chat)];
    let before = null;
    for (const [at, message] of all.entries()) {
      const isNewDay = !before || !isSameDay(before.createdAt, message.createdAt);
      if (isNewDay) items.push(divider(`day ${new Date(message.createdAt).toDateString()}`, day(message.createdAt)));
      const after = all[at + 1];
      const isBreak = chat.breaks.has(message.id);
      const name = nameOf(message);
      const state = {
        message,
        isFirst: isNewDay || !isTogether(before, message) || chat.breaks.has(before.id),
        isLast: !after || isBreak || !isTogether(message, after) || !isSameDay(message.createdAt, after.createdAt),
        answer: message.interactive ? chat.answerTo(message) : null,
        isOver: chat.isOver || (message.id && message.id <= chat.lastBreak),
      };
      items.push({
        key: message.clientId ? `own ${message.clientId}` : `id ${message.id}`,
        isOwn: Boolean(message.clientId),
        isTheirs: message.direction === "outbound",
        make: () => bubble(message, name, chat),
        state,
      });
      if (isBreak) items.push(divider(`break ${message.id}`, words.ended));
      before = message;
    }
    return items;
  }

  showTyping() {
    const { typist } = this.chat;
    this.typing.hidden = !typist;
    if (!typist || this.typing.dataset.name === (typist.name || words.us)) return;
    const name = typist.name || words.us;
    this.typing.dataset.name = name;
    this.typing.replaceChildren(
      h("span", { class: "face", "aria-hidden": "true" }, initials(name)),
      h("div", { class: "bubble" }, hidden(words.typing(name)), h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"))),
    );
  }
}

export const nameOf = (message) => (message.agent && message.agent.name) || words.us;

function isTogether(one, other) {
  if (!one || one.direction !== other.direction) return false;
  if (one.direction === "outbound" && nameOf(one) !== nameOf(other)) return false;
  return Math.abs(new Date(other.createdAt) - new Date(one.createdAt)) < TOGETHER_MS;
}

const divider = (key, text) => ({ key, make: () => ({ node: h("p", { class: "divider" }, h("span", {}, text)) }) });

/** What the channel says first. It is of the page, not of the conversation. */
function greeting(chat) {
  const text = chat.config.greeting || words.greeting;
  const make = () => ({
    node: h(
      "div",
      { class: "message theirs first last greeting" },
      h("span", { class: "face", "aria-hidden": "true" }, icon("chat")),
      h("div", { class: "column" }, h("div", { class: "bubble" }, h("p", {}, linked(text)))),
    ),
  });
  return { key: "greeting", make };
}
