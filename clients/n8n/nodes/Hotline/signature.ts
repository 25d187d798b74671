// Checks that a request to a webhook is the service's: Standard Webhooks, https://www.standardwebhooks.com.

import { createHmac, timingSafeEqual } from "node:crypto";

/** Farthest that the clock of a request may be from ours. */
const TOLERANCE_SECONDS = 300;

/** Whether the service has sent this body with these headers. */
export function isSigned(secret: string, headers: Record<string, unknown>, body: Buffer, now = new Date()): boolean {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => headers[name]);
  if (typeof id !== "string" || typeof timestamp !== "string" || typeof signatures !== "string") return false;
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now.getTime() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (key.length === 0) return false;
  const expected = Buffer.from(`v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`);
  return signatures.split(" ").some((one) => {
    const given = Buffer.from(one);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
