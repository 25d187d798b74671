// The channel's colour, in shades that can be read (WCAG 2.2, 1.4.3 and 1.4.11).

/** What lies behind, by theme; `style.css` has the same values. */
export const SURFACES = { light: "#ffffff", dark: "#17191e" };

const TEXT_CONTRAST_MIN = 4.5;
/** Of a shape that is also drawn otherwise: below this a white button on white is lost. */
const SHAPE_CONTRAST_MIN = 1.35;

const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

function luminance(color) {
  const [red, green, blue] = channels(color).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function mix(color, other, share) {
  const to = channels(other);
  const mixed = channels(color).map((value, at) => Math.round(value + (to[at] - value) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Black or white, whichever is read better on the colour: one of them always has more than 4.5. */
const ink = (color) => (contrast(color, "#ffffff") >= TEXT_CONTRAST_MIN ? "#ffffff" : "#000000");

/** The colour, moved away from what lies behind it until it stands out enough. */
function apart(color, surface, enough) {
  const away = luminance(surface) > 0.4 ? "#000000" : "#ffffff";
  let moved = color;
  for (let share = 0.05; contrast(moved, surface) < enough && share <= 1; share += 0.05) moved = mix(color, away, share);
  return moved;
}

/** The declarations of one theme. `fill` carries text in `ink`; `tint` is text on the surface. */
function declarations(color, surface) {
  const fill = apart(color, surface, SHAPE_CONTRAST_MIN);
  const on = ink(fill);
  const deep = mix(fill, on === "#ffffff" ? "#000000" : "#ffffff", 0.14);
  // Also read on the bubbles, which lie a little off the surface.
  const tint = apart(color, surface, TEXT_CONTRAST_MIN + 1);
  return `--fill:${fill};--deep:${deep};--ink:${on};--tint:${tint}`;
}

/** The style sheet that brings the channel's colour into both themes. */
export function themed(color) {
  const { light, dark } = SURFACES;
  return `.root{${declarations(color, light)}}@media(prefers-color-scheme:dark){.root{${declarations(color, dark)}}}`;
}
