// Sends requests: authentication, idempotency keys, timeouts, retries, and errors as classes. Logs nothing, and never
// shows the token.

import { errorOf } from "./error-of.js";
import { ApiConnectionError, ApiError, ApiTimeoutError, HotlineError, SecretLost } from "./errors.js";
import { type Body, form, iterate } from "./files.js";
import { List, type Page } from "./list.js";
import type { CallOptions, ClientOptions, ConditionalWriteOptions, ResponseInfo } from "./options.js";
import { isRetried, retryAfterOf, sleep, waitAfter } from "./retry.js";
import { SseParser } from "./sse.js";
import { VERSION } from "./version.js";

const TIMEOUT_MS = 30_000;
const RETRIES_MAX = 4;
const RETRY_AFTER_MAX_MS = 60_000;
/** The service sends a comment every 15 seconds: a stream that is silent for longer is dead. */
const STREAM_SILENCE_MAX_MS = 45_000;

/** A request, as generated code describes it. */
export interface Request {
  id: string;
  method: string;
  path: string;
  query?: object;
  body?: object;
  /** Whether the operation takes an `Idempotency-Key`. */
  keyed?: boolean;
  /** The field with a secret, which a replayed response does not repeat. */
  secret?: string;
}

/** A request as it is sent, the same in each attempt. */
interface Prepared {
  request: Request;
  url: string;
  headers: Record<string, string>;
  content: Blob | string | undefined;
}

/** A response whose body has been read. */
interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/** The connection of a client to the service. */
export class Transport {
  readonly #base: string;
  readonly #apiKey: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #options: ClientOptions;
  #clockOffset = 0;

  constructor(options: ClientOptions) {
    const env = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
    this.#base = baseOf(options.url ?? env.HOTLINE_URL);
    const apiKey = options.apiKey ?? env.HOTLINE_API_KEY;
    if (!apiKey) throw new HotlineError("no API token: give apiKey, or set HOTLINE_API_KEY");
    if (!/^[!-~]+$/.test(apiKey)) throw new HotlineError("the API token contains characters that no token has");
    this.#apiKey = apiKey;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#options = options;
  }

  /**
   * The time at the service, by the `Date` of its latest response. It lags by the time that the response took and up to
   * a second, and is ahead only if this machine's clock has run fast since.
   */
  now(): Date {
    return new Date(Date.now() + this.#clockOffset);
  }

  /** A record, or records without pages. */
  async data<T>(request: Request, options: ConditionalWriteOptions): Promise<T> {
    const answer = await this.#send(request, options);
    const data = (json(request, answer) as { data: T }).data;
    if (request.secret !== undefined && answer.headers.get("idempotent-replay") === "true") {
      const record = data as Record<string, unknown>;
      if (record[request.secret] == null) throw new SecretLost(request.id, request.secret, record);
    }
    return data;
  }

  /** The whole body. */
  async whole<T>(request: Request, options: CallOptions): Promise<T> {
    return json(request, await this.#send(request, options)) as T;
  }

  /** For operations without a response body. */
  async nothing(request: Request, options: ConditionalWriteOptions): Promise<void> {
    await this.#send(request, options);
  }

  /** The body as text of this type. */
  async text(request: Request, accept: string, options: CallOptions): Promise<string> {
    return (await this.#send(request, options, accept)).text;
  }

  list<T>(request: Request, options: CallOptions): List<T> {
    const query = (request.query ?? {}) as { cursor?: string };
    return new List<T>(async (cursor) => {
      const answer = await this.#send({ ...request, query: { ...query, cursor } }, options);
      const body = json(request, answer) as { data: T[]; meta: { hasMore: boolean; nextCursor?: string | null } };
      const page: Page<T> = { data: body.data, hasMore: body.meta.hasMore, nextCursor: body.meta.nextCursor ?? null };
      return { page, date: dateOf(answer.headers) ?? this.now() };
    }, query.cursor ?? "");
  }

  /** The events of one connection, until it ends. */
  async *stream<T>(request: Request, options: CallOptions): AsyncGenerator<T, void, undefined> {
    const prepared = await this.#prepare(request, {}, "text/event-stream");
    const deadline = new Deadline(options.timeout ?? this.#options.timeout ?? TIMEOUT_MS, options.signal);
    try {
      const body = await this.#openStream(prepared, deadline);
      yield* this.#readStream<T>(request, body, deadline);
    } finally {
      deadline.clear();
    }
  }

  async #openStream(prepared: Prepared, deadline: Deadline): Promise<ReadableStream<Uint8Array>> {
    const throwExplained = (error: unknown): never => {
      throw deadline.explain(error, prepared.request.id);
    };
    const response = await this.#fetchResponse(prepared, deadline).catch(throwExplained);
    const { status, headers, body } = response;
    if (!response.ok || body === null) {
      const answer = { status, headers, text: await response.text().catch(throwExplained) };
      const error = this.#errorOf(prepared, answer);
      this.#report(prepared, answer, 1, error);
      throw error;
    }
    try {
      this.#report(prepared, { status, headers, text: "" }, 1, undefined);
    } catch (error) {
      // The caller's `onResponse` threw: nobody reads the stream.
      await body.cancel().catch(() => undefined);
      throw error;
    }
    return body;
  }

  async *#readStream<T>(
    request: Request,
    body: ReadableStream<Uint8Array>,
    deadline: Deadline,
  ): AsyncGenerator<T, void, undefined> {
    const parser = new SseParser();
    deadline.restart(STREAM_SILENCE_MAX_MS);
    try {
      for await (const bytes of iterate(body)) {
        // The time that the caller takes for an event is not silence of the service.
        deadline.pause();
        for (const data of parser.feed(bytes)) yield JSON.parse(data) as T;
        deadline.restart(STREAM_SILENCE_MAX_MS);
      }
    } catch (error) {
      throw deadline.explain(error, request.id);
    }
  }

  async #send(request: Request, options: ConditionalWriteOptions, accept?: string): Promise<Answer> {
    const prepared = await this.#prepare(request, options, accept);
    const retries = options.maxRetries ?? this.#options.maxRetries ?? RETRIES_MAX;
    let isOutcomeUnknown = false;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#attempt(prepared, options, attempt);
      if (!(outcome instanceof HotlineError)) return outcome;
      // An earlier attempt may have deleted the record before its response was lost.
      if (isOutcomeUnknown && request.method === "DELETE" && outcome instanceof ApiError && outcome.status === 404) {
        return { status: 204, headers: new Headers(), text: "" };
      }
      const retryAfter = outcome instanceof ApiError ? outcome.retryAfter : undefined;
      if (attempt > retries || !this.#mayRetry(prepared, outcome, retryAfter)) throw outcome;
      isOutcomeUnknown ||= !(outcome instanceof ApiError) || outcome.status >= 500;
      await sleep(waitAfter(attempt, retryAfter), options.signal);
    }
  }

  #mayRetry(prepared: Prepared, error: HotlineError, retryAfter: number | undefined): boolean {
    const { method, keyed } = prepared.request;
    const isRepeatable = method === "GET" || method === "DELETE" || keyed === true;
    if (error instanceof ApiConnectionError) return isRepeatable;
    if (!(error instanceof ApiError) || !isRetried(error.status)) return false;
    const retryAfterMaxMs = this.#options.maxRetryAfter ?? RETRY_AFTER_MAX_MS;
    // After 429 nothing was executed, so any request may be repeated.
    return (isRepeatable || error.status === 429) && (retryAfter ?? 0) * 1000 <= retryAfterMaxMs;
  }

