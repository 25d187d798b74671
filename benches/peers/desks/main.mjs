// Hotline beside what a user would take instead: Request Tracker, django-helpdesk and Synapse, all started here, each with a
// private PostgreSQL. Three steps of a conversation are measured in interleaved rounds: an inbound message kept, an answer
// sent, the list of the open. `make load-desks ARGS=peers` runs it; ARGS='--help' has the options.

import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { parseArgs } from "node:util";

import { medians } from "../support/figures.mjs";
import { isRelease } from "../support/hotline.mjs";
import { guarded } from "../support/processes.mjs";
import { writeFigures, writePage } from "../support/report.mjs";
import { Helpdesk } from "./helpdesk.mjs";
import { HotlineDesk } from "./hotline.mjs";
import { ask, measure } from "./load.mjs";
import { page } from "./page.mjs";
import { RequestTracker } from "./request_tracker.mjs";
import { Synapse } from "./synapse.mjs";

const HELP = `make load-desks ARGS='peers [options]': Hotline beside Request Tracker, django-helpdesk and Synapse.

  --seconds 10           of each measurement, after a warm-up of 2
  --rounds 3             the results are medians
  --conversations 1000   open ones in each
  --only rt,synapse      some of: hotline, rt, helpdesk, synapse
  --keep                 writes the page to benches/load/results/desks.md

It installs what is missing: packages of Debian with apt-get, as root, and of Python with pip under target/peers. Figures are in
target/peers/results. HOTLINE_LOAD_BINARY names another binary than that of \`make dist\`; TMPDIR selects the disk. Half an hour,
on an otherwise idle machine. A refused request fails the run.`;

const SUBJECTS = { hotline: HotlineDesk, rt: RequestTracker, helpdesk: Helpdesk, synapse: Synapse };
const CALLERS = [1, 16];
const WARM_UP_S = 2;
const PAGE_ENTRIES = 100;
/** A message of 200 characters. */
const TEXT = "The parcel has not arrived yet, and its number says it was delivered yesterday. ".repeat(3).slice(0, 200);

/** All steps of all subjects, one kind of step after the other. */
const STEPS = ["inbound", "call", "answer", "list", "apiList"];

function options() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...{ seconds: { type: "string", default: "10" }, rounds: { type: "string", default: "3" } },
      ...{ conversations: { type: "string", default: "1000" }, only: { type: "string" } },
      ...{ keep: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
    },
  });
  if (values.help) return null;
  if (positionals.join() !== "peers") throw new Error(`say which run: ARGS=peers\n\n${HELP}`);
  const number = (name) => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name} is a number above 0, not ${values[name]}`);
    return value;
  };
  const names = values.only?.split(",") ?? Object.keys(SUBJECTS);
  const unknown = names.find((name) => !SUBJECTS[name]);
  if (unknown !== undefined) throw new Error(`--only knows no ${unknown}: ${Object.keys(SUBJECTS).join(", ")}`);
  if (values.keep && values.only) throw new Error("--keep is for a run of all");
  return { seconds: number("seconds"), rounds: number("rounds"), conversations: number("conversations"), names, isKept: values.keep };
}

/** Sends each step once: it is accepted, and a list is a whole page. */
async function checkSteps(subject) {
  const expected = Math.min(PAGE_ENTRIES, subject.count);
  for (const step of Object.values(subject.steps)) {
    const answer = await ask(subject.url, step.request(0));
    const found = step.entries?.(answer) ?? expected;
    if (found !== expected) throw new Error(`${subject.name}, ${step.name}: ${found} entries, not ${expected}`);
  }
}

/** A disk in memory syncs nothing: what is durable would cost nothing. */
function checkDisk() {
  const [TMPFS, RAMFS] = [0x01021994, 0x858458f6];
  if ([TMPFS, RAMFS].includes(statfsSync(tmpdir()).type)) throw new Error(`${tmpdir()} is in memory: name a folder on a disk in TMPDIR`);
}

const mib = (usage) => ({ serverMib: usage.server.pssBytes / 2 ** 20, databaseMib: usage.database.pssBytes / 2 ** 20 });

await guarded(async () => {
  const chosen = options();
  if (!chosen) return console.log(HELP);
  const { seconds, rounds, conversations, names, isKept } = chosen;
  checkDisk();
  const subjects = names.map((name) => Object.assign(new SUBJECTS[name](), { text: TEXT }));
  for (const subject of subjects) await subject.install?.();
  for (const subject of subjects) {
    console.log(`${subject.name} starts`);
    await subject.start();
    const from = performance.now();
    await subject.prepare(conversations);
    console.log(`${subject.name} has ${conversations} conversations after ${Math.round((performance.now() - from) / 1000)} s`);
    await checkSteps(subject);
  }
  const [memory, cells] = [new Map(), new Map()];
  for (const subject of subjects) memory.set(subject, { rest: mib(subject.usage()) });
  for (let round = 0; round < rounds; round++) {
    for (const key of STEPS) {
      for (const callers of CALLERS) {
        for (const subject of subjects.filter(({ steps }) => steps[key])) {
          const measured = await measure(subject, subject.steps[key], { callers, seconds, warmUpS: Math.min(WARM_UP_S, seconds) });
          const cell = JSON.stringify([key, callers, subject.name]);
          cells.set(cell, [...(cells.get(cell) ?? []), measured]);
          const { perS, p50, p99, cpuMs } = measured;
          console.log(`round ${round + 1}: ${subject.name}, ${subject.steps[key].name}, ${callers} at once: ${perS.toFixed(1)}/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, CPU ${cpuMs.toFixed(3)} ms`);
        }
      }
    }
  }
  for (const subject of subjects) memory.get(subject).after = mib(subject.usage());
  const results = [...cells].map(([cell, measured]) => {
    const [key, callers, name] = JSON.parse(cell);
    return { key, callers, name, rounds: measured, ...medians(measured) };
  });
  const memories = subjects.map((subject) => ({ name: subject.name, ...memory.get(subject) }));
  const run = { seconds, rounds, conversations, versions: subjects.map(({ version }) => version), results, memories };
  await writeFigures("desks.json", run);
  const postgres = await subjects.find(({ postgres }) => postgres)?.postgres.sql("show server_version");
  console.log(`written to ${await writePage("desks.md", await page({ ...run, postgres, isRelease: isRelease() }), isKept)}`);
});
