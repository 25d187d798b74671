// Waits for what is to come true, and for nothing else.

import { patiently } from "./extent.mjs";

const WAIT_MAX_MS = patiently(60_000);
const LOOK_EVERY_MS = 25;

/** What `look` answers, once it is something. */
export async function eventually(what, look) {
  const until = Date.now() + WAIT_MAX_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > until) throw new Error(`not within ${WAIT_MAX_MS / 1000} s: ${what}`);
    await new Promise((wait) => setTimeout(wait, LOOK_EVERY_MS));
  }
}
