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
let failures = 0;
try {
  process.env.HOTLINE_TEST_DATA_DIR = service.dataDir;
  process.env.HOTLINE_TEST_URL = service.url;
  const tests = run({ files: files.map((file) => folder + file), concurrency: CONCURRENCY, timeout: TIME_MAX_MS });
  tests.on("test:fail", () => (failures += 1));
  const report = tests.compose(new spec());
  report.pipe(process.stdout);
  await finished(report);
  if (failures) console.error(`the service logged:\n${await service.log()}`);
} finally {
  await service.remove();
}
process.exitCode = failures ? 1 : 0;
