// What the pages of the panel say in passing. Most of it goes after six seconds; it is kept for cases that look later.

/** Runs in a document: keeps every notice from now on. */
export function keepNotices() {
  const known = new WeakSet(document.querySelectorAll(".notice"));
  window.keptNotices = [];
  new MutationObserver(() => {
    for (const element of document.querySelectorAll(".notice")) {
      if (known.has(element)) continue;
      known.add(element);
      const { width, height } = element.getBoundingClientRect();
      const text = element.querySelector("span[dir]").textContent.trim();
      window.keptNotices.push({ element, text, isSeen: element.checkVisibility() && width > 0 && height > 0 });
    }
  }).observe(document, { childList: true, subtree: true });
}

/** Runs in the page: whether this was said. It counts once, and nothing that was said before it counts any more. */
export function takeNotice([pattern, isToBeSeen]) {
  const isWanted = ({ element, text, isSeen }) => new RegExp(pattern).test(text) && (!isToBeSeen || isSeen || element.checkVisibility());
  const at = window.keptNotices.findIndex(isWanted);
  if (at >= 0) window.keptNotices.splice(0, at + 1);
  return at >= 0;
}

/** What `takeNotice` takes: the whole text, or a pattern. */
export const wantedNotice = (text, isToBeSeen = true) => [
  text instanceof RegExp ? text.source : `^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`,
  isToBeSeen,
];
