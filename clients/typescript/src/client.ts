// The client: the generated resources, and what is written by hand beside them.

import { Events } from "./events.js";
import { Resources } from "./generated/resources.js";
import type { ClientOptions } from "./options.js";
import { Transport } from "./transport.js";
import { Webhooks } from "./webhooks.js";

/** A client of a company: `new Hotline()` reads `HOTLINE_URL` and `HOTLINE_API_KEY`. */
export class Hotline extends Resources {
  override readonly events: Events;
  override readonly webhooks: Webhooks;
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    const transport = new Transport(options);
    super(transport);
    this.#transport = transport;
    this.events = new Events(transport);
    this.webhooks = new Webhooks(transport);
  }

  /**
   * The time by the service's clock, as of its latest response: what filters such as `updatedFrom` are compared with.
   * This machine's clock before the first response.
   */
  now(): Date {
    return this.#transport.now();
  }
}
