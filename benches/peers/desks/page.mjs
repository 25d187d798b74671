// The page of results of the desks: what was measured, how it differs from one to the other, and the tables.

import { short } from "../support/figures.mjs";
import { machineLine, table } from "../support/report.mjs";

const TITLES = {
  inbound: ["An inbound message kept", ["inbound", "call"]],
  answer: ["An answer sent", ["answer"]],
  list: ["The list of the open", ["list", "apiList"]],
};

/** The name of a row, where a step is not the only one of its kind. */
const ROWS = {
  "inbound Hotline": "Hotline, webchat",
  "call Hotline": "Hotline, a signed WhatsApp call",
  "apiList django-helpdesk": "django-helpdesk, its API",
  "list django-helpdesk": "django-helpdesk, its page's list",
};

const NOTES = {
  inbound: [
    "Hotline: `POST /webchat/{key}/messages` by the visitor, or `POST /hooks/{key}` as WhatsApp calls it, signed. More: a repeat of the message is found",
    "Request Tracker: `POST /REST/2.0/ticket/{id}/correspond` by the requestor. More: its scrips look for people to notify by e-mail",
    "django-helpdesk: `POST /api/followups/`, public, by a program with an account of the staff: a customer can add to a ticket by e-mail only. Less: the author is not recorded. More: the text is rendered as a template, and an e-mail is made",
    "Synapse: `PUT …/rooms/{id}/send/m.room.message/{txn}` by the customer. More: the event is signed and joins a graph that other servers can verify, and push rules are evaluated; a repeat is found",
  ],
  answer: [
    "Hotline: `POST /api/v1/messages` with a company's token. More: it is rendered with the variables of the ticket, and sent to the visitor's sockets, of which none is open here",
    "Request Tracker: the same call by the agent. More: an e-mail to the requestor is made and given to a program that drops it",
    "django-helpdesk: the same call by the agent. More: an e-mail is made from a template, and dropped",
    "Synapse: the same call by the agent. It would be delivered by `/sync`, which no client waits for here",
  ],
  list: [
    "Hotline: `GET /api/v1/tickets?status=open&perPage=100&sort=activity`: with contact, channel, queue, last message and unread count",
    "Request Tracker: `GET /REST/2.0/tickets` with `Status = '__Active__'`: 100, the latest change first, with subject, status, queue, owner and requestor. Less: no message",
    "django-helpdesk: 100 of what its page of tickets fetches. Less: no message, only the time of the last one. Its API (`GET /api/tickets/?status=1,2&page_size=100`) has no shorter list than all messages of the 100",
    "Synapse: it has no open and closed. The nearest is the first page of 100 rooms, the latest first, each with its last event, by simplified sliding sync as newly connected apps ask",
  ],
};

/** How many times Hotline's CPU a row takes, in the same step with as many callers. */
function timesHotline({ name, callers, cpuMs }, key, results) {
  const hotline = results.find((other) => other.name === "Hotline" && other.key === key && other.callers === callers);
  return hotline && name !== "Hotline" ? short(cpuMs / hotline.cpuMs) : "";
}

function tableOf(keys, results, names) {
  const rows = results
    .filter(({ key }) => keys.includes(key))
    .toSorted((one, other) => one.callers - other.callers || names.indexOf(one.name) - names.indexOf(other.name))
    .map((row) => {
      const { key, name, callers, perS, p50, p99, cpuMs, databaseCpuMs } = row;
      return [ROWS[`${key} ${name}`] ?? name, callers, ...[perS, p50, p99, cpuMs].map(short), timesHotline(row, keys[0], results), short(databaseCpuMs)];
    });
  return table(["", "at once", "requests/s", "p50 ms", "p99 ms", "CPU ms a request", "times Hotline's", "PostgreSQL's part"], rows);
}

export async function page({ seconds, rounds, conversations, versions, results, memories, postgres, isRelease }) {
  const callerPart = Math.max(...results.filter(({ name }) => name === "Hotline").map(({ callerCpuPart }) => callerCpuPart), 0);
  const sections = Object.values(TITLES).map(([title, keys]) => {
    const notes = NOTES[keys[0]].map((note) => `- ${note}.`).join("\n");
    return `## ${title}\n\n${tableOf(keys, results, memories.map(({ name }) => name))}\n\n${notes}`;
  });
  const memory = memories.map(({ name, rest, after }) => [name, ...[rest, after].flatMap(({ serverMib, databaseMib }) => [short(serverMib), short(databaseMib)])]);
  return `${await machineLine([...versions, ...(postgres ? [`PostgreSQL ${postgres}`] : [])], isRelease)}

Hotline beside what one would take instead: medians of ${rounds} interleaved rounds of ${seconds} s after a warm-up, with ${conversations} open conversations in
each and messages of 200 characters, over HTTP without TLS or a proxy. "At once" is the number of callers, each of which
sends one request after the other. "More" and "Less" are what a request does beyond the others, and what it lacks.

- The change is durable when it is answered: in Hotline's journal, which is synced; in the PostgreSQL of the others, with \`fsync\` and
  \`synchronous_commit\` on, where django-helpdesk commits several times in one request. The run checks that each accepted message is in
  the database, also in Hotline's, which gets it later.
- CPU is that of the server and its PostgreSQL, which has the same settings in all. The callers use the same two cores: up to ${short(callerPart)} of
  them with Hotline, whose rates with 16 at once would be higher without them.
- Hotline keeps conversations that were used within five minutes in memory; at its rates, these are all of them.
- Limits of requests are lifted. Otherwise each has its defaults, or what its documents name for production, with as many processes as its
  server or image starts by default. People have sessions or tokens: to check the hash of a password, as of Request Tracker's tokens,
  takes as long as one of the requests below, or longer.
- Request Tracker and django-helpdesk are made for e-mail, Synapse for federation between servers; neither of these is measured here.

${sections.join("\n\n")}

## Memory

MiB (shared pages counted once) with the conversations, before the first request and after the last.

${table(["", "server, at rest", "PostgreSQL, at rest", "server, after", "PostgreSQL, after"], memory)}
`;
}
