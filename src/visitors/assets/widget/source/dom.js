// Makes elements. What people wrote becomes text nodes and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `on…` adds a listener, `class` and every other name an attribute; null, undefined and false leave it
 * out. Never `style`, which a page's Content-Security-Policy may forbid.
 */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Strokes on a field of 24 by 24.
const ICONS = {
  chat: "M12 3.5c5 0 9 3.4 9 7.7s-4 7.7-9 7.7c-.9 0-1.8-.1-2.6-.3L4.5 20.5l.9-3.7C3.9 15.4 3 13.4 3 11.2c0-4.3 4-7.7 9-7.7z",
  close: "M6 6l12 12M18 6L6 18",
  minimize: "M6 9.5l6 6 6-6",
  send: "M12 19V5M5.5 11.5L12 5l6.5 6.5",
  clip: "M20 11.2l-8.3 8.3a5.3 5.3 0 0 1-7.5-7.5l8.6-8.6a3.5 3.5 0 0 1 5 5l-8.3 8.2a1.7 1.7 0 0 1-2.5-2.4l7.6-7.5",
  sent: "M5 12.5l4.5 4.5L19 7.5",
  read: "M2.5 12.5L7 17l9-9.5M12 16.5l.5.5L22 7.5",
  waiting: "M12 7.5V12l3 2M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17z",
  alert: "M12 8v5M12 16.3v.2M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17z",
  pin: "M12 21c4.5-4.7 6.8-8.2 6.8-11.2A6.8 6.8 0 0 0 5.2 9.8C5.2 12.8 7.5 16.3 12 21zM12 12a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6z",
  list: "M8.5 6.5H20M8.5 12H20M8.5 17.5H20M4 6.5h.2M4 12h.2M4 17.5h.2",
  link: "M13.5 5H19v5.5M19 5l-8.5 8.5M16.5 14v4.5H5.5v-11H10",
  left: "M14.5 6l-6 6 6 6",
  right: "M9.5 6l6 6-6 6",
  down: "M12 5v14M5.5 12.5L12 19l6.5-6.5",
  file: "M13.5 3.5H7a1.5 1.5 0 0 0-1.5 1.5v14A1.5 1.5 0 0 0 7 20.5h10a1.5 1.5 0 0 0 1.5-1.5V8.5zM13.5 3.5v5h5",
  leave: "M14.5 8V5.5h-10v13h10V16M9.5 12h11M17.5 9l3 3-3 3",
};

/** A decoration; what it means is said in words beside it. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** Words for those who do not see the page. */
export const hidden = (text) => h("span", { class: "unseen" }, text);
