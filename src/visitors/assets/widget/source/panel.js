// The widget on the page: the launcher, the panel it opens, and what is said while it is closed.

import { Composer } from "./composer.js";
import { h, icon } from "./dom.js";
import { Form } from "./form.js";
import { Sheet } from "./sheet.js";
import { short } from "./text.js";
import { Transcript, nameOf } from "./transcript.js";
import { words } from "./words.js";

/** How much of a message is shown beside the launcher. */
const TEASER_CHARACTERS_MAX = 140;

/** How often an open chat looks whether what it says of who is there is outdated. */
const ASK_EVERY_MS = 15_000;

/** Where the panel is as large as the page; `style.css` has the same. */
const PHONE = "(max-width: 480px), (max-height: 460px)";

export class Panel {
  constructor(chat) {
    this.chat = chat;
    const { config } = chat;
    const title = config.title || words.title;

    this.transcript = new Transcript(chat);
    this.composer = new Composer(chat);
    this.form = config.preChatFields.length ? new Form(chat, () => this.focus()) : null;
    this.status = h("p", { class: "status" });
    this.end = h("button", { type: "button", class: "plain", "aria-label": words.end, onclick: () => this.askToEnd() }, icon("leave"));
    this.less = h("button", { type: "button", class: "plain", "aria-label": words.close, onclick: () => this.close() }, icon("minimize"));
    this.header = h(
      "header",
      {},
      h("span", { class: "mark", "aria-hidden": "true" }, icon("chat")),
      h("div", { class: "titles" }, h("h2", { dir: "auto" }, title), this.status),
      this.end,
      this.less,
    );
    this.notice = h("p", { class: "notice", role: "status" });
    /** What could not be done, until it is tried again. */
    this.failure = "";
    this.over = h(
      "div",
      { class: "over", hidden: true },
      h("p", {}, words.ended),
      h("button", { type: "button", class: "primary", onclick: () => this.startOver() }, words.again),
    );
    this.foot = h("footer", {}, this.composer.node, this.over);
    this.main = h("div", { class: "main" }, this.transcript.node, this.form && this.form.node);
    this.sheet = new Sheet([this.header, this.main, this.foot]);
    this.panel = h(
      "section",
      { class: "panel", role: "dialog", "aria-label": title, hidden: true },
      this.header,
      this.notice,
      this.main,
      this.foot,
      this.sheet.node,
    );

    this.badge = h("span", { class: "badge", "aria-hidden": "true", hidden: true });
    this.launcher = h(
      "button",
      { type: "button", class: "launcher", "aria-expanded": "false", "aria-haspopup": "dialog", onclick: () => this.toggle() },
      h("span", { class: "opens" }, icon("chat")),
      h("span", { class: "closes" }, icon("close")),
      this.badge,
    );
    this.teaser = h("div", { class: "teaser", hidden: true });
    this.voice = h("div", { class: "unseen", role: "status" });
    this.node = h(
      "div",
      { class: `root ${config.position === "left" ? "at-left" : "at-right"}` },
      this.voice,
      this.panel,
      this.teaser,
      this.launcher,
    );
    this.node.addEventListener("keydown", (event) => this.pressed(event));
    this.receiveDrops();

    chat.onForget = () => this.forget();
    chat.showSheet = (...sheet) => this.sheet.show(...sheet);
    chat.onChange(() => this.update());
    document.addEventListener("visibilitychange", () => this.see());
    document.addEventListener("visibilitychange", () => this.askAvailability());
    setInterval(() => this.askAvailability(), ASK_EVERY_MS);
    addEventListener("focus", () => this.see());
    addEventListener("resize", () => this.cover());
    /** What of the page cannot be reached while the panel covers it. */
    this.covered = [];
    this.update();
    if (chat.memory.get("open", chat.memory.ofTab)) this.open(false);
  }

  /** It is on the page, for the first time or again, and has a size. */
  placed() {
    this.composer.fit();
    this.transcript.toEnd();
    this.cover();
  }

  /** Where the panel covers the page, as on a phone, neither keys nor screen readers reach what lies behind it. */
  cover() {
    const { host } = this.node.getRootNode();
    const isAlone = this.isOpen && !this.node.hidden && host && host.parentElement === document.body;
    const isCovering = Boolean(isAlone) && matchMedia(PHONE).matches;
    if (isCovering) this.panel.setAttribute("aria-modal", "true");
    else this.panel.removeAttribute("aria-modal");
    for (const element of this.covered) element.inert = false;
    this.covered = isCovering ? [...document.body.children].filter((element) => element !== host && !element.inert) : [];
    for (const element of this.covered) element.inert = true;
    // Nothing else can be reached. It is no field, so no keyboard covers the page.
    if (isCovering && !this.node.getRootNode().activeElement) this.less.focus();
  }

