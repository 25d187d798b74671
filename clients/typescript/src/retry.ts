// When a call is tried again, and how long it waits before.

/** Statuses after which another attempt can succeed. */
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);
/** The first wait at most, doubled with each attempt. */
const WAIT_FIRST_MS = 500;
/** The longest wait between two attempts that the service does not ask for. */
const WAIT_MAX_MS = 8_000;

/** Whether a response with this status may be followed by another attempt. */
export function isRetried(status: number): boolean {
  return RETRIED.has(status);
}

/** How long to wait after this attempt (from 1), in milliseconds: random, so that clients do not come back together. */
export function waitAfter(attempt: number, retryAfterSeconds: number | undefined): number {
  const longest = Math.min(WAIT_MAX_MS, WAIT_FIRST_MS * 2 ** (attempt - 1));
  const wait = longest / 2 + (Math.random() * longest) / 2;
  return (retryAfterSeconds ?? 0) * 1000 + wait;
}

/** `Retry-After`, in seconds: a number, or a time. */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value.trim()) ? Number(value) : (Date.parse(value) - now) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

/** Waits, unless the signal ends it. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
