// Callers that send one request after the other over HTTP, each over a connection of its own that is kept where the server
// keeps it. A request that is refused or not answered in time ends the run.

import { Agent, request as open } from "node:http";

import { latencies } from "../support/figures.mjs";
import { until } from "../support/processes.mjs";

/** How long an answer may take. */
const ANSWER_TIME_MAX_MS = 30_000;

/** How long what was accepted may take to be in the database. */
const STORE_TIME_MAX_MS = 60_000;

/** Sends one request, and answers its status and body. */
export function send(base, { method, path, headers = {}, body }, agent) {
  return new Promise((resolve, reject) => {
    const bytes = body === undefined ? undefined : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
    const sent = open(base + path, {
      method,
      agent,
      headers: { ...(bytes && { "Content-Type": "application/json", "Content-Length": bytes.length }), ...headers },
    });
    sent.setTimeout(ANSWER_TIME_MAX_MS, () => sent.destroy(new Error(`no answer within ${ANSWER_TIME_MAX_MS / 1000} s`)));
    sent.on("error", (error) => reject(new Error(`${method} ${path}: ${error.message}`, { cause: error })));
    sent.on("response", (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode, text: Buffer.concat(parts).toString() }));
    });
    sent.end(bytes);
  });
}

/** Sends one request and answers its JSON; fails if it is refused. */
export async function ask(base, request, agent) {
  const { status, text } = await send(base, request, agent);
  if (status < 200 || status > 299) throw new Error(`${request.method} ${request.path}: ${status} ${text.slice(0, 400)}`);
  return text ? JSON.parse(text) : null;
}

/** Calls `work` with each number below `count`, some at once, and answers what it answered, in order. */
export async function each(count, work, atOnce = 8) {
  const [results, numbers] = [[], Array(count).keys()];
  const one = async () => {
    for (const number of numbers) results[number] = await work(number);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, one));
  return results;
}

/**
 * Runs a step of a subject with so many callers. Warm-up counts for nothing; then requests that are sent before time is up
 * count, until the last of them is answered. Callers share out the conversations, so no two write to the same one at once.
 * Then the subject's database has as many messages more as were accepted.
 */
export async function measure(subject, step, { callers, seconds, warmUpS }) {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const storedBefore = step.entries ? 0 : await subject.stored();
  const phase = async (durationS) => {
    const [from, tookMs] = [performance.now(), []];
    const end = from + durationS * 1000;
    const call = async (caller) => {
      for (let turn = 0; ; turn++) {
        const started = performance.now();
        if (started >= end) return;
        const conversation = (caller + callers * turn) % subject.count;
        await ask(subject.url, step.request(conversation), agent);
        tookMs.push(performance.now() - started);
      }
    };
    await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
    return { tookMs, tookS: (performance.now() - from) / 1000 };
  };
  try {
    const warmUp = await phase(warmUpS);
    const [before, ownBefore] = [subject.usage(), process.cpuUsage()];
    const { tookMs, tookS } = await phase(seconds);
    const [after, own] = [subject.usage(), process.cpuUsage(ownBefore)];
    const [server, database] = ["server", "database"].map((part) => after[part].cpuS - before[part].cpuS);
    const sent = warmUp.tookMs.length + tookMs.length;
    if (!step.entries) await until(`${sent} messages are stored`, async () => (await subject.stored()) - storedBefore === sent, STORE_TIME_MAX_MS);
    const { count, p50, p99, max } = latencies(tookMs);
    return {
      ...{ count, p50, p99, max, perS: count / tookS },
      ...{ cpuMs: ((server + database) * 1000) / count, databaseCpuMs: (database * 1000) / count },
      callerCpuPart: (own.user + own.system) / 1e6 / tookS,
    };
  } catch (error) {
    throw new Error(`${subject.name}, ${step.name}, ${callers} at once: ${error.message}\n${subject.log()}`, { cause: error });
  } finally {
    agent.destroy();
  }
}
