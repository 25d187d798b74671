// What the channel asks before the conversation.

import { h } from "./dom.js";
import { words } from "./words.js";

/** What the service takes of each. */
const CHARACTERS_MAX = 255;

const FIELDS = {
  name: { type: "text", autocomplete: "name", dir: "auto", check: () => null },
  email: {
    type: "email",
    autocomplete: "email",
    check: (text) => (/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(text) ? null : words.badEmail),
  },
  number: {
    type: "tel",
    autocomplete: "tel",
    check: (text) => (/^\d{8,15}$/.test(text.replace(/[+().\s-]/g, "")) ? null : words.badNumber),
  },
};

export class Form {
  constructor(chat, done) {
    this.chat = chat;
    this.done = done;
    this.fields = chat.config.preChatFields.filter((name) => name in FIELDS).map((name) => this.field(name));
    this.trouble = h("p", { class: "error", role: "alert" });
    this.begin = h("button", { type: "submit", class: "primary" }, words.begin);
    const title = h("h3", { id: "form-title" }, words.before);
    this.node = h(
      "form",
      { class: "form", novalidate: true, "aria-labelledby": "form-title", onsubmit: (event) => this.submit(event) },
      title,
      h("p", {}, words.beforeText),
      this.fields.map(({ node }) => node),
      this.trouble,
      this.begin,
    );
  }

  field(name) {
    const { check, ...attributes } = FIELDS[name];
    const error = h("span", { class: "error", id: `${name}-error` });
    const input = h("input", { id: name, name, required: true, "aria-describedby": error.id, ...attributes });
    const say = (text) => {
      error.textContent = text || "";
      input.setAttribute("aria-invalid", String(Boolean(text)));
    };
    input.addEventListener("input", () => error.textContent && say(verdict()));
    const verdict = () => {
      const text = input.value.trim();
      if ([...text].length > CHARACTERS_MAX) return words.tooLong;
      return text ? check(text) : words.required;
    };
    const node = h("div", { class: "field" }, h("label", { for: name }, words[name]), input, error);
    return { name, node, input, say, verdict };
  }

  focus() {
    this.fields[0].input.focus();
  }

  /** Who was asked has left: nothing of what they wrote stays. */
  forget() {
    for (const { input, say } of this.fields) {
      input.value = "";
      say("");
    }
    this.trouble.textContent = "";
  }

  async submit(event) {
    event.preventDefault();
    const wrong = this.fields.filter((field) => {
      field.say(field.verdict());
      return field.verdict();
    });
    if (wrong.length) return wrong[0].input.focus();
    if (this.begin.getAttribute("aria-disabled") === "true") return;
    this.begin.setAttribute("aria-disabled", "true");
    this.trouble.textContent = "";
    try {
      await this.chat.introduce(Object.fromEntries(this.fields.map(({ name, input }) => [name, input.value.trim()])));
      this.done();
    } catch (refused) {
      this.refused(refused);
    } finally {
      this.begin.setAttribute("aria-disabled", "false");
    }
  }

  /** The service looks closer than the browser. */
  refused(refused) {
    const named = this.fields.filter(({ name }) => refused.details.some(({ field }) => field === `visitor.${name}`));
    for (const field of named) field.say({ email: words.badEmail, number: words.badNumber }[field.name] || words.required);
    if (named.length) return named[0].input.focus();
    this.trouble.textContent = words.notBegun;
  }
}
