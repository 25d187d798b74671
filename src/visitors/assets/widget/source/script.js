// The line of the page that embeds the widget.

/** The `<script>` line, also when a tag manager has added it. */
export const script = document.currentScript || document.querySelector('script[src*="/webchat/"][src*="/widget.js"]');

/** What the line says under this name, as `data-…`. */
export const said = (name) => (script && script.dataset[name]) || "";
