// Whose pages somebody is shown: what the address says, as far as they may see it, and a company where it leaves that open.

import { batch, effect, signal } from "@preact/signals";

import { get, page, Refused, workIn } from "./client";
import { draftIn } from "./drafts";
import { explain } from "./reasons";
import { go, here, isOfServer, type Scope } from "./router";
import { isAdmin, opened, session, stage } from "./session";
import type { Company } from "./shapes";

/** Whether pages of the address can be shown, or why they cannot: it is another's, it is not there, or nobody knows yet. */
export type Place = "here" | "elsewhere" | "gone" | "looking" | "unreachable";

export const place = signal<Place>("looking");

/** Why the place could not be looked up. */
export const trouble = signal("");

/** The company that an administrator of the installation works in, or none. A user works in their own. */
function enter(company: { id: number; name: string } | null): void {
  workIn(company?.id ?? session.value?.company?.id ?? null);
  draftIn(company ? company.id : null);
  opened.value = company;
}

/** Which of several answers is still waited for. */
let asked = 0;

/** Pages that the installation has as well as its companies. */
const OF_BOTH = ["/", "/account", "/audit-log"];

/** Where somebody goes whose address names no company: into theirs; an administrator into the only one there is. */
async function choose(path: string): Promise<{ scope: Scope; to: string }> {
  const here = path + location.search;
  if (!isAdmin()) return { scope: session.value?.company?.id ?? null, to: here };
  if (isOfServer(path)) return { scope: "server", to: here };
  const { data } = await page<Company>("/companies", { perPage: 2 });
  const [only, other] = data;
  if (only && !other && only.active) return { scope: only.id, to: here };
  return { scope: "server", to: OF_BOTH.includes(path) ? here : "/" };
}

async function look(scope: Scope, path: string): Promise<void> {
  const mine = (asked += 1);
  const isCurrent = () => mine === asked;
  try {
    if (scope === null) {
      place.value = "looking";
      const chosen = await choose(path);
      if (isCurrent() && chosen.scope !== null) go(chosen.to, { replace: true, scope: chosen.scope });
      return;
    }
    if (!isAdmin()) {
      enter(null);
      place.value = scope === session.value?.company?.id ? "here" : "elsewhere";
      return;
    }
    if (scope === "server" || opened.peek()?.id === scope) {
      if (scope === "server") enter(null);
      place.value = "here";
      return;
    }
    place.value = "looking";
    // What was open before is not what is asked for from now on.
    const { id, name } = await get<Company>(`/companies/${scope}`);
    if (!isCurrent()) return;
    batch(() => {
      enter({ id, name });
      place.value = "here";
    });
  } catch (failed) {
    if (!isCurrent()) return;
    trouble.value = explain(failed);
    place.value = failed instanceof Refused && failed.status === 404 ? "gone" : "unreachable";
  }
}

/** Looks again, after it did not work. */
export const lookAgain = (): void => void look(here.value.scope, here.value.path);

/** Whose address was looked at last. */
let followed = "";

/** Follows the address, from the moment somebody is signed in. */
effect(() => {
  const { scope, path } = here.value;
  const who = session.value?.person;
  if (stage.value !== "open" || !who) {
    asked += 1;
    followed = "";
    place.value = "looking";
    return;
  }
  const whose = `${who.kind} ${who.id} ${session.value?.company?.id ?? ""} ${scope}`;
  if (whose === followed && place.peek() === "here") return;
  followed = whose;
  void look(scope, path);
});
