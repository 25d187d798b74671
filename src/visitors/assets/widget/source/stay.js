// Keeps the widget on a page that replaces its own body, as single-page sites do.

/** How often within `LOST_WITHIN_MS` it comes back. A page that takes it away each time does not want it. */
const LOST_MAX = 10;
const LOST_WITHIN_MS = 10_000;

/** How long a page may be without a body. */
const BODY_EVERY_MS = 50;

/** The element, which says when it is taken from the page. A copy of it, such as a cached page holds, is none and goes. */
export function define(tag) {
  if (customElements.get(tag)) return;
  customElements.define(
    tag,
    class extends HTMLElement {
      connectedCallback() {
        if (!this.onGone) this.remove();
      }

      disconnectedCallback() {
        if (this.onGone) this.onGone();
      }
    },
  );
}

/** Puts the widget into its place, and again whenever the page has lost it. */
export function stay(host, panel, placeOf) {
  let lost = [];
  const put = () => {
    if (host.isConnected) return;
    const place = placeOf();
    if (!place) return void setTimeout(put, BODY_EVERY_MS);
    place.append(host);
    panel.placed();
  };
  host.onGone = () => {
    panel.cover();
    lost = [...lost.filter((at) => at > Date.now() - LOST_WITHIN_MS), Date.now()];
    // Once the page has done what it does: it may be moving the element, or putting another body there.
    if (lost.length <= LOST_MAX) setTimeout(put);
  };
  put();
}
