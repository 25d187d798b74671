// Runs the cases against a service of their own. `node run.mjs [part of a file's name]…`

import { createWriteStream } from "node:fs";
import { mkdir, readdir, stat, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "node:test";
import { junit, spec } from "node:test/reporters";
import { finished } from "node:stream/promises";
import { fileURLToPath } from "node:url";

import { isProofs, patiently } from "./support/extent.mjs";
import { Service, target } from "./support/service.mjs";

/** Of one lane. */
const TIME_MAX_MS = patiently(isProofs ? 3_600_000 : 1_200_000);

/** So many lanes side by side: while one browser waits for the service, others draw. */
const CONCURRENCY = 3;

/**
 * The files of one lane share a process and a browser, one after the other: to start both takes as long as some cases. Several lanes follow each
 * other at each place, so that all places end at about the same time.
 */
const LANES = 9;

/** Of memory that is used as a disk: for four databases, and what browsers keep. */
const MEMORY_BYTES_MIN = 4 * 1024 ** 3;

/** Each case with its file and its time, for tools. */
const JUNIT = join(target, "nextest/browser.xml");

const folder = fileURLToPath(new URL("cases/", import.meta.url));
const named = process.argv.slice(2);
const all = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".test.mjs")).sort();
const files = all.filter((file) => !named.length || named.some((name) => file.includes(name)));
if (!files.length) throw new Error(`no file of cases is named so: ${named.join(" ")}`);

/** Deals the files to lanes by their size, which is about the time they take, and answers the files in this folder that begin them. */
async function lanes(place) {
  const sized = await Promise.all(files.map(async (file) => ({ file, size: (await stat(folder + file)).size })));
  const all = Array.from({ length: Math.min(LANES, files.length) }, () => ({ files: [], size: 0 }));
  for (const { file, size } of sized.sort((one, other) => other.size - one.size)) {
    const lane = all.reduce((least, it) => (it.size < least.size ? it : least));
    lane.files.push(file);
    lane.size += size;
  }
  return Promise.all(
    all.map(async ({ files }, number) => {
      const path = join(place, `${number}.test.mjs`);
      await writeFile(path, files.map((file) => `import ${JSON.stringify(folder + file)};\n`).join(""));
      return path;
    }),
  );
}

/** For people: every group of cases with its time, and each case that fails. */
async function* brief(events) {
  let begun = [];
  for await (const event of events) {
    const { type, data } = event;
    if (type === "test:start") begun.push(event);
    else if (type === "test:pass" && data.nesting > 0) begun.pop();
    else {
      if (type === "test:pass" || type === "test:fail") yield* begun.splice(0);
      yield event;
    }
  }
}

/** For tools: each case names its file. */
async function* filed(events) {
  for await (const event of events) {
    if (event.data.file) event.data.classname = event.data.file.slice(folder.length);
    yield event;
  }
}

/** Runs the files, and answers whether anything failed. */
async function isAnyFailed() {
  let isFailed = false;
  const tests = run({ files: await lanes(service.folder), concurrency: CONCURRENCY, timeout: TIME_MAX_MS });
  tests.on("test:fail", () => (isFailed = true));
  await mkdir(dirname(JUNIT), { recursive: true });
  const report = tests.compose(brief).compose(new spec());
  const record = tests.compose(filed).compose(junit).pipe(createWriteStream(JUNIT));
  report.pipe(process.stdout, { end: false });
  await Promise.all([finished(report), finished(record)]);
  return isFailed;
}

/** A folder in memory, if there is enough: services and browsers start in half of the time where nothing waits for a disk. */
async function inMemory(path) {
  const { bsize, blocks } = await statfs(path).catch(() => ({ bsize: 0, blocks: 0 }));
  return bsize * blocks >= MEMORY_BYTES_MIN ? path : undefined;
}

process.env.TMPDIR ??= (await inMemory("/dev/shm")) ?? tmpdir();
// Webhooks reach the receivers of the cases, which are on this machine.
const options = ["--webhook-allow-network", "127.0.0.0/8"];
const service = await Service.start("serve", { options });
try {
  process.env.HOTLINE_TEST_DATA_DIR = service.dataDir;
  process.env.HOTLINE_TEST_URL = service.url;
  if (await isAnyFailed()) {
    process.exitCode = 1;
    console.error(`the service logged:\n${await service.log()}`);
  }
} finally {
  await service.remove();
}
