// The messages of a conversation, in their order. A visitor may come back to thousands of them, so nothing here looks at all of them for one.

import { locationIn } from "./place.js";

export class History {
  constructor(kept = []) {
    this.clear();
    this.add(kept);
  }

  clear() {
    this.byId = new Map();
    /** All messages, by id. */
    this.sorted = [];
    /** What the visitor answered to each message, by its id. */
    this.answers = new Map();
    /** The newest location that the visitor shared. */
    this.sharedAt = 0;
  }

  get = (id) => this.byId.get(id);

  /** The newest message, or undefined. */
  get last() {
    return this.sorted[this.sorted.length - 1];
  }

  /** Takes messages over, many at once; one that is there already is replaced. */
  add(messages) {
    let isSorted = true;
    for (const message of messages) {
      const known = this.byId.get(message.id);
      const taken = { ...message, readAt: message.readAt || (known && known.readAt) || null };
      this.byId.set(message.id, taken);
      if (known) this.sorted[this.placeOf(message.id, isSorted)] = taken;
      else {
        if (this.last && this.last.id > message.id) isSorted = false;
        this.sorted.push(taken);
      }
      if (taken.direction === "inbound") this.note(taken);
    }
    if (!isSorted) this.sorted.sort((one, other) => one.id - other.id);
  }

  note({ id, body, quotedMessageId }) {
    if (quotedMessageId) this.answers.set(quotedMessageId, body);
    if (id > this.sharedAt && locationIn(body)) this.sharedAt = id;
  }

  /** Where a message is that is there. */
  placeOf(id, isSorted) {
    return isSorted ? this.firstAfter(id - 1) : this.sorted.findIndex((message) => message.id === id);
  }

  /** The place of the first message with a higher id. */
  firstAfter(id) {
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.sorted[middle].id > id) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  after = (id) => this.sorted.slice(this.firstAfter(id));

  /** The company's newest message, or undefined. */
  get newestOfTheirs() {
    for (let at = this.sorted.length - 1; at >= 0; at--) {
      if (this.sorted[at].direction === "outbound") return this.sorted[at];
    }
    return undefined;
  }

  /** The company has read the visitor's messages up to this one. */
  readByThem({ upTo, at }) {
    for (let place = this.firstAfter(upTo) - 1; place >= 0; place--) {
      const message = this.sorted[place];
      if (message.direction === "inbound") message.readAt ||= at;
    }
  }
}