  /** One attempt, reported: its answer, or an error of the service or the connection. Throws all others. */
  async #attempt(prepared: Prepared, options: CallOptions, attempt: number): Promise<Answer | HotlineError> {
    const answer = await this.#exchange(prepared, options);
    if (answer instanceof HotlineError) return answer;
    const error = answer.status >= 400 ? this.#errorOf(prepared, answer) : undefined;
    this.#report(prepared, answer, attempt, error);
    return error ?? answer;
  }

  /** Calls the caller's `onResponse`, whose exception ends the call: it is not a failure of the connection. */
  #report(prepared: Prepared, answer: Answer, attempt: number, error: ApiError | undefined): void {
    this.#options.onResponse?.(infoOf(prepared.request.id, answer, attempt, error?.code));
  }

  /** Sends the request once: its answer of any status, or the error of the connection. */
  async #exchange(prepared: Prepared, options: CallOptions): Promise<Answer | ApiConnectionError> {
    const deadline = new Deadline(options.timeout ?? this.#options.timeout ?? TIMEOUT_MS, options.signal);
    try {
      const response = await this.#fetchResponse(prepared, deadline);
      return { status: response.status, headers: response.headers, text: await response.text() };
    } catch (error) {
      const explained = deadline.explain(error, prepared.request.id);
      if (explained instanceof ApiConnectionError) return explained;
      throw explained;
    } finally {
      deadline.clear();
    }
  }

  async #fetchResponse(prepared: Prepared, deadline: Deadline): Promise<Response> {
    const { request, url, headers, content } = prepared;
    const body = content === undefined ? {} : { body: content };
    const response = await this.#fetch(url, {
      method: request.method,
      headers,
      // A redirect could send the token to another host.
      redirect: "manual",
      signal: deadline.signal,
      ...body,
    });
    if (response.status === 0 || (response.status >= 300 && response.status < 400)) {
      throw new HotlineError(`${request.id}: the service redirects; set the URL to where it is`);
    }
    const date = dateOf(response.headers);
    if (date !== undefined) this.#clockOffset = date.getTime() - Date.now();
    return response;
  }

  #errorOf(prepared: Prepared, answer: Answer): ApiError {
    let error: { code?: unknown; message?: unknown; details?: unknown } = {};
    try {
      error = (JSON.parse(answer.text) as { error?: typeof error }).error ?? {};
    } catch {
      // Not the service's JSON, such as the error page of a proxy: only the status is known.
    }
    return errorOf({
      status: answer.status,
      code: typeof error.code === "string" ? error.code : "",
      message: typeof error.message === "string" ? error.message : "the response is not one of Hotline",
      details: error.details,
      requestId: answer.headers.get("x-request-id") ?? undefined,
      retryAfter: retryAfterOf(answer.headers, Date.now() + this.#clockOffset),
      operation: prepared.request.id,
    });
  }

  async #prepare(request: Request, options: ConditionalWriteOptions, accept = "application/json"): Promise<Prepared> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#apiKey}`, accept };
    if (!("document" in globalThis)) headers["user-agent"] = `hotline-typescript/${VERSION}`;
    const key = options.idempotencyKey ?? crypto.randomUUID();
    if (request.keyed) headers["idempotency-key"] = key;
    if (options.ifMatch !== undefined) headers["if-match"] = etagOf(options.ifMatch);
    const body = await bodyOf(request.body, key);
    if (body !== undefined) headers["content-type"] = body.contentType;
    return { request, url: this.#base + request.path + queryOf(request.query), headers, content: body?.content };
  }
}

