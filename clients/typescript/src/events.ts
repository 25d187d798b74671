// Events as they happen, across disconnects: by the stream, and by pages where a stream would begin too late.

import { ApiConnectionError, ApiError, EventGap, type HotlineError } from "./errors.js";
import { Events as Generated } from "./generated/resources.js";
import type { CompanyEvent, EventKind } from "./generated/types.js";
import { isRetried, sleep, waitAfter } from "./retry.js";

/** Events of a page while catching up. */
const PAGE = 1000;
/** Attempts after which the wait between two no longer grows. */
const ATTEMPTS_MAX = 6;

/** What to listen to. */
export interface ListenOptions<K extends EventKind = EventKind> {
  /** The last event that was processed; `latest` (the default) for what happens from now, `oldest` for all that is kept. */
  after?: number | "latest" | "oldest";
  /** Only these types. */
  types?: readonly K[];
  /**
   * Called if events after `after` have expired. Read the records again in it; the events that are kept follow. Without
   * it, the gap is thrown.
   */
  onGap?: (gap: EventGap) => void | Promise<void>;
  /** Called when the connection was lost, before the next attempt. */
  onDisconnect?: (error: HotlineError | undefined) => void;
  /** Ends the iteration. */
  signal?: AbortSignal;
}

/** The operations on events, and `listen`. */
export class Events extends Generated {
  /**
   * Events as they happen, in order, each once, for as long as the iteration runs: lost connections are made again, and
   * continue after the last event. Store the `id` of each event you have processed, and pass it as `after` next time.
   */
  async *listen<K extends EventKind = EventKind>(
    options: ListenOptions<K> = {},
  ): AsyncGenerator<Extract<CompanyEvent, { type: K }>, void, undefined> {
    type Event = Extract<CompanyEvent, { type: K }>;
    const position = new Position(await this.#start(options));
    for (let failures = 0; !options.signal?.aborted; ) {
      let error: HotlineError | undefined;
      try {
        for await (const event of this.#connection(position, options)) {
          failures = 0;
          yield event as Event;
        }
      } catch (thrown) {
        if (options.signal?.aborted) return;
        if (!isPassing(thrown)) throw thrown;
        error = thrown;
      }
      options.onDisconnect?.(error);
      failures = Math.min(failures + 1, ATTEMPTS_MAX);
      const retryAfter = error instanceof ApiError ? error.retryAfter : undefined;
      await sleep(waitAfter(failures, retryAfter), options.signal).catch(() => undefined);
    }
  }

  /** Where to begin; what makes this impossible is an error at once. */
  async #start(options: ListenOptions): Promise<number | undefined> {
    const { after } = { after: "latest", ...options };
    if (after === "oldest") return undefined;
    // A position that was lost, or read as text, must not begin with what happens from now: events would be skipped.
    if (after !== "latest" && !Number.isSafeInteger(after)) {
      throw new TypeError(`after must be the id of an event, "latest" or "oldest", not ${JSON.stringify(after)}`);
    }
    if (typeof after === "number") return after;
    const { meta } = await this.list({ after: "latest", limit: 1 }, callOf(options));
    return meta.lastId;
  }

  /** What has happened since, then what happens while the connection lasts. */
  async *#connection(position: Position, options: ListenOptions): AsyncGenerator<CompanyEvent, void, undefined> {
    const types = options.types ? { types: [...options.types] } : {};
    for (let hasMore = true; hasMore; ) {
      const after = position.query();
      const { data, meta } = await this.list({ ...after, ...types, limit: PAGE }, callOf(options));
      if (meta.gap) {
        const gap = new EventGap(position.lastId ?? 0, meta.oldestId);
        if (options.onGap === undefined) throw gap;
        await options.onGap(gap);
      }
      for (const event of data) {
        position.lastId = event.id;
        yield event;
      }
      // A log that was restored from a backup ends before a later position.
      position.lastId = meta.gap ? meta.lastId : Math.max(meta.lastId, position.lastId ?? 0);
      hasMore = meta.hasMore;
    }
    for await (const event of this.stream({ ...position.query(), ...types }, callOf(options))) {
      position.lastId = event.id;
      yield event;
    }
  }
}

class Position {
  lastId: number | undefined;

  constructor(lastId: number | undefined) {
    this.lastId = lastId;
  }

  query(): { after?: number } {
    return this.lastId === undefined ? {} : { after: this.lastId };
  }
}

function callOf(options: ListenOptions): { signal?: AbortSignal } {
  return options.signal ? { signal: options.signal } : {};
}

/** Whether a later attempt can succeed. */
function isPassing(error: unknown): error is HotlineError {
  return error instanceof ApiConnectionError || (error instanceof ApiError && isRetried(error.status));
}
