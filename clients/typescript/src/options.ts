// What a caller may choose, for the client and for one call.

import type { ErrorCode } from "./generated/types.js";

/** The limits of the company, from the latest response. */
export interface RateLimit {
  /** Requests allowed per minute. */
  limit: number;
  /** Requests remaining now. */
  remaining: number;
  /** Seconds until the full limit is available again. */
  reset: number;
}

/** One attempt of a call, as `onResponse` gets it. */
export interface ResponseInfo {
  /** The operation, as the API document names it. */
  operation: string;
  /** The HTTP status. */
  status: number;
  /** The code of an error, if the response is one. */
  code: ErrorCode | (string & {}) | undefined;
  /** The id of the request in the logs of the service. */
  requestId: string | undefined;
  /** The number of the attempt, from 1. */
  attempt: number;
  /** Whether the response repeats that of an earlier request with the same key. */
  isReplay: boolean;
  /** The `ETag` of the record, if the response has one. */
  etag: string | undefined;
  /** The clock of the service. */
  date: Date | undefined;
  rateLimit: RateLimit | undefined;
}

/** How a client reaches the service. */
export interface ClientOptions {
  /** The URL of the service. Default: `HOTLINE_URL`. */
  url?: string;
  /** The API token, `sk_live_…`. Default: `HOTLINE_API_KEY`. */
  apiKey?: string;
  /** Longest an attempt may take, in milliseconds. Default: 30,000. */
  timeout?: number;
  /** Attempts after the first. Default: 4. */
  maxRetries?: number;
  /** Longest wait that a response may ask for, in milliseconds; a longer one is an error. Default: 60,000. */
  maxRetryAfter?: number;
  /** The function that makes requests. Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** Called with every response, for logs and metrics. */
  onResponse?: (response: ResponseInfo) => void;
}

/** What any call may be given. */
export interface CallOptions {
  /** Longest an attempt may take, in milliseconds. */
  timeout?: number;
  /** Attempts after the first. */
  maxRetries?: number;
  /** Ends the call, also while it waits for its next attempt. */
  signal?: AbortSignal;
}

/** What a call that takes effect once may be given. */
export interface WriteOptions extends CallOptions {
  /** The key under which the call takes effect once within 24 hours. Default: a new one for each call. */
  idempotencyKey?: string;
}

/** What a call may be given that can depend on the state of the record. */
export interface ConditionalOptions extends CallOptions {
  /** The `updatedAt` of the record that was read, or its `ETag`: the change is made only if it is still that. */
  ifMatch?: string;
}

/** Both. */
export interface ConditionalWriteOptions extends WriteOptions, ConditionalOptions {}
