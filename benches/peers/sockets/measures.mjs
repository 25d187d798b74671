// The three measures of one server: memory of idle connections, deliveries at a steady rate, and what a `kill -9` loses.
// Each starts a fresh server, with clients of its own.

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import { Server, temporaryFolder, until, usageOf } from "../support/processes.mjs";
import { readText } from "../support/report.mjs";
import { Clients } from "./clients.mjs";

/** Memory has settled when it changes by less than this part within this time. */
const SETTLED_PART = 0.005;
const SETTLED_TIME_MS = 10_000;
const SETTLE_TIME_MAX_MS = 90_000;

/** CPU of what a server still does after the last message: until it uses at most a tick in a second. */
const IDLE_S = 0.011;
const IDLE_TIME_MAX_S = 3;

const WARM_UP_S = 2;

/** Messages sent one after the other while calls that sync to disk are counted. */
const TRACED_MESSAGES = 100;

/** Runs `work` with a fresh server and its clients, and ends both. */
async function withServer(peer, file, users, work) {
  const server = await peer.start({ users });
  let clients;
  try {
    clients = await Clients.of(file, server.target);
    return await work(server, clients);
  } finally {
    await clients?.end();
    await server.remove();
  }
}

/** Bytes of the server's processes once they have settled; shared pages count once. */
async function settledMemory(pids) {
  const end = Date.now() + SETTLE_TIME_MAX_MS;
  let [reference, since] = [0, 0];
  for (;;) {
    const bytes = usageOf(pids()).pssBytes;
    if (Math.abs(bytes - reference) > reference * SETTLED_PART) [reference, since] = [bytes, Date.now()];
    if (Date.now() - since >= SETTLED_TIME_MS || Date.now() > end) return bytes;
    await delay(500);
  }
}

/** Bytes of a connection: the slope between few idle connections and all. */
export function memory(peer, file, { base, connections }) {
  return withServer(peer, file, connections, async (server, clients) => {
    const read = async () => {
      const all = await settledMemory(server.pids);
      return { all, own: server.ownPids ? usageOf(server.ownPids()).pssBytes : all };
    };
    await clients.call("connect", { from: 0, to: base });
    const before = await read();
    await clients.call("connect", { from: base, to: connections });
    const after = await read();
    const slope = (part) => (after[part] - before[part]) / (connections - base);
    return {
      ...{ version: server.version, postgres: server.postgres, totalBytes: after.all },
      ...{ bytes: slope("own"), withDatabaseBytes: slope("all") },
    };
  });
}

/** CPU seconds of all processes, once the server has nothing to do any more. */
async function idleCpu(pids) {
  let before = usageOf(pids()).cpuS;
  for (let waited = 0; waited < IDLE_TIME_MAX_S; waited += 1) {
    await delay(1000);
    const now = usageOf(pids()).cpuS;
    if (now - before <= IDLE_S) return now;
    before = now;
  }
  return before;
}

/** Latency and CPU of a delivery at each rate; after one at which not all arrives in time, that of the lower rate. */
export function deliveries(peer, file, { users, rates, seconds }) {
  return withServer(peer, file, users, async (server, clients) => {
    await clients.call("connect", { from: 0, to: users, talks: true });
    await clients.call("openSender", { isConfirmed: false });
    const deliver = async (rate, time) => {
      const before = await idleCpu(server.pids);
      const own = server.ownPids && usageOf(server.ownPids()).cpuS;
      const result = await clients.call("deliver", { rate, seconds: time, users });
      const cpuS = (await idleCpu(server.pids)) - before;
      const ownS = server.ownPids ? usageOf(server.ownPids()).cpuS - own : cpuS;
      return { offered: rate, ...result, cpuUs: (cpuS / result.count) * 1e6, ownCpuUs: (ownS / result.count) * 1e6 };
    };
    const results = [];
    for (const rate of rates) {
      const last = results.at(-1);
      // What has not arrived of one rate would be counted as arrivals of the next.
      if (last && !last.isComplete) {
        results.push({ ...last, offered: rate });
        continue;
      }
      const warmUp = await deliver(rate, WARM_UP_S);
      results.push(warmUp.isComplete ? await deliver(rate, seconds) : warmUp);
    }
    return results;
  });
}

/**
 * Half of the users are there and half are away while messages are sent; the server is killed when half of the messages are
 * accepted, and started again; all users come back. Then counts the calls that sync to disk.
 */
export function kill(peer, file, { users, messages, rate }) {
  return withServer(peer, file, users, async (server, clients) => {
    const isAway = Array.from({ length: users >> 1 }, (_, index) => 2 * index + 1);
    await clients.call("connect", { from: 0, to: users, talks: true });
    await clients.call("leave", { users: isAway });
    await clients.call("openSender", { isConfirmed: true });
    let killed;
    clients.on("half", () => (killed = server.kill()));
    await clients.call("sendUntilKilled", { messages, rate, users });
    await killed;
    await server.again();
    const lost = await clients.call("reconnect", { users, isAway });
    const syncs = await tracedSyncs(server, clients, users);
    return { ...lost, syncs };
  });
}

/** How often the server and its database sync to disk for each of some messages that are sent one by one. */
async function tracedSyncs(server, clients, users) {
  await clients.call("openSender", { isConfirmed: true });
  // The first message may start what the others need.
  await clients.call("sendOneByOne", { messages: 1, users });
  const folder = await temporaryFolder("trace");
  const [file, log] = [join(folder, "calls"), join(folder, "strace.log")];
  const pids = server.pids();
  const own = server.ownPids?.() ?? pids;
  const database = pids.filter((pid) => !own.includes(pid));
  const words = ["-f", "-e", "trace=fsync,fdatasync,msync,sync_file_range,sync,syncfs", "-o", file, ...pids.flatMap((pid) => ["-p", String(pid)])];
  const tracer = Server.start("strace", "strace", words, { log });
  await until("strace is attached", async () => {
    if (!tracer.isRunning) throw Object.assign(new Error(`strace does not attach: ${tracer.tail()}`), { isFinal: true });
    return pids.every((pid) => tracer.tail(1000).includes(`Process ${pid} attached`));
  });
  await clients.call("sendOneByOne", { messages: TRACED_MESSAGES, users });
  await tracer.stop("SIGINT");
  const calls = (await readText(file)).split("\n").filter((line) => /\b(f?sync|fdatasync|msync|sync_file_range|syncfs)\(/.test(line));
  // Threads have ids of their own; processes of PostgreSQL have none.
  const ofDatabase = calls.filter((line) => database.includes(parseInt(line, 10))).length;
  return { own: (calls.length - ofDatabase) / TRACED_MESSAGES, database: ofDatabase / TRACED_MESSAGES };
}
