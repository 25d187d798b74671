// What the visitor said and the service has not confirmed yet. An entry is kept in the browser from the moment it is
// said until its message is there, and is sent under one `clientId` as often as it takes: the service takes it once.

import { backoff } from "./backoff.js";

/** How long an entry that another tab has sent stays on the screen, waiting for its message. */
const SETTLES_WITHIN_MS = 8_000;

const NAME = "out:";

/** Unlike `randomUUID`, also there on pages without TLS. */
function newClientId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  /** `deliver(entry)` resolves once the message is there, and throws a `Refused`. */
  constructor(memory, deliver, changed) {
    this.memory = memory;
    this.deliver = deliver;
    this.changed = changed;
    this.entries = new Map();
    this.attempts = 0;
    /** Whether the service has asked to send more slowly. */
    this.isSlowed = false;
    this.last = 0;
    for (const entry of memory.all(NAME)) this.entries.set(entry.clientId, entry);
    // A file is not kept over a reload, only that there was one.
    for (const entry of memory.get("files", memory.ofTab) || []) {
      this.entries.set(entry.clientId, { ...entry, failed: "lostFile" });
    }
    addEventListener("online", () => this.nudge());
  }

  /** In the order in which they were said. */
  list() {
    return [...this.entries.values()].sort((one, other) => one.at - other.at);
  }

  has = (clientId) => this.entries.has(clientId);

  add(what) {
    this.last = Math.max(Date.now(), this.last + 1);
    const entry = { ...what, clientId: newClientId(), at: this.last };
    this.entries.set(entry.clientId, entry);
    this.keep(entry);
    this.changed();
    this.nudge();
    return entry;
  }

  /** Its message is there, or the visitor does not want it any more. */
  remove(clientId) {
    const entry = this.entries.get(clientId);
    if (!this.entries.delete(clientId)) return;
    // A file that is on its way holds up the next.
    if (entry.stop) entry.stop.abort();
    this.memory.set(NAME + clientId, null);
    this.keepFiles();
    this.changed();
  }

  /** Nothing of it is to be sent any more, by any tab. */
  clear() {
    clearTimeout(this.timer);
    this.isSlowed = false;
    for (const clientId of [...this.entries.keys()]) this.remove(clientId);
  }

  retry(clientId) {
    const entry = this.entries.get(clientId);
    if (!entry) return;
    delete entry.failed;
    this.keep(entry);
    this.changed();
    this.nudge();
  }

  /** Another tab has said, sent or given up something. */
  reread(clientId) {
    const kept = this.memory.get(NAME + clientId);
    const entry = this.entries.get(clientId);
    if (kept) this.entries.set(clientId, { ...entry, ...kept, failed: kept.failed });
    else if (entry && entry.failed) this.entries.delete(clientId);
    else if (entry) setTimeout(() => this.entries.delete(clientId) && this.changed(), SETTLES_WITHIN_MS);
    this.changed();
    this.nudge();
  }

  /** Sends now what would have been sent later. */
  nudge() {
    this.attempts = 0;
    this.send();
  }

  /** Sends all there is, one after the other; of several tabs one at a time. */
  async send() {
    clearTimeout(this.timer);
    if (this.isSending) {
      this.isAskedAgain = true;
      return;
    }
    this.isSending = true;
    let pause = null;
    do {
      this.isAskedAgain = false;
      pause = await this.memory.alone("outbox", () => this.drain());
    } while (this.isAskedAgain && pause === null);
    this.isSending = false;
    if (pause === null) return;
    if (this.isAskedAgain) this.attempts = 0;
    this.timer = setTimeout(() => this.send(), this.isAskedAgain ? backoff(0) : pause);
  }

  /** Null when nothing is left to send, else how long to wait before the next attempt. */
  async drain() {
    for (let entry; (entry = this.next()); ) {
      try {
        await this.deliver(entry);
        this.attempts = 0;
        this.slow(false);
      } catch (refused) {
        this.slow(refused.status === 429);
        if (!this.has(entry.clientId)) continue;
        if (refused.isPassing) return Math.max(refused.retryAfterMs, backoff(this.attempts++));
        entry.failed = refused.code || "failed";
        entry.status = refused.status;
        this.keep(entry);
        this.changed();
      }
    }
    return null;
  }

  slow(is) {
    if (this.isSlowed === is) return;
    this.isSlowed = is;
    this.changed();
  }

  next() {
    const isWaiting = (entry) =>
      !entry.failed && (entry.file ? entry.file instanceof File : !entry.isKept || this.memory.get(NAME + entry.clientId));
    return this.list().find(isWaiting);
  }

  keep(entry) {
    if (entry.file) return this.keepFiles();
    this.memory.set(NAME + entry.clientId, { ...entry, isKept: true });
    entry.isKept = Boolean(this.memory.get(NAME + entry.clientId));
  }

  keepFiles() {
    const files = this.list().filter((entry) => entry.file);
    const names = files.map(({ clientId, at, file }) => ({ clientId, at, file: { name: file.name } }));
    this.memory.set("files", names.length ? names : null, this.memory.ofTab);
  }
}

export const entryOf = (name) => (name.startsWith(NAME) ? name.slice(NAME.length) : null);
