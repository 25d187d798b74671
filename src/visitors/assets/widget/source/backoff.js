// How long to wait before trying again.

const FIRST_MS = 500;

/** Short enough that a visitor who waits sees it come back. */
const LAST_MS = 30_000;

/** Doubling up to `lastMs`, with jitter, so that a service that comes back is not met by all browsers at once. */
export function backoff(attempts, lastMs = LAST_MS) {
  const most = Math.min(lastMs, FIRST_MS * 2 ** Math.min(attempts, 10));
  return most * (0.5 + Math.random() / 2);
}
