// The one way to the service. Shapes are those of its own document, from which `schema.d.ts` is made.

import type { components } from "./schema";
import { language } from "./text";

/** What the document calls by this name. */
export type Schemas = components["schemas"];
export type Of<Name extends keyof Schemas> = Schemas[Name];

export const API = "/panel/api/v1";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export interface FieldError {
  field: string;
  reason: string;
}

/** What the service has not done, and why. `status` is 0 when it was not reached, or its answer was lost. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: unknown,
    readonly retryAfterS: number | null,
  ) {
    super(message);
  }

  /** The fields that are wrong. */
  get fields(): FieldError[] {
    const { details } = this;
    if (Array.isArray(details)) {
      return details.filter((it): it is FieldError => typeof it?.field === "string" && typeof it?.reason === "string");
    }
    if (this.status === 409 && details && typeof details === "object" && "field" in details) {
      return [{ field: String(details.field), reason: "is taken" }];
    }
    return [];
  }

  /** What stands in the way of a change: how many of what. */
  get by(): { type: string; count: number }[] {
    const { details } = this;
    if (!details || typeof details !== "object" || !("by" in details) || !Array.isArray(details.by)) return [];
    return details.by.filter((it) => typeof it?.type === "string" && typeof it?.count === "number");
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface Call {
  query?: Query;
  body?: unknown;
  /** Whether a session that has ended is an answer, and not to be signed in again for. */
  quiet?: boolean;
  /** The company it is for, should that not be the one that is open now. */
  company?: number | null;
  signal?: AbortSignal;
}

/** Asked when a session has ended: resolves once somebody is signed in again, as who it was. */
let signInAgain: () => Promise<void> = () => Promise.reject(new Error("sign-in is not available yet"));

export function onEnded(handler: () => Promise<void>): void {
  signInAgain = handler;
}

/** Called when the session may do less than the pages think, since a second factor is required from now on. */
let lookAgain: () => void = () => {};

export function onRestricted(handler: () => void): void {
  lookAgain = handler;
}

/**
 * The company that calls are for. Users name theirs as well: all tabs share one cookie, and another tab may have signed somebody of another
 * company in.
 */
let company: number | null = null;

export function workIn(id: number | null): void {
  company = id;
}

/** What belongs to the installation or to the person, whichever company is open. */
const BESIDE_COMPANIES = /^\/(companies|installation|session|account|links)(\/|$)/;

/** A key for one change. `crypto.randomUUID` exists in secure contexts alone, and the panel is served over plain HTTP as well. */
const newKey = (): string => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A change without an answer, of which nobody knows whether it was made: the key it was sent with, and where and when. */
interface Unanswered {
  key: string;
  /** The company and the path. */
  place: string;
  at: number;
}

const unanswered = new Map<string, Unanswered>();
/** Changes of which the keys are kept; the oldest goes first. */
const UNANSWERED_MAX = 20;
/** How long a key is kept: who makes the same change later means another one. */
const UNANSWERED_MS = 5 * 60_000;

/** The same change has the same key until it is answered: who tries again does not make a second record. */
function keyOf(change: string, place: string): string {
  const known = unanswered.get(change);
  const key = known && Date.now() - known.at < UNANSWERED_MS ? known.key : newKey();
  unanswered.delete(change);
  unanswered.set(change, { key, place, at: Date.now() });
  const oldest = unanswered.keys().next();
  if (unanswered.size > UNANSWERED_MAX && !oldest.done) unanswered.delete(oldest.value);
  return key;
}

/**
 * A change was answered. What was sent to the same place before, without an answer, may be wanted again after it: under its first key it would
 * be answered as it was then, and not be made. A creation undoes none of those before it.
 */
function answered(method: Method, change: string, place: string): void {
  unanswered.delete(change);
  if (method !== "PUT" && method !== "DELETE") return;
  const above = method === "DELETE" ? place.slice(0, place.lastIndexOf("/")) : place;
  for (const [other, it] of unanswered) {
    if (it.place === place || it.place === above) unanswered.delete(other);
  }
}

async function once(method: Method, path: string, call: Call, [company, key]: [number | null, string]): Promise<Response> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const words = query.toString();
  // Letters that a call has sent are in the language of the pages, unless their reader has chosen one.
  const headers: Record<string, string> = { Accept: "application/json", "Accept-Language": language.value };
  if (company !== null && !BESIDE_COMPANIES.test(path)) headers["Hotline-Company"] = String(company);
  if (call.body !== undefined) headers["Content-Type"] = "application/json";
  if (method === "POST" || method === "PUT") headers["Idempotency-Key"] = key;
  const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
  if (call.body !== undefined) init.body = JSON.stringify(call.body);
  if (call.signal) init.signal = call.signal;
  return await fetch(API + path + (words ? `?${words}` : ""), init);
}

