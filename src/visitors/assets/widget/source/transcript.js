// The messages from the first to the newest, with the days between them.

import { bubble, initials } from "./bubble.js";
import { h, hidden, icon } from "./dom.js";
import { linked } from "./text.js";
import { day, isSameDay, words } from "./words.js";

/** Messages of one side that follow each other this closely stand together. */
const TOGETHER_MS = 5 * 60_000;

/** So near to the end, the visitor is reading the newest. */
const END_PX = 60;

/**
 * How many messages are drawn in one step, and how many of the newest in all: a screen, and a few screens. A page that embeds a conversation
 * of thousands is never held up for longer than a few of its own frames.
 */
const STEP = 14;
const DRAWN = 3 * STEP;

/** How many stand there at most while somebody reads through the conversation. */
const DRAWN_MAX = 3 * DRAWN;

/** What is drawn for this long is not read out. */
const QUIET_MS = 100;

/** So near to the first or the last message that is drawn, the visitor is about to read on. */
const NEAR_PX = 400;

export class Transcript {
  constructor(chat) {
    this.chat = chat;
    this.views = new Map();
    this.list = h("div", { class: "list" });
    /** The first message that is drawn; 0: as many as are drawn of the newest. */
    this.from = 0;
    /** The newest message that came, and when the visitor last said something. */
    this.newest = 0;
    this.said = 0;
    /** How many of the newest are drawn by now. */
    this.room = STEP;
    /** Whether newer messages than those that are drawn are there. */
    this.hasLater = false;
    this.earlier = h("button", { type: "button", class: "earlier", hidden: true, onclick: () => this.drawEarlier() }, words.earlier);
    this.typing = h("div", { class: "message theirs first last typing", hidden: true });
    // What was said before the page was loaded is not read out; what comes from then on is.
    this.log = h(
      "div",
      { class: "log", role: "log", "aria-live": "off", "aria-label": words.conversation, tabindex: 0 },
      this.earlier,
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
    /** How far the log was scrolled when it was last looked at, and how far it was to its end. */
    this.top = 0;
    this.end = 0;
    this.log.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // Pictures arrive, the keyboard opens: who reads the end stays there.
    const grown = new ResizeObserver(() => this.isAtEnd && this.toEnd());
    grown.observe(this.list);
    grown.observe(this.log);
  }

  scrolled() {
    const { scrollTop, clientHeight } = this.log;
    // A box that is not shown has no height, and says nothing of where its reader is.
    if (!clientHeight) return;
    const { top, end } = this;
    this.look();
    const below = this.end - scrollTop;
    // A scroll to the end may be heard when a notice or a longer draft has taken of the box, or a picture has arrived. Only who has moved up,
    // away from where the end was, has left it.
    const isLeft = scrollTop < top && end - scrollTop >= END_PX;
    if (this.isAtEnd && below >= END_PX && !isLeft) {
      if (this.end !== end) this.toEnd();
      return;
    }
    this.isAtEnd = below < END_PX && !this.hasLater;
    if (this.isAtEnd) this.jump.hidden = true;
    else if (scrollTop < NEAR_PX) this.drawEarlier();
    else if (below < NEAR_PX && this.hasLater) this.draw(this.chat.messages.firstAfter(this.first) - 1 + STEP);
  }

  /** Remembers where the log and its end are. */
  look() {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    this.top = scrollTop;
    this.end = scrollHeight - clientHeight;
  }

  drawEarlier() {
    const at = this.chat.messages.firstAfter(this.first - 1);
    if (at) this.draw(Math.max(0, at - STEP));
  }

  /** Draws the conversation from this place on; what is read stays where it is on the screen. */
  draw(at) {
    const isFocused = this.earlier.getRootNode().activeElement === this.earlier;
    const { top } = this.log.getBoundingClientRect();
    const anchor = [...this.list.children].find((node) => node.dataset.id && node.getBoundingClientRect().bottom > top);
    const before = anchor && anchor.getBoundingClientRect().top;
    this.hush();
    this.from = this.chat.messages.sorted[at].id;
    this.isAtEnd = false;
    this.update();
    if (anchor && anchor.isConnected) this.log.scrollTop += anchor.getBoundingClientRect().top - before;
    if (isFocused && this.earlier.hidden) this.log.focus();
  }

  /** It is seen from now on, from its end. */
  begin() {
    this.room = STEP;
    this.isAtEnd = true;
    this.hush();
  }

  /** What is drawn now was said before, and is no news to be read out. */
  hush() {
    this.isQuiet = true;
    this.log.setAttribute("aria-live", "off");
    clearTimeout(this.hushed);
    this.hushed = setTimeout(() => {
      this.isQuiet = false;
      this.chat.changed();
    }, QUIET_MS);
  }

  /** The messages that are drawn. */
  drawn() {
    const { sorted } = this.chat.messages;
    // Who reads the newest has them drawn alone; who reads further up keeps what they have.
    if (this.isAtEnd) this.from = 0;
    const at = this.from ? this.chat.messages.firstAfter(this.from - 1) : Math.max(0, sorted.length - this.room);
    const drawn = sorted.slice(at, at + DRAWN_MAX);
    this.first = drawn.length ? drawn[0].id : 0;
    if (!this.isAtEnd) this.from = this.first;
    this.earlier.hidden = at === 0;
    this.hasLater = at + DRAWN_MAX < sorted.length;
    return drawn;
  }

  toEnd(isSmooth = false) {
    if (this.hasLater) {
      this.isAtEnd = true;
      this.update();
    }
    const behavior = isSmooth && !matchMedia("(prefers-reduced-motion: reduce)").matches ? "smooth" : "auto";
    this.log.scrollTo({ top: this.log.scrollHeight, behavior });
    this.look();
    this.isAtEnd = true;
    this.jump.hidden = true;
  }

  update() {
    // What waits to be sent is new; so is what came after all that was there.
    const waiting = this.chat.outbox.list();
    const isSaid = waiting.some(({ at }) => at > this.said);
    this.said = waiting.reduce((said, { at }) => Math.max(said, at), this.said);
    const came = this.chat.messages.after(this.newest);
    this.newest = came.length ? came[came.length - 1].id : this.newest;
    const isNew = came.some(({ direction }) => direction === "outbound");
    if (came.length > STEP) {
      this.room = STEP;
      this.hush();
    }
    const items = this.items();
    const kept = new Set(items.map(({ key }) => key));
    for (const [key, view] of this.views) {
      if (kept.has(key)) continue;
      view.node.remove();
      this.views.delete(key);
    }
    let place = this.list.firstChild;
    for (const item of items) {
      let view = this.views.get(item.key);
      try {
        if (!view) this.views.set(item.key, (view = item.make()));
        if (view.update) view.update(item.state);
      } catch (error) {
        // One message that cannot be drawn keeps no other from being drawn.
        console.error("Hotline webchat:", error);
        if (!view) continue;
      }
      if (view.node === place) place = place.nextSibling;
      else this.list.insertBefore(view.node, place);
    }
    this.showTyping();
    if (isSaid || this.isAtEnd) this.toEnd();
    else if (isNew) this.jump.hidden = false;
    if (this.isAtEnd && this.room < DRAWN && !this.earlier.hidden) this.growing ||= requestAnimationFrame(() => this.grow());
  }

  /** Draws more of what is above, a step in each frame. */
  grow() {
    this.growing = 0;
    if (!this.isAtEnd) return;
    this.room = Math.min(DRAWN, this.room + STEP);
    this.hush();
    this.update();
  }

  /** Reads out what comes from now on. */
  speak() {
    if (!this.isQuiet) this.log.setAttribute("aria-live", "polite");
  }

  items() {
    const { chat } = this;
    const waiting = chat.outbox.list().map((entry) => ({ ...entry, direction: "inbound", type: "text", createdAt: entry.at }));
    const drawn = this.drawn();
    const all = this.hasLater ? drawn : [...drawn, ...waiting];
    // What was said first stands above it, and is not drawn yet.
    const items = this.earlier.hidden ? [greeting(chat)] : [];
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
      h("div", { class: "column" }, h("div", { class: "bubble" }, h("p", { dir: "auto" }, linked(text)))),
    ),
  });
  return { key: "greeting", make };
}
