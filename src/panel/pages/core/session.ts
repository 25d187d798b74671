// Who is signed in, and what they may do.

import { signal } from "@preact/signals";

import { exchange, onEnded, onRestricted, Refused, workIn, type Method } from "./client";
import { draftIn, dropDrafts } from "./drafts";
import { notify } from "./notices";
import { explain } from "./reasons";
import type { SignIn } from "./shapes";
import { LANGUAGES, speak } from "./text";

export type Stage = "loading" | "unreachable" | "out" | SignIn["state"];

export const stage = signal<Stage>("loading");
export const session = signal<SignIn | null>(null);

/** The company that an administrator of the installation works in: the one that the address names. */
export const opened = signal<{ id: number; name: string } | null>(null);

/** Whether a session has ended in the middle of something, and the sign-in is over the page. */
export const isEnded = signal(false);

/** Takes over what a sign-in has answered. */
export function enter(answer: SignIn): void {
  session.value = answer;
  stage.value = answer.state;
  const spoken = LANGUAGES.find((language) => language === answer.person?.language);
  if (spoken) speak(spoken);
}

/** Asks who is signed in. */
export async function look(): Promise<void> {
  try {
    enter(((await exchange("GET", "/session", { quiet: true })) as { data: SignIn }).data);
  } catch (failed) {
    stage.value = failed instanceof Refused && failed.status === 401 ? "out" : "unreachable";
  }
}

onRestricted(() => void look());

/** Whether two sessions are of the same person, of the same company. */
const isSame = (one: SignIn | null, other: SignIn): boolean =>
  one?.person?.kind === other.person?.kind && one?.person?.id === other.person?.id && one?.company?.id === other.company?.id;

/** Another tab may have signed somebody else in: nothing of who was signed in before is shown to them. */
addEventListener("focus", async () => {
  const before = session.value;
  if (stage.value !== "open" || isEnded.value) return;
  const now = await exchange("GET", "/session", { quiet: true }).catch(() => null);
  if (now && session.value === before && !isSame(before, (now as { data: SignIn }).data)) location.reload();
});

/** Signs out; who is not signed in any more is out already. */
export async function leave(): Promise<void> {
  try {
    await exchange("DELETE", "/session", { quiet: true });
  } catch (failed) {
    if (!(failed instanceof Refused && failed.status === 401)) return notify(explain(failed), true);
  }
  forget();
}

/** Nobody is signed in any more, and nothing is left of who was. */
export function forget(): void {
  dropDrafts();
  opened.value = null;
  workIn(null);
  draftIn(null);
  session.value = null;
  isEnded.value = false;
  // What waits belongs to who was signed in, and is never sent.
  again = null;
  stage.value = "out";
}

let again: { promise: Promise<void>; done: () => void } | null = null;

onEnded(() => {
  if (stage.value !== "open") {
    // On the way in there is nothing to be kept.
    forget();
    return new Promise(() => {});
  }
  if (!again) {
    let done = () => {};
    const promise = new Promise<void>((resolve) => (done = resolve));
    again = { promise, done };
    isEnded.value = true;
  }
  return again.promise;
});

/** The same person has signed in again: waiting calls continue. For another person the page is loaded again. */
export function resume(answer: SignIn): void {
  if (!isSame(session.value, answer)) {
    location.reload();
    return;
  }
  isEnded.value = false;
  enter(answer);
  // Where a second factor is to be set up first, forms are found as they were after that.
  if (answer.state === "open") again?.done();
  again = null;
}

/** Whether the person may do this with what a module holds. */
export function may(module: string, method: Method): boolean {
  const now = session.value;
  if (!now) return false;
  if (isAdmin()) return opened.value !== null;
  return now.permissions[module]?.includes(method) ?? false;
}

/** Whether it is an administrator of the installation. */
export const isAdmin = (): boolean => session.value?.person?.kind === "admin";

/** Whether they set up the company. */
export const administers = (): boolean => (isAdmin() ? opened.value !== null : (session.value?.administers ?? false));
