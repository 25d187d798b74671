// Which page is shown. The address says it whole, company and all, so that it can be kept, sent and gone back to: it opens the same in any
// tab, for all who may see it.

import { signal } from "@preact/signals";

/** Where the pages are served. */
export const BASE = "/panel";

/** The installation, below which its own pages are. */
const SERVER = "/server";

/** Pages that belong to no company. */
const OF_SERVER = /^\/(companies|installation)(\/|$)/;

/** Whether a page belongs to the installation alone. */
export const isOfServer = (path: string): boolean => OF_SERVER.test(path);

/** Pages that belong to nobody yet. */
const OPEN = /^\/welcome(\/|$)/;

/** Whose pages are shown: a company's by its id, the installation's, or what the address leaves open. */
export type Scope = number | "server" | null;

export interface Here {
  scope: Scope;
  /** The address below its scope. */
  path: string;
  query: URLSearchParams;
}

function read(): Here {
  const whole = location.pathname.slice(BASE.length);
  const company = /^\/c\/(\d{1,15})(?=\/|$)/.exec(whole);
  const isServer = whole === SERVER || whole.startsWith(`${SERVER}/`);
  const rest = company ? whole.slice(company[0].length) : isServer ? whole.slice(SERVER.length) : whole;
  return {
    scope: company ? Number(company[1]) : isServer ? "server" : null,
    path: rest.replace(/\/+$/, "") || "/",
    query: new URLSearchParams(location.search),
  };
}

/** The address of now. */
export const here = signal(read());

addEventListener("popstate", () => (here.value = read()));

/** The address of a page in a scope; without one, in that of the page that is shown. */
export function href(to: string, scope: Scope = here.value.scope): string {
  if (OPEN.test(to)) return BASE + to;
  const whose = isOfServer(to.split("?")[0] ?? "") ? "server" : scope;
  return BASE + (whose === null ? "" : whose === "server" ? SERVER : `/c/${whose}`) + to;
}

/** Goes to a page; `replace` leaves no step to go back to. */
export function go(to: string, { replace = false, scope = here.value.scope }: { replace?: boolean; scope?: Scope } = {}): void {
  goAt(href(to, scope), replace);
}

function goAt(address: string, replace: boolean): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
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
  goAt(link.pathname + link.search, false);
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
      try {
        found[part.slice(1)] = decodeURIComponent(value);
      } catch {
        // Somebody has typed what is no text: there is no such page.
        return null;
      }
    } else if (part !== value) return null;
  }
  return found;
}
