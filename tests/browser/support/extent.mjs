// How much a run looks at, and how patient it is: all that the environment says of it, in one place.

/**
 * `HOTLINE_BROWSER_PROOFS=1`: every page in every language, light and dark, on every device, and what measures time. Otherwise
 * each page is looked at in one language and one theme, and no case depends on how fast this machine is.
 */
export const isProofs = process.env.HOTLINE_BROWSER_PROOFS === "1";

/** All of them for the proofs, otherwise the first. */
export const chosen = (all) => (isProofs ? all : all.slice(0, 1));

/** Options of a case that measures time. */
export const measures = { skip: !isProofs && "it measures time: HOTLINE_BROWSER_PROOFS=1" };

/** `SCREENSHOTS=1`: pictures are taken for people to look at, as proofs do; `all`: of every page in every language. */
export const isPictured = isProofs || Boolean(process.env.SCREENSHOTS);
export const isAllPictured = process.env.SCREENSHOTS === "all";

/** `HOTLINE_TEST_PATIENCE`: so many times as long as usual everything is waited for that is to come true. */
const patience = Number(process.env.HOTLINE_TEST_PATIENCE || 1);
if (!(patience > 0)) throw new Error("HOTLINE_TEST_PATIENCE is a number above 0");

/** A limit of time. What succeeds never waits as long, so limits are generous. */
export const patiently = (ms) => ms * patience;

/** Until a service or a browser has started. */
export const START_TIME_MAX_MS = patiently(120_000);