  /** Follows what is seen of the page. */
  follow() {
    // A phone's keyboard covers what a page thinks it has.
    const seen = window.visualViewport;
    if (seen) seen.addEventListener("resize", () => this.panel.style.setProperty("--seen", `${seen.height}px`));
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  toggle() {
    if (this.isOpen) this.close();
    else this.open();
  }

  open(takesFocus = true) {
    if (this.isOpen) return;
    this.panel.hidden = false;
    this.transcript.begin();
    this.shown();
    this.transcript.toEnd();
    this.composer.fit();
    this.askAvailability();
    if (takesFocus) this.focus();
  }

  close() {
    if (!this.isOpen) return;
    this.sheet.close();
    this.panel.hidden = true;
    this.shown();
    this.launcher.focus();
  }

  shown() {
    const { memory } = this.chat;
    memory.set("open", this.isOpen || null, memory.ofTab);
    this.node.classList.toggle("is-open", this.isOpen);
    this.launcher.setAttribute("aria-expanded", String(this.isOpen));
    this.hideTeaser();
    this.update();
    this.cover();
  }

  /** Focuses what the visitor needs next: on a phone not a field, which would open the keyboard. */
  focus() {
    if (this.isForm) this.form.focus();
    else if (this.chat.isOver) this.over.querySelector("button").focus();
    else if (matchMedia("(pointer: coarse)").matches) this.less.focus();
    else this.composer.field.focus();
  }

  pressed(event) {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    if (this.sheet.isOpen) this.sheet.close();
    else this.close();
  }

  /** Somebody has left: what they wrote goes with them. */
  forget() {
    this.sheet.close();
    this.composer.forget();
    if (this.form) this.form.forget();
    this.transcript.isAtEnd = true;
    this.announced = 0;
    this.voice.textContent = "";
    this.failure = "";
  }

  startOver() {
    this.chat.startOver();
    this.update();
    this.focus();
  }

  askToEnd() {
    this.failure = "";
    const end = async () => {
      try {
        await this.chat.end();
        this.focus();
      } catch {
        this.failure = words.notEnded;
        this.update();
      }
    };
    const choices = h(
      "div",
      { class: "options" },
      h("button", { type: "button", class: "option", onclick: end }, words.endYes),
      h("button", { type: "button", class: "option" }, words.endNo),
    );
    this.sheet.show(words.endAsk, choices, this.end);
  }

  get isForm() {
    return Boolean(this.form) && this.chat.needsForm;
  }

  update() {
    const { chat } = this;
    if (this.node.hidden !== chat.isClosed) {
      this.node.hidden = chat.isClosed;
      this.cover();
    }
    if (this.form) this.form.node.hidden = !this.isForm;
    this.transcript.node.hidden = this.isForm;
    this.foot.hidden = this.isForm;
    this.composer.node.hidden = chat.isOver;
    this.over.hidden = !chat.isOver;
    this.end.hidden = !chat.session || chat.isOver;
    // A page whose chat is closed has nothing of it drawn.
    if (this.isOpen) this.transcript.update();
    if (!chat.session || chat.isRefreshed) this.transcript.speak();
    this.say(this.notice, this.trouble());
    this.say(this.status, !chat.isLinked ? words.connecting : chat.isAvailable ? words.online : words.away);
    this.status.classList.toggle("away", !chat.isLinked || !chat.isAvailable);
    this.see();
    this.count();
  }

  /** What the visitor should know of, if anything. */
  trouble() {
    const { chat, failure } = this;
    if (!navigator.onLine) return words.offline;
    if (chat.isTrouble) return words.unreachable;
    if (chat.outbox.isSlowed) return words.busy;
    return chat.session && !chat.isOver ? failure : "";
  }

  /** The same words again are no news. */
  say(place, text) {
    if (place.textContent !== text) place.textContent = text;
    place.hidden = !text;
  }

  see() {
    if (this.isOpen && !this.isForm && !document.hidden && document.hasFocus()) this.chat.see();
  }

  askAvailability() {
    if (this.isOpen && !document.hidden) void this.chat.askAvailability();
  }

  /** What came while nobody looked: a number, the words beside the launcher, and for those who listen. */
  count() {
    const unread = this.chat.unread();
    const newest = unread[unread.length - 1];
    this.badge.hidden = !unread.length;
    this.badge.textContent = unread.length > 9 ? "9+" : String(unread.length);
    const label = this.isOpen ? words.close : unread.length ? words.openUnread(unread.length) : words.open;
    this.launcher.setAttribute("aria-label", label);
    if (!newest) this.hideTeaser();
    if (this.isOpen || !newest || newest.id <= (this.announced || 0)) return;
    this.announced = newest.id;
    const text = newest.body || (newest.interactive && newest.interactive.body && newest.interactive.body.text) || words.file;
    const excerpt = short(text, TEASER_CHARACTERS_MAX);
    this.voice.textContent = words.announce(nameOf(newest), excerpt);
    this.showTeaser(nameOf(newest), excerpt);
  }

  showTeaser(name, text) {
    this.teaser.replaceChildren(
      h("button", { type: "button", class: "words", onclick: () => this.open() }, h("strong", { dir: "auto" }, name), h("span", { dir: "auto" }, text)),
      h("button", { type: "button", class: "plain", "aria-label": words.dismiss, onclick: () => this.hideTeaser() }, icon("close")),
    );
    this.teaser.hidden = false;
  }

  hideTeaser() {
    this.teaser.hidden = true;
  }

  receiveDrops() {
    const veil = h("div", { class: "veil", hidden: true }, icon("clip"), h("p", {}, words.drop));
    this.panel.append(veil);
    const isFile = (event) => event.dataTransfer && event.dataTransfer.types.includes("Files") && !this.isForm && !this.chat.isOver;
    this.panel.addEventListener("dragover", (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      veil.hidden = false;
    });
    this.panel.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget || !this.panel.contains(event.relatedTarget)) veil.hidden = true;
    });
    this.panel.addEventListener("drop", (event) => {
      veil.hidden = true;
      if (isFile(event)) this.composer.attachFrom(event.dataTransfer, event);
    });
  }
}