/** Aborts an attempt when its time is up, or when the caller's signal is aborted. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #abort = (): void => this.#controller.abort(this.#caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isTimedOut = false;

  constructor(ms: number, caller: AbortSignal | undefined) {
    this.#caller = caller;
    if (caller?.aborted) this.#abort();
    caller?.addEventListener("abort", this.#abort, { once: true });
    this.restart(ms);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isTimedOut = true;
      this.#controller.abort();
    }, ms);
  }

  /** Stops the time until the next `restart`. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  clear(): void {
    this.pause();
    this.#caller?.removeEventListener("abort", this.#abort);
  }

  /** The error to throw in place of one that a request has thrown. */
  explain(error: unknown, operation: string): unknown {
    if (error instanceof HotlineError) return error;
    if (this.#isTimedOut) return new ApiTimeoutError(`${operation}: no response in time`, { cause: error });
    if (this.#caller?.aborted) return this.#caller.reason;
    if (error instanceof SyntaxError) return new HotlineError(`${operation}: the response is not valid`, { cause: error });
    return new ApiConnectionError(`${operation}: no response from the service: ${causeOf(error)}`, { cause: error });
  }
}

/** Why the connection failed: `fetch` puts it into the `cause` of its error. */
function causeOf(error: unknown): string {
  const cause = (error as { cause?: { code?: string; message?: string } })?.cause;
  return cause?.code ?? cause?.message ?? (error as Error)?.message ?? String(error);
}

function baseOf(url: string | undefined): string {
  if (!url) throw new HotlineError("no URL of the service: give url, or set HOTLINE_URL");
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password) {
    throw new HotlineError("the URL of the service must be like https://hotline.example, without a user or password");
  }
  return (parsed.origin + parsed.pathname).replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

function queryOf(query: object | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === undefined || value === null) continue;
    const text = value instanceof Date ? value.toISOString() : Array.isArray(value) ? value.join(",") : String(value);
    parameters.append(name, text);
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

/** The body of a request. The boundary of a form follows from the key, so that equal calls have equal bytes. */
async function bodyOf(body: object | undefined, key: string): Promise<Body | undefined> {
  if (body === undefined) return undefined;
  if ((body as { medias?: unknown[] }).medias?.length) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
    const boundary = Array.from(digest.subarray(0, 24), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return form(body, boundary);
  }
  const { medias: _, ...fields } = body as { medias?: unknown[] };
  return { content: JSON.stringify(fields), contentType: "application/json" };
}

function etagOf(value: string): string {
  return /^(W\/)?"|^\*$/.test(value) ? value : `"${value}"`;
}

function json(request: Request, answer: Answer): unknown {
  try {
    return JSON.parse(answer.text);
  } catch (error) {
    throw new HotlineError(`${request.id}: the response is not JSON; is the URL that of Hotline?`, { cause: error });
  }
}

function dateOf(headers: Headers): Date | undefined {
  const at = Date.parse(headers.get("date") ?? "");
  return Number.isNaN(at) ? undefined : new Date(at);
}

function infoOf(operation: string, answer: Answer, attempt: number, code: string | undefined): ResponseInfo {
  const { headers, status } = answer;
  const number = (name: string): number => Number(headers.get(name));
  return {
    operation,
    status,
    code,
    attempt,
    requestId: headers.get("x-request-id") ?? undefined,
    isReplay: headers.get("idempotent-replay") === "true",
    etag: headers.get("etag") ?? undefined,
    date: dateOf(headers),
    rateLimit: headers.has("ratelimit-limit")
      ? { limit: number("ratelimit-limit"), remaining: number("ratelimit-remaining"), reset: number("ratelimit-reset") }
      : undefined,
  };
}
