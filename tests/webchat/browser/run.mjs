// Runs the cases against a service of their own. `node run.mjs [file or --option of node's test runner]…`

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { Service } from "./support/service.mjs";

/** Of a file of cases. */
const TIME_MAX_MS = 180_000;

const folder = fileURLToPath(new URL("cases/", import.meta.url));
const given = process.argv.slice(2);
const options = given.filter((word) => word.startsWith("--"));
const named = given.filter((word) => !word.startsWith("--"));
const all = (await readdir(folder)).filter((file) => file.endsWith(".test.mjs")).sort();
const files = all.filter((file) => !named.length || named.some((name) => file.includes(name)));

const service = await Service.start();
let status = 1;
try {
  // One file after the other: browsers side by side would wait for each other, and not for the service.
  const runner = ["--test", "--test-concurrency=1", `--test-timeout=${TIME_MAX_MS}`, "--test-reporter=spec", ...options];
  const tests = spawn(process.execPath, [...runner, ...files.map((file) => folder + file)], {
    stdio: "inherit",
    env: { ...process.env, HOTLINE_TEST_DATA_DIR: service.dataDir, HOTLINE_TEST_URL: service.url },
  });
  [status] = await once(tests, "exit");
  if (status !== 0) console.error(`the service logged:\n${await service.log()}`);
} finally {
  await service.remove();
}
process.exit(status ?? 1);
