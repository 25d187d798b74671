// One run of a two-way synchronization of contacts with another system, here a JSON file: `node sync.mjs FOLDER`.
//
// Nothing is lost: the first run notes the end of the event log, loads the list, and later runs read events from there.
// Own writes come back as events, and are recognized by the version that their response had. On a conflict Hotline wins.

import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EventGap, Hotline, PreconditionFailedError } from "@hotline/client";

const TYPES = ["contact.created", "contact.updated", "contact.tagged", "contact.untagged", "contact.deleted"];

const folder = process.argv[2];
const hotline = new Hotline();
const rows = new Map((await load("crm.json", [])).map((row) => [row.code, row]));
// `lastId` is the last event that was read, `versions` the `updatedAt` of each contact as it was last read or written.
const state = await load("state.json", { lastId: null, versions: {} });
const counts = { pulled: 0, pushed: 0, conflicts: 0 };

async function load(name, otherwise) {
  try {
    return JSON.parse(await readFile(join(folder, name), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return otherwise;
    throw error;
  }
}

async function save(name, value) {
  const path = join(folder, name);
  await writeFile(`${path}.tmp`, JSON.stringify(value, null, 1));
  await rename(`${path}.tmp`, path);
}

/** Takes a contact over, unless it is known as it is. */
function pull(contact) {
  if (!contact.code || (state.versions[contact.id] ?? "") >= contact.updatedAt) return;
  state.versions[contact.id] = contact.updatedAt;
  rows.set(contact.code, { code: contact.code, id: contact.id, name: contact.name, email: contact.email });
  counts.pulled++;
}

/** Reads every contact: first, and when events have expired. One that was known and is not among them was deleted. */
async function readAll() {
  const { meta } = await hotline.events.list({ after: "latest" });
  const found = new Set();
  for await (const contact of hotline.contacts.list()) {
    found.add(contact.id);
    pull(contact);
  }
  for (const [code, { id }] of rows) if (id !== undefined && !found.has(id)) rows.delete(code);
  state.lastId = meta.lastId;
}

async function readEvents() {
  for (let hasMore = true; hasMore; ) {
    const { data, meta } = await hotline.events.list({ after: state.lastId, types: TYPES, limit: 1000 });
    if (meta.gap) throw new EventGap(state.lastId, meta.oldestId);
    for (const event of data) {
      if (event.type !== "contact.deleted") pull(event.data);
      else if (event.data.code) rows.delete(event.data.code);
    }
    state.lastId = meta.lastId;
    hasMore = meta.hasMore;
  }
}

/** Sends what was changed in the other system. */
async function push(row) {
  const { code, name, email } = row;
  const known = row.id ?? (await hotline.contacts.list({ code }).first())?.id;
  try {
    const contact =
      known === undefined
        ? await hotline.contacts.create({ code, name, email })
        : await hotline.contacts.update(known, { name, email }, { ifMatch: state.versions[known] ?? "*" });
    state.versions[contact.id] = contact.updatedAt;
    rows.set(code, { code, id: contact.id, name: contact.name, email: contact.email });
    counts.pushed++;
  } catch (error) {
    if (!(error instanceof PreconditionFailedError)) throw error;
    counts.conflicts++;
    pull(await hotline.contacts.get(known));
  }
}

const changed = [...rows.values()].filter((row) => row.isChanged);
if (state.lastId === null) {
  await readAll();
} else {
  try {
    await readEvents();
  } catch (error) {
    if (!(error instanceof EventGap)) throw error;
    await readAll();
  }
}
for (const row of changed) {
  // Hotline's version was just read: it wins.
  if (row.id !== undefined && rows.get(row.code) !== row) counts.conflicts++;
  else await push(row);
}
await save("crm.json", [...rows.values()]);
await save("state.json", state);
console.log(JSON.stringify(counts));
