// The page of results: two tables, a sentence for each server, and what follows from the figures.

import { short } from "../support/figures.mjs";
import { machineLine, table } from "../support/report.mjs";

/** What each server does more or less than Hotline. */
const SENTENCES = {
  hotline:
    "**Hotline** answers each message, sent over REST, when its journal is synced. It does more than the others: a message changes a ticket, has a status and becomes an event; a connection includes its visitor's session.",
  ejabberd:
    "**ejabberd** (XMPP, archive and offline messages in a PostgreSQL of its own with `fsync` on) acknowledges by stream management once the sender's copy is committed; the copy of a connected receiver is written after that.",
  prosody:
    "**Prosody** (XMPP, archive in files, its default) acknowledges by stream management once the message is in the files, which it does not sync: they survive the end of the process, not that of the machine. It is one process that uses one core.",
  nats:
    "**NATS** (core, without JetStream) passes messages on and stores none; accepted means that it answered the `PING` after the `PUB`.",
  socketio:
    "**socket.io** (one process of Node, rooms in memory) passes messages on and stores none; accepted means that the server acknowledged the event.",
  ws: "**ws** (one process of Node, a map of users) passes messages on and stores none; it has no acknowledgement, so that all messages count that were sent before the kill.",
};

/** Those that answer when the receiver's copy is synced, as documented. The figures of the run must confirm it. */
const ANSWERS_WHEN_SYNCED = ["hotline"];

/** A server keeps up with a rate if messages arrive at this part of it. */
const KEEPS_UP = 0.95;

const kib = (bytes) => short(bytes / 1024);
const mib = (bytes) => String(Math.round(bytes / 1024 ** 2));
const ms = (value) => short(value);

/** With the database in parentheses where there is one. */
const both = (own, all, write) => (own === all ? write(own) : `${write(own)} (${write(all)})`);

const keepsUp = (delivery) => delivery.rate >= KEEPS_UP * delivery.offered;

function speedTable(figures, rates) {
  const headings = ["server", "KiB a connection", "MiB in all, with PostgreSQL", ...rates.flatMap((rate) => [`${rate}/s: p50 ms`, "p99 ms", "µs CPU a delivery"])];
  const rows = figures.map(({ name, memory, deliveries }) => [
    name,
    both(memory.bytes, memory.withDatabaseBytes, kib),
    mib(memory.totalBytes),
    ...deliveries.flatMap((it) => {
      const cpu = both(it.ownCpuUs, it.cpuUs, (us) => String(Math.round(us)));
      return keepsUp(it) ? [ms(it.p50), ms(it.p99), cpu] : [`only ${Math.round(it.rate)}/s`, "", cpu];
    }),
  ]);
  return table(headings, rows);
}

function killTable(figures) {
  const headings = ["server", "accepted, user connected", "of these lost", "accepted, user away", "of these lost", "syncs to disk a message", "of its PostgreSQL"];
  const rows = figures.map(({ name, memory, kill }) => [
    ...[name, kill.acceptedHere, kill.here, kill.acceptedAway, kill.away],
    ...[short(kill.syncs.own), memory.postgres || kill.syncs.database ? short(kill.syncs.database) : ""],
  ]);
  return table(headings, rows);
}

const names = (figures) => figures.map(({ name }) => name).join(", ") || "none";

function consequences(figures) {
  const isKept = ({ kill }) => kill.here + kill.away === 0;
  const isSynced = ({ file, kill }) => ANSWERS_WHEN_SYNCED.includes(file) && kill.syncs.own >= 1;
  const lines = [
    `Nothing accepted was lost by: ${names(figures.filter(isKept))}.`,
    `Only with these is every message on disk for its receiver before the answer, so that it survives a crash of the machine: ${names(figures.filter((it) => isKept(it) && isSynced(it)))}.`,
  ];
  for (const [index, { offered }] of figures[0].deliveries.entries()) {
    const late = figures.filter(({ deliveries }) => !keepsUp(deliveries[index]));
    if (late.length) lines.push(`${offered} messages a second are more than these keep up with here: ${names(late)}.`);
  }
  return lines.map((line) => `- ${line}`).join("\n");
}

export async function page(chosen, figures, isRelease) {
  const postgres = figures.find(({ memory }) => memory.postgres)?.memory.postgres;
  const versions = [...figures.map(({ memory }) => memory.version), ...(postgres ? [`PostgreSQL ${postgres}`] : []), `Node ${process.versions.node}`];
  return `${await machineLine(versions, isRelease)}

Hotline beside servers that push messages: each alone, in its recommended set-up, without TLS and without limits of rates.
All clients connect by WebSocket, as browsers do, and are one process on the same cores. Memory is that of ${chosen.connections} idle,
authenticated connections, each with a user or room of its own; that of a connection is the slope from ${chosen.base} on. Deliveries
are messages of 200 characters, each to one of ${chosen.users} connections, at a steady rate for ${chosen.seconds} s, ${chosen.rounds === 1 ? "in one\nround;" : `medians of\n${chosen.rounds} rounds;`} CPU of all processes of the server. Only Hotline gets the messages over HTTP, and answers
each; the others get them without waiting for an acknowledgement. In parentheses: with its PostgreSQL.

${speedTable(figures, chosen.rates)}

\`kill -9\` of the server, but not of its PostgreSQL, while ${chosen.killRate} messages a second go to ${chosen.killUsers} users, of
whom half are away, when ${Math.ceil(chosen.messages / 2)} are accepted. It starts again, all users return and fetch what is kept.
Lost is what was accepted and never arrived. Syncs are counted by \`strace\` while messages are sent one after the other.

${killTable(figures)}

${figures.map(({ file }) => `- ${SENTENCES[file]}`).join("\n")}

What follows:

${consequences(figures)}
`;
}
