// Checks that a request to a webhook is the service's: Standard Webhooks, https://www.standardwebhooks.com.

import { WebhookVerificationError } from "./errors.js";
import { Webhooks as Generated } from "./generated/resources.js";
import type { CompanyEvent } from "./generated/types.js";

/** Farthest that the clock of a request may be from ours. */
const TOLERANCE_SECONDS = 300;

/** Headers as `fetch`, Node or a framework has them. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

/** How strict a verification is. */
export interface VerifyOptions {
  /** Farthest that the request's time may be from now, in seconds. Default: 300. */
  tolerance?: number;
  /** The time to compare with. */
  now?: Date;
}

/**
 * The event of a request to a webhook, if the service sent it, else a `WebhookVerificationError`. `raw` is the body as it
 * arrived: parsed and written again it has other bytes. While a secret is being rotated, give both.
 */
export async function verify(
  raw: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<CompanyEvent> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature").split(" ").filter((one) => one.startsWith("v1,"));
  const now = (options.now ?? new Date()).getTime() / 1000;
  if (!/^\d+$/.test(timestamp) || Math.abs(now - Number(timestamp)) > (options.tolerance ?? TOLERANCE_SECONDS)) {
    throw new WebhookVerificationError("the request is too old, or its time is in the future");
  }
  const body = typeof raw === "string" ? new TextEncoder().encode(raw) : new Uint8Array(raw as ArrayBuffer);
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  for (const one of typeof secret === "string" ? [secret] : secret) {
    const key = await crypto.subtle.importKey("raw", keyOf(one), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) {
      const given = decode(signature.slice(3));
      // `verify` compares in constant time.
      if (given && (await crypto.subtle.verify("HMAC", key, given, signed))) return parse(body);
    }
  }
  throw new WebhookVerificationError("no signature of the request is valid");
}

function header(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([one]) => one.toLowerCase() === name)?.[1];
  const text = Array.isArray(value) ? value[0] : value;
  if (typeof text !== "string" || text === "") throw new WebhookVerificationError(`the request has no ${name}`);
  return text;
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = decode(secret.replace(/^whsec_/, ""));
  if (!key?.length) throw new TypeError("a secret of a webhook is whsec_ and a key in base64");
  return key;
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function parse(body: Uint8Array): CompanyEvent {
  try {
    return JSON.parse(new TextDecoder().decode(body)) as CompanyEvent;
  } catch (error) {
    throw new WebhookVerificationError("the body is not JSON", { cause: error });
  }
}

/** The operations on webhooks, and `verify`. */
export class Webhooks extends Generated {
  /** The event of a request to a webhook, if the service sent it. */
  readonly verify: typeof verify = verify;
}
