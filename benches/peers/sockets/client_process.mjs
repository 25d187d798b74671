// All clients of one server, and the sender, in a separate process, so that their CPU time and memory are not counted as
// the server's. The parent (`clients.mjs`) calls its functions. Each message begins with its number, by which its latency
// is found: the same clock is read when it is sent and when it arrives.

import { latencies } from "../support/figures.mjs";
import { until } from "../support/processes.mjs";

/** Users who connect, leave or return at the same time. */
const CONCURRENT_USERS = 32;

/** Characters of a message; the page of results states them. */
const MESSAGE_LENGTH = 200;

/** Time in which all messages must arrive after the last one was sent. */
const ARRIVAL_TIME_MAX_MS = 180_000;

let client;
/** By user. */
const sockets = new Map();
let sender;
/** By number of the message: when it was sent, how long it took to arrive, and whether the server has accepted it. */
const [sentAt, latencyMs, accepted] = [[], [], []];
let nextNumber = 0;
let arrived = 0;
let lastArrivalAt = 0;
/** Set while closed connections are expected. */
let isKilled = false;
/** The first failure; it becomes the error of the call. */
let failure;

function fail(reason) {
  failure ??= reason;
}

function onText(text) {
  const number = parseInt(text, 10);
  // Not a measured message, or one that has arrived before.
  if (sentAt[number] === undefined || latencyMs[number] !== undefined) return;
  lastArrivalAt = performance.now();
  latencyMs[number] = lastArrivalAt - sentAt[number];
  arrived += 1;
}

const onClose = (user) => (reason) => {
  sockets.delete(user);
  if (!isKilled) fail(`the connection of ${user}: ${reason}`);
};

/** Runs `work` for every user, for several at the same time. */
async function each(users, work) {
  const remaining = [...users].reverse();
  const worker = async () => {
    for (let user; (user = remaining.pop()) !== undefined; ) await work(user);
  };
  await Promise.all(Array.from({ length: CONCURRENT_USERS }, worker));
}

const range = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

/** Sends the next message, without waiting: `onAccepted` or `onFailure` is called with the outcome. */
function send(user, onAccepted, onFailure) {
  const number = nextNumber++;
  sentAt[number] = performance.now();
  sender.send(user, `${number} `.padEnd(MESSAGE_LENGTH, "lorem ipsum ")).then(() => {
    accepted[number] = true;
    onAccepted?.();
  }, onFailure);
}

/** Calls `step` with 0, 1, 2, … at this rate per second, until it returns false or something has failed. */
function atRate(rate, step) {
  return new Promise((done) => {
    const startedAt = performance.now();
    let count = 0;
    const timer = setInterval(() => {
      while (count <= ((performance.now() - startedAt) / 1000) * rate) {
        if (step(count++) && !failure) continue;
        clearInterval(timer);
        return done();
      }
    }, 1);
  });
}

const calls = {
  async start({ name, target }) {
    const peer = await import(`./${name}.mjs`);
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

  /**
   * Sends at a steady rate, to one user after the other. Returns the latencies, the rate of arrivals (`rate`), and
   * whether all messages have arrived in time (`isComplete`).
   */
  async deliver({ rate, seconds, users }) {
    const [firstNumber, arrivedBefore, cpuBefore] = [nextNumber, arrived, process.cpuUsage()];
    const count = Math.round(rate * seconds);
    const startedAt = performance.now();
    await atRate(rate, (index) => {
      send(index % users, null, (error) => fail(`a message is refused: ${error.message}`));
      return index + 1 < count;
    });
    const isComplete = () => arrived - arrivedBefore === count;
    const deadline = performance.now() + ARRIVAL_TIME_MAX_MS;
    // Messages that are missing at the deadline are a result, not an error.
    await until("all messages arrive", () => failure || isComplete() || performance.now() > deadline, 2 * ARRIVAL_TIME_MAX_MS);
    const { user, system } = process.cpuUsage(cpuBefore);
    const measuredMs = latencyMs.slice(firstNumber).filter((ms) => ms !== undefined);
    const arrivals = { rate: (arrived - arrivedBefore) / ((lastArrivalAt - startedAt) / 1000), isComplete: isComplete() };
    return { ...latencies(measuredMs), ...arrivals, clientCpuS: (user + system) / 1e6 };
  },

  async leave({ users }) {
    await each(users, async (user) => {
      await sockets.get(user).close();
      sockets.delete(user);
    });
  },

  /** Sends until the parent kills the server, as it does at the event `half`: half of the messages are accepted. */
  async sendUntilKilled({ messages, rate, users }) {
    let [sentCount, settledCount, acceptedCount] = [0, 0, 0];
    const isDone = () => isKilled && settledCount === sentCount;
    const onAccepted = () => {
      settledCount += 1;
      acceptedCount += 1;
      if (acceptedCount < messages / 2 || isKilled) return;
      isKilled = true;
      process.send({ event: "half" });
    };
    const onFailure = (error) => {
      settledCount += 1;
      if (!isKilled) fail(`a message is refused: ${error.message}`);
    };
    await atRate(rate, (index) => {
      if (isKilled) return false;
      sentCount += 1;
      send(index % users, onAccepted, onFailure);
      return index + 1 < messages;
    });
    await until("the server has closed all connections", () => failure || (isDone() && !sockets.size), ARRIVAL_TIME_MAX_MS);
    sender = null;
    return { accepted: accepted.filter(Boolean).length, arrived };
  },

  /**
   * All users connect again and receive what the server has stored for them. Counts the accepted messages to users who
   * were connected or away (`acceptedHere`, `acceptedAway`), and those of them that never arrived (`here`, `away`).
   */
  async reconnect({ users, isAway: awayUsers }) {
    isKilled = false;
    await each(range(0, users), async (user) => {
      sockets.set(user, await client.reconnect(user, { talks: true, onText, onClose: onClose(user) }));
    });
    const counts = { here: 0, away: 0, acceptedHere: 0, acceptedAway: 0 };
    for (const number of Object.keys(accepted)) {
      const isAway = awayUsers.includes(number % users);
      counts[isAway ? "acceptedAway" : "acceptedHere"] += 1;
      if (latencyMs[number] === undefined) counts[isAway ? "away" : "here"] += 1;
    }
    return counts;
  },

  /** Sends each message once the one before it is accepted. */
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
// The parent has ended.
process.on("disconnect", () => process.exit(1));
