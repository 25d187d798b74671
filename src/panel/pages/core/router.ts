// Which page is shown. The address says it whole, so that it can be kept, sent and gone back to.

import { signal } from "@preact/signals";

/** Where the pages are served. */
export const BASE = "/panel";

const read = () => ({
  path: location.pathname.slice(BASE.length).replace(/\/+$/, "") || "/",
  query: new URLSearchParams(location.search),
});

/** The address of now, without the base. */
export const here = signal(read());

addEventListener("popstate", () => (here.value = read()));

/** Goes to a page; `replace` leaves no step to go back to. */
export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", BASE + to);
  else history.pushState(null, "", BASE + to);
  here.value = read();
  if (!replace) scrollTo(0, 0);
}

/** Changes parts of the query; an empty value takes a part away. */
export function ask(change: Record<string, string>): void {
  const query = new URLSearchParams(here.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const words = query.toString();
  go(here.value.path + (words ? `?${words}` : ""), { replace: true });
}

/** Links are plain links; those to pages of the panel load nothing anew. */
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
  if (link.pathname !== BASE && !link.pathname.startsWith(`${BASE}/`)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname.slice(BASE.length) + link.search);
});

/** What a pattern such as `/queues/:id/users` finds in a path. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const [parts, given] = [pattern.split("/"), path.split("/")];
  if (parts.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [at, part] of parts.entries()) {
    const value = given[at] ?? "";
    if (part.startsWith(":")) {
      if (!value) return null;
      found[part.slice(1)] = decodeURIComponent(value);
    } else if (part !== value) return null;
  }
  return found;
}
