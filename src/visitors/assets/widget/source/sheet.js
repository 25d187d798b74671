// A sheet over the conversation: the rows of a list, a question. What lies below rests until it is closed.

import { h, icon } from "./dom.js";
import { words } from "./words.js";

export class Sheet {
  /** `below` are the parts of the panel it lies over. */
  constructor(below) {
    this.below = below;
    this.node = h("div", { class: "sheet", hidden: true });
    // On the way down: once its own listener has run, a button may be one that was pressed already.
    this.node.addEventListener("click", ({ target }) => this.pressed(target), { capture: true });
  }

  get isOpen() {
    return !this.node.hidden;
  }

  /** Shows it; whatever button in it is pressed closes it, and the focus goes back to where it came from. */
  show(title, content, from) {
    this.from = from;
    const close = h("button", { type: "button", class: "plain", "aria-label": words.closeList }, icon("close"));
    const box = h(
      "div",
      { class: "box", role: "dialog", "aria-modal": "true", "aria-label": title },
      h("div", { class: "bar" }, h("h2", { dir: "auto" }, title), close),
      h("div", { class: "rows", tabindex: -1 }, content),
    );
    this.node.replaceChildren(box);
    this.node.hidden = false;
    for (const part of this.below) part.inert = true;
    const first = box.querySelector(".rows button:not([aria-disabled=true])") || close;
    first.focus();
  }

  pressed(target) {
    const button = target.closest("button");
    if (target === this.node || (button && button.getAttribute("aria-disabled") !== "true")) this.close();
  }

  close() {
    if (!this.isOpen) return;
    this.node.hidden = true;
    for (const part of this.below) part.inert = false;
    if (this.from && this.from.isConnected) this.from.focus();
  }
}
