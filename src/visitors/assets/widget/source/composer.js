// Where the visitor writes.

import { isTooLong } from "./chat.js";
import { h, icon } from "./dom.js";
import { words } from "./words.js";

const HEIGHT_MAX_PX = 132;

export class Composer {
  constructor(chat) {
    this.chat = chat;
    this.field = h("textarea", {
      rows: 1,
      dir: "auto",
      placeholder: words.write,
      "aria-label": words.write.replace("…", ""),
      enterkeyhint: "send",
      oninput: () => this.written(),
      onkeydown: (event) => this.pressed(event),
      onpaste: (event) => this.attachFrom(event.clipboardData, event),
    });
    this.send = h("button", { type: "submit", class: "send", "aria-label": words.send }, icon("send"));
    this.picker = h("input", { type: "file", hidden: true, multiple: true, onchange: () => this.picked(), tabindex: -1 });
    const attach = h(
      "button",
      { type: "button", class: "plain attach", "aria-label": words.attach, onclick: () => this.picker.click() },
      icon("clip"),
    );
    this.trouble = h("p", { class: "error", id: "too-long", role: "alert" });
    this.node = h(
      "form",
      { class: "composer", onsubmit: (event) => this.submit(event) },
      this.trouble,
      attach,
      this.picker,
      this.field,
      this.send,
    );
    this.show(chat.memory.get("draft") || "");
    chat.memory.onChange((name) => {
      // Another tab's draft, unless this one is being written in.
      const isWriting = document.hasFocus() && this.field.getRootNode().activeElement === this.field;
      if (name === "draft" && !isWriting) this.show(chat.memory.get("draft") || "");
    });
  }

  /** Empties the field, when the visitor who wrote in it has logged out. */
  forget() {
    this.show("");
  }

  show(text) {
    this.field.value = text;
    this.fit();
  }

  written() {
    const text = this.field.value;
    this.chat.memory.set("draft", text || null);
    this.chat.line.typing(Boolean(text.trim()));
    this.fit();
  }

  /** As high as its text, within reason. */
  fit() {
    const { style } = this.field;
    // The form stays as high as it is while the text is measured: a log that has more room for a moment is scrolled away from its end.
    this.node.style.minHeight = `${this.node.offsetHeight}px`;
    style.height = "auto";
    if (this.field.scrollHeight) style.height = `${Math.min(HEIGHT_MAX_PX, this.field.scrollHeight)}px`;
    this.node.style.minHeight = "";
    this.check();
  }

  /** Says what is too long to be sent. Nothing is cut off: it stays as it was written or pasted, to be shortened. */
  check() {
    const text = this.field.value.trim();
    const isTooMuch = isTooLong(text);
    const trouble = isTooMuch ? words.tooLong : "";
    if (this.trouble.textContent !== trouble) this.trouble.textContent = trouble;
    this.field.setAttribute("aria-invalid", String(isTooMuch));
    if (isTooMuch) this.field.setAttribute("aria-describedby", this.trouble.id);
    else this.field.removeAttribute("aria-describedby");
    this.send.setAttribute("aria-disabled", String(!text || isTooMuch));
    return !isTooMuch;
  }

  pressed(event) {
    // Enter also ends the composition of a word, in languages that are written so.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    this.submit(event);
  }

  submit(event) {
    event.preventDefault();
    const text = this.field.value.trim();
    if (!text || !this.check()) return this.field.focus();
    this.chat.say(text);
    this.chat.memory.set("draft", null);
    this.show("");
    this.field.focus();
  }

  picked() {
    for (const file of this.picker.files) this.chat.attach(file);
    this.picker.value = "";
    this.field.focus();
  }

  /** Files that are pasted or dropped. */
  attachFrom(transfer, event) {
    const files = transfer ? [...transfer.files] : [];
    if (!files.length) return;
    event.preventDefault();
    for (const file of files) this.chat.attach(file);
  }
}
