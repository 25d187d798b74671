// Requests to the service: other attempts under one key, and its errors as those of n8n.

import type { IExecuteFunctions, IHookFunctions, IHttpRequestMethods, IHttpRequestOptions, JsonObject } from "n8n-workflow";
import { NodeApiError, NodeOperationError, sleep } from "n8n-workflow";

/** Attempts of a request. */
const ATTEMPTS_MAX = 5;
/** Longest wait that a response may ask for; a longer one is an error. */
const WAIT_MAX_SECONDS = 60;
/** Longest an attempt may take. */
const TIMEOUT_MS = 30_000;
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);

/** A request, from the path on. */
export interface ApiRequest {
  method: string;
  path: string;
  query?: Record<string, string>;
  /** JSON, or a form with its type. */
  body?: string | Buffer;
  contentType?: string;
  /** The same in every attempt. */
  key?: string;
}

/** The response to a request that succeeded. */
export interface ApiResponse {
  body: { data?: unknown; meta?: { nextCursor?: string | null } };
  isReplay: boolean;
}

interface RawResponse {
  statusCode: number;
  headers: Record<string, string | undefined>;
  body: unknown;
}

type Context = IExecuteFunctions | IHookFunctions;

/** Makes a request, again while that may help. Anything but a success is a `NodeApiError`. */
export async function request(context: Context, made: ApiRequest, itemIndex?: number): Promise<ApiResponse> {
  const { url } = await context.getCredentials<{ url: string }>("hotlineApi", itemIndex);
  const options = optionsOf(baseOf(context, url), made);
  for (let attempt = 1; ; attempt++) {
    let response: RawResponse | undefined;
    let cause: unknown;
    try {
      response = (await context.helpers.httpRequestWithAuthentication.call(context, "hotlineApi", options)) as RawResponse;
    } catch (error) {
      cause = error;
    }
    if (response !== undefined && response.statusCode < 300) return successOf(context, made, response);
    // A record whose deletion was answered by a response that was lost is gone.
    if (response?.statusCode === 404 && made.method === "DELETE" && attempt > 1) return { body: {}, isReplay: false };
    const wait = waitAfter(attempt, response);
    if (wait === undefined) throw errorOf(context, made, response, cause, itemIndex);
    await sleep(wait);
  }
}

function optionsOf(base: string, made: ApiRequest): IHttpRequestOptions {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (made.body !== undefined) headers["Content-Type"] = made.contentType ?? "application/json";
  if (made.key !== undefined) headers["Idempotency-Key"] = made.key;
  return {
    method: made.method as IHttpRequestMethods,
    url: base + made.path,
    qs: made.query ?? {},
    headers,
    ...(made.body === undefined ? {} : { body: made.body }),
    returnFullResponse: true,
    ignoreHttpStatusErrors: true,
    // Another host must not get the token.
    disableFollowRedirect: true,
    timeout: TIMEOUT_MS,
  };
}

function baseOf(context: Context, url: string): string {
  if (!/^https?:\/\/[^/?#\s]+/.test(url)) {
    throw new NodeOperationError(context.getNode(), "The URL of the credential must be like https://support.example.com");
  }
  return url.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

function jsonOf(body: unknown): unknown {
  if (Buffer.isBuffer(body)) return jsonOf(body.toString());
  if (typeof body !== "string") return body;
  if (body === "") return {};
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function successOf(context: Context, made: ApiRequest, response: RawResponse): ApiResponse {
  const body = jsonOf(response.body) ?? (response.statusCode === 204 ? {} : undefined);
  if (typeof body !== "object" || body === null) {
    throw new NodeOperationError(context.getNode(), `${made.method} ${made.path}: the response is not JSON; is the URL that of Hotline?`);
  }
  return { body, isReplay: response.headers["idempotent-replay"] === "true" };
}

/** Milliseconds until the next attempt; `undefined` if there is none. */
function waitAfter(attempt: number, response: RawResponse | undefined): number | undefined {
  if (attempt >= ATTEMPTS_MAX || (response !== undefined && !RETRIED.has(response.statusCode))) return undefined;
  const asked = Number(response?.headers["retry-after"] ?? 0);
  if (asked > WAIT_MAX_SECONDS) return undefined;
  return Math.max(Number.isFinite(asked) ? asked * 1000 : 0, Math.random() * 500 * 2 ** attempt);
}

function errorOf(context: Context, made: ApiRequest, response: RawResponse | undefined, cause: unknown, itemIndex?: number): NodeApiError {
  const place = itemIndex === undefined ? {} : { itemIndex };
  if (response === undefined) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new NodeApiError(context.getNode(), { message: reason }, { message: `No response from the service: ${reason}`, ...place });
  }
  const { error } = (jsonOf(response.body) ?? {}) as { error?: { code?: string; message?: string; details?: unknown } };
  const message = error?.message ?? `${made.method} ${made.path}: the response ${response.statusCode} is not one of Hotline`;
  return new NodeApiError(context.getNode(), { ...error, requestId: response.headers["x-request-id"] } as JsonObject, {
    message: error?.code === undefined ? message : `${message} (${error.code})`,
    description: describe(error?.details, response.headers["x-request-id"]),
    httpCode: String(response.statusCode),
    ...place,
  });
}

/** Every field that is wrong, or what else the error names. */
function describe(details: unknown, requestId: string | undefined): string {
  const parts = Array.isArray(details)
    ? details.map((one: { field?: string; reason?: string }) => (one.field === undefined ? JSON.stringify(one) : `${one.field}: ${one.reason ?? "invalid"}`))
    : details === undefined || details === null
      ? []
      : [JSON.stringify(details)];
  return [...parts, ...(requestId === undefined ? [] : [`request ${requestId}`])].join("; ");
}
