// Runs the cases against a service of their own. `node run.mjs [part of a file's name]…`

import { readdir } from "node:fs/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { finished } from "node:stream/promises";
import { fileURLToPath } from "node:url";

import { Service } from "./support/service.mjs";

/** Of one file of cases. */
const TIME_MAX_MS = 300_000;
/** So many files side by side: while one browser waits for the service, others draw. */
const CONCURRENCY = 3;
/** Files of half a minute and more on a machine of two cores. */
const LONGEST = ["panel/accessible", "panel/states", "panel/mail", "panel/resources", "panel/tokens"];

const folder = fileURLToPath(new URL("cases/", import.meta.url));
const named = process.argv.slice(2);
const all = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".test.mjs")).sort();
const files = all.filter((file) => !named.length || named.some((name) => file.includes(name)));
// The longest first: whatever is begun last is what the end is waited for.
const isLong = (file) => LONGEST.some((name) => file.includes(name));
files.sort((one, other) => isLong(other) - isLong(one));
if (!files.length) throw new Error(`no file of cases is named so: ${named.join(" ")}`);

// Webhooks reach the receivers of the cases, which are on this machine.
const service = await Service.start("serve", { options: ["--webhook-allow-network", "127.0.0.0/8"] });
/** Runs files of cases, and answers those in which something failed. */
async function tried(files, concurrency) {
  const failed = new Set();
  const tests = run({ files: files.map((file) => folder + file), concurrency, timeout: TIME_MAX_MS });
  tests.on("test:fail", ({ file }) => failed.add(file.slice(folder.length)));
  const report = tests.compose(new spec());
  report.pipe(process.stdout, { end: false });
  await finished(report);
  return [...failed];
}

let failed = [];
try {
  process.env.HOTLINE_TEST_DATA_DIR = service.dataDir;
  process.env.HOTLINE_TEST_URL = service.url;
  failed = await tried(files, CONCURRENCY);
  if (failed.length && process.env.CI) {
    // As other tests are there: on a shared machine a browser may be stopped for longer than a case has patience.
    const again = await tried(failed, 1);
    for (const file of failed) console.log(`${again.includes(file) ? "TRY 2 FAIL" : "FLAKY 2/2"} [browser] ${file}`);
    failed = again;
  }
  if (failed.length) console.error(`the service logged:\n${await service.log()}`);
} finally {
  await service.remove();
}
process.exitCode = failed.length ? 1 : 0;
