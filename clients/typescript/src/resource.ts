// What all generated resources are made of.

import type { Transport } from "./transport.js";

/** A group of operations. */
export class Resource {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }
}

/** An id as a segment of a path. An empty one would address another resource. */
export function segment(id: number | string): string {
  const text = String(id ?? "");
  if (text === "" || text === "." || text === "..") throw new TypeError(`an id is required, not "${text}"`);
  return encodeURIComponent(text);
}
