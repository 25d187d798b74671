// Reads Server-Sent Events from bytes.

import { HotlineError } from "./errors.js";

/** Longest event that is read; the service's own limit is about 1 MiB. */
const EVENT_CHARACTERS_MAX = 8 * 1024 * 1024;

/** Splits a stream into the data of its events. Comments and unknown fields are skipped. */
export class SseParser {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];
  #length = 0;

  /** The data of the events that are complete with these bytes. */
  feed(bytes: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    const events = lines.flatMap((line) => this.#line(line.endsWith("\r") ? line.slice(0, -1) : line));
    if (this.#rest.length + this.#length > EVENT_CHARACTERS_MAX) throw new HotlineError("an event is too long");
    return events;
  }

  #line(line: string): string[] {
    if (line === "") {
      const data = this.#data.join("\n");
      const isEvent = this.#data.length > 0;
      this.#data = [];
      this.#length = 0;
      return isEvent ? [data] : [];
    }
    if (line.startsWith("data:")) {
      const data = line.slice(5).replace(/^ /, "");
      this.#data.push(data);
      this.#length += data.length;
    }
    return [];
  }
}