/** What the service answers, whole. */
export async function exchange(method: Method, path: string, call: Call = {}): Promise<unknown> {
  // Sent again after signing in, a change has the same company and key: it is made once, where it was meant to be made.
  const whose = call.company === undefined ? company : call.company;
  const change = JSON.stringify([whose, method, path, call.body]);
  const place = `${whose ?? ""} ${path}`;
  const isKeyed = (method === "POST" || method === "PUT") && !call.quiet;
  const key = isKeyed ? keyOf(change, place) : newKey();
  for (;;) {
    let response: Response;
    try {
      response = await once(method, path, call, [whose, key]);
    } catch (failed) {
      if (failed instanceof DOMException && failed.name === "AbortError") throw failed;
      throw new Refused(0, "", "", null, null);
    }
    if (response.status === 204) {
      answered(method, change, place);
      return null;
    }
    let answer: unknown = null;
    try {
      answer = await response.json();
    } catch (failed) {
      if (failed instanceof DOMException && failed.name === "AbortError") throw failed;
      // What was cut off in the middle is no answer; of one that refuses the status says enough.
      if (response.ok) throw new Refused(0, "", "", null, null);
    }
    if (response.status === 401 && !call.quiet) {
      await signInAgain();
      continue;
    }
    const error = (answer as { error?: { code?: string; message?: string; details?: unknown } } | null)?.error;
    // A proxy that has lost the service's answer sends an error of its own, which does not say whether the change was made.
    if (response.status >= 500 && typeof error?.code !== "string") throw new Refused(0, "", "", null, null);
    answered(method, change, place);
    if (response.ok) return answer;
    const retryAfter = Number(response.headers.get("Retry-After")) || null;
    if (error?.code === "ERR_API_SECOND_FACTOR" && !call.quiet) lookAgain();
    throw new Refused(response.status, error?.code ?? "", error?.message ?? "", error?.details ?? null, retryAfter);
  }
}

/** What is in `data`. */
export async function call<T>(method: Method, path: string, options: Call = {}): Promise<T> {
  return ((await exchange(method, path, options)) as { data: T } | null)?.data as T;
}

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  call<T>("GET", path, signal ? { query, signal } : { query });
export const post = <T>(path: string, body: unknown = {}): Promise<T> => call<T>("POST", path, { body });
export const put = <T>(path: string, body: unknown = {}): Promise<T> => call<T>("PUT", path, { body });
export const remove = (path: string): Promise<void> => call<void>("DELETE", path);

export interface Page<T> {
  data: T[];
  meta: { page: number; perPage: number; hasMore: boolean };
}

export const page = <T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> =>
  exchange("GET", path, signal ? { query, signal } : { query }) as Promise<Page<T>>;

/** Pages of a list that is read whole; what is longer has a page of its own to be read on. */
const WHOLE_PAGES_MAX = 20;

/** A list from its beginning to its end. */
export async function whole<T>(path: string, query: Query = {}): Promise<T[]> {
  const all: T[] = [];
  for (let at = 1; at <= WHOLE_PAGES_MAX; at++) {
    const { data, meta } = await page<T>(path, { ...query, page: at, perPage: 100 });
    all.push(...data);
    if (!meta.hasMore) break;
  }
  return all;
}
