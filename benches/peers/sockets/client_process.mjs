// All clients of one server, and its senders, in a process of their own: what they use is not counted as the server's. The
// parent (`clients.mjs`) tells it what to do. A message begins with its number; sent and received are of the same clock.

import { latencies } from "../support/figures.mjs";
import { until } from "../support/processes.mjs";

/** Connections opened at once. */
const AT_ONCE = 32;

/** As the messages of the other runs. */
const LENGTH = 200;

/** How long after the last send everything must have arrived. */
const ARRIVAL_TIME_MAX_MS = 180_000;

let client;
let peer;
const sockets = new Map();
let sender;
/** By number of the message. */
let [sentAt, took, accepted] = [[], [], []];
let next = 0;
let arrived = 0;
let lastAt = 0;
/** Set while closed connections are expected. */
let isKilled = false;
let failure;

function fail(reason) {
  failure ??= reason;
}

function onText(text) {
  const number = parseInt(text, 10);
  if (sentAt[number] === undefined || took[number] !== undefined) return;
  lastAt = performance.now();
  took[number] = lastAt - sentAt[number];
  arrived += 1;
}

const onClose = (user) => (reason) => {
  sockets.delete(user);
  if (!isKilled) fail(`the connection of ${user}: ${reason}`);
};

/** Does something for many users, some at once. */
async function each(users, work) {
  const left = [...users].reverse();
  const worker = async () => {
    for (let user; (user = left.pop()) !== undefined; ) await work(user);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const range = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

/** Sends one; its promise is kept by nobody, its failure by `onFailure`. */
function send(user, onAccepted, onFailure) {
  const number = next++;
  sentAt[number] = performance.now();
  sender.send(user, `${number} `.padEnd(LENGTH, "lorem ipsum ")).then(() => {
    accepted[number] = true;
    onAccepted?.(number);
  }, onFailure);
  return number;
}

/** Calls `step` when each is due, until it answers false. */
function atRate(rate, step) {
  return new Promise((done) => {
    const begun = performance.now();
    let count = 0;
    const timer = setInterval(() => {
      while (count <= ((performance.now() - begun) / 1000) * rate) {
        count += 1;
        if (step(count - 1) && !failure) continue;
        clearInterval(timer);
        return done();
      }
    }, 1);
  });
}

const calls = {
  async start({ name, target }) {
    peer = await import(`./${name}.mjs`);
    client = new peer.Client(target);
  },

  async connect({ from, to, talks }) {
    await each(range(from, to), async (user) => {
      sockets.set(user, await client.connect(user, { talks, onText, onClose: onClose(user) }));
    });
  },

  async openSender({ isConfirmed }) {
    await sender?.close();
    sender = await client.sender({ isConfirmed, onClose: onClose("the sender") });
  },

  /** At a steady rate, to one user after the other. `rate` is that of arrivals; `isComplete`: all have arrived in time. */
  async deliver({ rate, seconds, users }) {
    const [first, before, begun] = [next, arrived, process.cpuUsage()];
    const count = Math.round(rate * seconds);
    const start = performance.now();
    await atRate(rate, (index) => {
      send(index % users, null, (error) => fail(`a message is refused: ${error.message}`));
      return index + 1 < count;
    });
    const isComplete = () => arrived - before === count;
    const end = performance.now() + ARRIVAL_TIME_MAX_MS;
    await until("all messages arrive", () => failure || isComplete() || performance.now() > end, 2 * ARRIVAL_TIME_MAX_MS);
    const { user, system } = process.cpuUsage(begun);
    const measured = took.slice(first).filter((ms) => ms !== undefined);
    const arrivals = { rate: (arrived - before) / ((lastAt - start) / 1000), isComplete: isComplete() };
    return { ...latencies(measured), ...arrivals, clientCpuS: (user + system) / 1e6 };
  },

  async leave({ users }) {
    await each(users, async (user) => {
      await sockets.get(user).close();
      sockets.delete(user);
    });
  },

  /** Sends until the server is gone; tells the parent when half of the messages are accepted. */
  async sendUntilKilled({ messages, rate, users }) {
    let count = 0;
    let [settled, acceptedCount] = [0, 0];
    const isDone = () => isKilled && settled === count;
    const onAccepted = () => {
      settled += 1;
      acceptedCount += 1;
      if (acceptedCount < messages / 2 || isKilled) return;
      isKilled = true;
      process.send({ event: "half" });
    };
    const onFailure = (error) => {
      settled += 1;
      if (!isKilled) fail(`a message is refused: ${error.message}`);
    };
    await atRate(rate, (index) => {
      if (isKilled) return false;
      count += 1;
      send(index % users, onAccepted, onFailure);
      return index + 1 < messages;
    });
    await until("the server is gone for all its clients", () => failure || (isDone() && !sockets.size), ARRIVAL_TIME_MAX_MS);
    sender = null;
    return { accepted: accepted.filter(Boolean).length, arrived };
  },

  /** Every user comes back and gets what is kept; answers what was accepted and never arrived, by whether the user was there. */
  async comeBack({ users, isAway }) {
    isKilled = false;
    await each(range(0, users), async (user) => {
      sockets.set(user, await client.comeBack(user, { talks: true, onText, onClose: onClose(user) }));
    });
    const lost = { here: 0, away: 0, acceptedHere: 0, acceptedAway: 0 };
    for (const number of Object.keys(accepted)) {
      const away = isAway.includes(number % users);
      lost[away ? "acceptedAway" : "acceptedHere"] += 1;
      if (took[number] === undefined) lost[away ? "away" : "here"] += 1;
    }
    return lost;
  },

  /** One after the other, each accepted before the next is sent. */
  async sendOneByOne({ messages, users }) {
    for (let count = 0; count < messages; count += 1) {
      await new Promise((done, failed) => send(count % users, done, failed));
    }
  },
};

process.on("message", async ({ id, call, argument }) => {
  try {
    const answer = await calls[call](argument ?? {});
    if (failure) throw new Error(failure);
    process.send({ id, answer: answer ?? null });
  } catch (error) {
    process.send({ id, error: error.stack ?? String(error) });
  }
});
// The parent is gone.
process.on("disconnect", () => process.exit(1));
