// Interactive messages: buttons, a list, a link, a request for the location, a carousel.

import { h, hidden, icon } from "./dom.js";
import { header } from "./media.js";
import { link, linked, safeUrl } from "./text.js";
import { words } from "./words.js";

/**
 * The message, and a function that takes the chosen answer. A choice is made once; afterwards its options stay
 * in the order of the keyboard, so that nobody's focus is lost, and do nothing.
 */
export function interactive(message, chat) {
  const content = message.interactive || {};
  const action = content.action || {};
  const options = [];

  /** A choice that is sent as a reply. */
  const option = ({ id, title }, ...more) => {
    const button = h("button", { type: "button", class: "option" }, h("span", { dir: "auto" }, title), ...more);
    button.addEventListener("click", () => {
      if (button.getAttribute("aria-disabled") !== "true") chat.reply(message, { id, title });
    });
    options.push({ button, id, title });
    return button;
  };

  const kinds = {
    button: () => [h("div", { class: "options" }, replies(action).map((reply) => option(reply)))],
    list: () => [opener(message, content, option, chat)],
    cta_url: () => [way(action.parameters)],
    location_request_message: () => [locator(message, chat, options)],
    carousel: () => [carousel(action.cards || [], option)],
  };
  const controls = kinds[content.type] ? kinds[content.type]() : [];
  const node = h(
    "div",
    { class: `interactive ${content.type === "carousel" ? "wide" : ""}` },
    h(
      "div",
      { class: "bubble" },
      header(content.header),
      content.body && content.body.text ? h("p", { dir: "auto" }, linked(content.body.text)) : null,
      content.footer && content.footer.text ? h("p", { class: "foot", dir: "auto" }, content.footer.text) : null,
    ),
    controls,
  );

  const update = ({ answer, isOver }) => {
    const chosen = answer && options.find(({ id, title }) => (answer.id ? id === answer.id : title === answer.title));
    for (const { button, isBusy } of options) {
      button.setAttribute("aria-disabled", String(Boolean(answer || isOver || isBusy)));
      const isChosen = chosen && chosen.button === button;
      if (isChosen && !button.classList.contains("chosen")) button.append(icon("sent"), hidden(`(${words.chosen})`));
      button.classList.toggle("chosen", Boolean(isChosen));
    }
  };
  return { node, update };
}

/** Buttons of a message (`reply`) and of a card (`quick_reply`). */
const replies = (action) =>
  (action.buttons || []).map((button) => button.reply || button.quick_reply).filter((reply) => reply && reply.id);

/** The button that opens a list. Its rows lie in a sheet over the conversation. */
function opener(message, content, option, chat) {
  const { button, sections = [] } = content.action;
  const rows = sections.map((section) =>
    h(
      "div",
      { class: "section", role: "group", "aria-label": section.title || button },
      section.title ? h("h3", { dir: "auto" }, section.title) : null,
      (section.rows || []).map((row) => option(row, row.description ? h("small", { dir: "auto" }, row.description) : null)),
    ),
  );
  const open = h("button", { type: "button", class: "option opener", "aria-haspopup": "dialog" }, icon("list"), h("bdi", {}, button));
  open.addEventListener("click", () => chat.showSheet(button || words.choose, rows, open));
  return h("div", { class: "options" }, open);
}

/** A link in the shape of a button. */
function way(parameters) {
  const url = parameters && safeUrl(parameters.url);
  if (!url || url.startsWith("mailto:")) return null;
  const text = parameters.display_text || url;
  return h(
    "div",
    { class: "options" },
    link(url, { class: "option" }, icon("link"), h("span", { dir: "auto" }, text), hidden(`(${words.opensNew})`)),
  );
}

/** Asks the browser where the visitor is, only once they press it. */
function locator(message, chat, options) {
  const label = h("span", {}, words.shareLocation);
  const button = h("button", { type: "button", class: "option" }, icon("pin"), label);
  const hint = h("p", { class: "hint", role: "status" });
  const choice = { button, id: "location", isBusy: false };
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-disabled") === "true") return;
    choice.isBusy = true;
    button.setAttribute("aria-disabled", "true");
    hint.textContent = words.locating;
    const isShared = await chat.shareLocation(message);
    choice.isBusy = false;
    hint.textContent = isShared ? "" : words.noLocation;
    if (!isShared) button.setAttribute("aria-disabled", "false");
  });
  options.push(choice);
  return h("div", { class: "options" }, button, hint);
}

/** Cards side by side, to be pushed with a finger, the wheel, the arrow buttons or the keyboard. */
function carousel(cards, option) {
  const track = h(
    "div",
    { class: "track", role: "group", "aria-label": words.cards(cards.length), tabindex: 0 },
    cards.map((card) => {
      const action = card.action || card;
      return h(
        "div",
        { class: "card" },
        header(card.header),
        card.body && card.body.text ? h("p", { dir: "auto" }, linked(card.body.text)) : null,
        way(action.parameters),
        replies(action).map((reply) => option(reply)),
      );
    }),
  );
  const step = (direction) => () => {
    const width = track.firstElementChild ? track.firstElementChild.getBoundingClientRect().width : 0;
    track.scrollBy({ left: direction * width, behavior: motion() });
  };
  const back = h("button", { type: "button", class: "step", "aria-label": words.previous, onclick: step(-1) }, icon("left"));
  const on = h("button", { type: "button", class: "step", "aria-label": words.next, onclick: step(1) }, icon("right"));
  const settle = () => {
    back.hidden = track.scrollLeft < 8;
    on.hidden = track.scrollLeft + track.clientWidth > track.scrollWidth - 8;
  };
  track.addEventListener("scroll", settle, { passive: true });
  new ResizeObserver(settle).observe(track);
  return h("div", { class: "carousel" }, track, back, on);
}

/** Movement, unless the visitor asked for less of it. */
const motion = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth");
