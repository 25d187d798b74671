// What must hold while the service is killed, for the TypeScript client: `clients/proofs.sh typescript`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { EventGap, Hotline } from "../typescript/dist/index.js";

const WRITES = Number(process.env.CLIENTS_WRITES ?? 10_000);
const KILLS = Number(process.env.HOTLINE_KILLS);
const WORKERS = 16;
// Longest a part may take before it has failed.
const MINUTES_MAX = 20;

const seen = { retries: 0, replays: 0, disconnects: 0 };
const onResponse = ({ attempt, isReplay }) => {
  seen.retries += attempt > 1;
  seen.replays += isReplay;
};
const hotline = new Hotline({ maxRetries: 40, onResponse });
const kills = () => readFileSync(process.env.HOTLINE_KILLS_FILE, "utf8").split("\n").length - 1;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
setTimeout(() => assert.fail(`not done within ${MINUTES_MAX} minutes`), MINUTES_MAX * 60_000).unref();

/** Runs `work` for each number, so that every kill interrupts some of it. */
async function spread(count, work) {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const number = next++;
      while (kills() < KILLS && number >= ((kills() + 1) * count) / (KILLS + 1)) await sleep(20);
      await work(number);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
}

/** Every created contact's code, in the order of the events. */
async function listen(controller, codes) {
  const events = hotline.events.listen({ after: "oldest", types: ["contact.created"], signal: controller.signal, onDisconnect: () => seen.disconnects++ });
  let last = 0;
  for await (const event of events) {
    assert.ok(event.id > last, `event ${event.id} after ${last}`);
    last = event.id;
    codes.push(event.data.code);
    if (codes.length === WRITES) controller.done();
  }
}

async function writesAndEvents() {
  const codes = [];
  const controller = new AbortController();
  const all = new Promise((resolve) => (controller.done = resolve));
  const listening = listen(controller, codes);
  await spread(WRITES, (number) => hotline.contacts.create({ name: `Contact ${number}`, code: `w-${number}` }));
  await Promise.race([all, listening]);
  const found = new Map();
  for await (const { code } of hotline.contacts.list()) found.set(code, (found.get(code) ?? 0) + 1);
  await sleep(1000);
  controller.abort();
  await listening;
  assert.equal(kills(), KILLS);
  for (let number = 0; number < WRITES; number++) assert.equal(found.get(`w-${number}`), 1, `effects of write ${number}`);
  assert.equal(found.size, WRITES);
  assert.equal(new Set(codes).size, WRITES);
  assert.equal(codes.length, WRITES);
  assert.ok(seen.retries > 0 && seen.disconnects > 0, "no kill was noticed");
  console.log(`${WRITES} writes through ${KILLS} kills: ${WRITES} effects (${seen.retries} answers after a retry, ${seen.replays} of them replays)`);
  console.log(`${codes.length} events over ${seen.disconnects} lost connections: each once, in order`);
}

async function pagesThatShift() {
  const search = "shifting";
  const ids = { stay: [], go: [] };
  for (let number = 0; number < 2000; number += 20) {
    const made = Array.from({ length: 20 }, (_, at) => hotline.contacts.create({ name: `${search} ${number + at}` }));
    (await Promise.all(made)).forEach(({ id }, at) => ids[at % 2 ? "go" : "stay"].push(id));
  }
  const read = [];
  for await (const page of hotline.contacts.list({ search, perPage: 50 }).pages()) {
    read.push(...page.data.map(({ id }) => id));
    const gone = ids.go.splice(0, 25).map((id) => hotline.contacts.delete(id));
    await Promise.all([...gone, ...Array.from({ length: 5 }, () => hotline.contacts.create({ name: `${search} more` }))]);
  }
  const counts = new Map();
  for (const id of read) counts.set(id, (counts.get(id) ?? 0) + 1);
  assert.ok(ids.stay.every((id) => counts.get(id) === 1) && [...counts.values()].every((count) => count === 1));
  console.log(`${ids.stay.length} contacts paged while others were added and deleted: each once`);
}

async function gapReported() {
  execFileSync("clients/proofs/expire.sh", ["50"], { stdio: "inherit" });
  await assert.rejects(hotline.events.listen({ after: 10 }).next(), (error) => error instanceof EventGap && error.after === 10);
  let gap;
  for await (const event of hotline.events.listen({ after: 10, onGap: (found) => void (gap = found) })) {
    assert.equal(event.id, gap.oldestId);
    break;
  }
  console.log(`a gap after event 10 reported, the oldest is ${gap.oldestId}`);
}

await writesAndEvents();
await pagesThatShift();
await gapReported();
