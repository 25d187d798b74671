// Runs the examples and the first steps of docs/clients.md against a service: `clients/test.sh examples`.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readdir, symlink, mkdir, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { Hotline } from "../typescript/dist/index.js";

const run = promisify(execFile);
const hotline = new Hotline();
const here = new URL(".", import.meta.url).pathname;
const channelId = Number(process.env.HOTLINE_CHANNEL);
const SECONDS_MAX = 60;
let work;

before(async () => {
  // The same folders as after `npm install @hotline/client`.
  work = await mkdtemp(join(tmpdir(), "hotline-examples-"));
  await mkdir(join(work, "node_modules/@hotline"), { recursive: true });
  await symlink(resolve(here, "../typescript"), join(work, "node_modules/@hotline/client"));
});

async function eventually(what, condition) {
  for (const end = Date.now() + SECONDS_MAX * 1000; Date.now() < end; ) {
    const found = await condition();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`${what}: not within ${SECONDS_MAX} s`);
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** The URL of a proxy to the service. It reports that events have expired before they were read. */
async function withGap(t) {
  const proxy = createHttpServer(async (request, response) => {
    const answer = await fetch(`${process.env.HOTLINE_URL}${request.url}`, { headers: { authorization: request.headers.authorization } });
    const body = await answer.json();
    if (/\/events\?after=\d/.test(request.url)) body.meta.gap = true;
    response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }).listen(0, "127.0.0.1");
  t.after(() => proxy.close());
  await once(proxy, "listening");
  return `http://127.0.0.1:${proxy.address().port}`;
}

/** Starts an example that runs until the test ends, and returns its first line. */
async function start(t, command, args, env) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill());
  const [line] = await once(createInterface(child.stdout), "line", { signal: AbortSignal.timeout(SECONDS_MAX * 1000) });
  return line;
}

/** Runs a copy of an example, beside `node_modules`, and returns the JSON that it prints. */
async function example(name, file, argument, env = {}) {
  const path = join(work, file);
  await writeFile(path, await readFile(join(here, name, file)));
  const { stdout } = await run(file.endsWith(".py") ? "python3" : "node", [path, argument], { env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

for (const [language, command, file] of [["js", "node", "first.mjs"], ["python", "python3", "first.py"]]) {
  test(`the first message of the documentation is sent, in ${language}`, async () => {
    const docs = await readFile(join(here, "../../docs/clients.md"), "utf8");
    const code = docs.slice(docs.indexOf("## Your first message")).match(new RegExp("```" + language + "\n([^]*?)```"))[1];
    await writeFile(join(work, file), code);
    const { stdout } = await run(command, [join(work, file)]);
    assert.match(stdout, /inbound Is anyone there\?\noutbound Hello Maria!\n$/);
  });
}

test("only a signed-in customer of the site is verified in the chat", async (t) => {
  const address = await start(t, "node", [join(here, "site/server.mjs")], { PORT: "0" });
  const page = await (await fetch(address, { headers: { cookie: "customer=c-1" } })).text();
  const identity = /data-identity="([^"]+)"/.exec(page)[1];
  const sessions = `${process.env.HOTLINE_URL}/webchat/${process.env.HOTLINE_PUBLIC_KEY}/sessions`;
  const open = (body) => fetch(sessions, { method: "POST", headers: { "content-type": "application/json", origin: "https://shop.example" }, body: JSON.stringify(body) });
  const { data } = await (await open({ identity })).json();
  assert.equal(data.verified, true);
  assert.equal((await hotline.contacts.list({ search: "Maria Lima" }).first()).email, "maria@example.com");
  assert.equal((await open({ identity: `${identity.slice(0, -2)}xx` })).status, 401);
  assert.doesNotMatch(await (await fetch(address)).text(), /data-identity/);
  const script = await fetch(new URL(/src="(\/[^"]+)"/.exec(page)[1], address));
  assert.equal(script.headers.get("content-type"), "text/javascript");
  assert.match(await script.text(), /HotlineWebchat\?\.logout\(\)/);
});

test("the bot answers until a visitor wants a person, then their queue has the ticket", async (t) => {
  const queue = await hotline.queues.create({ name: "People" });
  const port = await freePort();
  const env = { BOT_PORT: String(port), BOT_URL: `http://127.0.0.1:${port}/`, BOT_QUEUE: String(queue.id), BOT_FILE: join(work, "bot.sqlite") };
  // An event that the bot accepted before it was killed.
  const earlier = await hotline.sessions.open({ channelId, visitor: { name: "Eva", externalId: "bot-0" } });
  const { id: asked } = await hotline.sessions.sendMessage(earlier.id, { body: "Are you open?" });
  const { data: events } = await hotline.events.list({ types: ["message.received"], limit: 1000 });
  const accepted = JSON.stringify(events.find(({ data }) => data.id === asked));
  await run("python3", ["-c", "import json, os, sys, bot; assert bot.Inbox(os.environ['BOT_FILE']).put(json.loads(sys.argv[1]))", accepted], { cwd: join(here, "bot"), env: { ...process.env, ...env } });
  await start(t, "python3", [join(here, "bot/bot.py")], env);
  await eventually("an answer to the event accepted before", async () => (await hotline.sessions.listMessages(earlier.id).toArray()).length === 2);
  await eventually("the webhook is active", async () => (await hotline.webhooks.list().first())?.active);
  const session = await hotline.sessions.open({ channelId, visitor: { name: "Ana", externalId: "bot-1" } });
  const say = (body) => hotline.sessions.sendMessage(session.id, { body });
  const answers = async () => (await hotline.sessions.listMessages(session.id).toArray()).filter(({ direction }) => direction === "outbound");
  const { ticketId } = await say("When are you open?");
  await eventually("an answer", async () => (await answers()).length === 1);
  assert.match((await answers())[0].body, /^Hello Ana, we are open from 9 to 18/);
  await say("I want a person");
  await eventually("the ticket is in the queue", async () => (await hotline.tickets.get(ticketId)).queue?.id === queue.id);
  const notes = (await hotline.tickets.listMessages(ticketId).toArray()).filter(({ type }) => type === "note");
  assert.deepEqual(notes.map(({ body }) => body), ["The visitor asked for a person."]);
  await say("Hello?");
  const webhook = await hotline.webhooks.list().first();
  // The webhook is sent only received messages: the three of this session.
  await eventually("the delivery of the last message", async () => {
    const deliveries = await hotline.webhooks.listDeliveries(webhook.id).toArray();
    return deliveries.filter(({ status }) => status === "delivered").length >= 3;
  });
  assert.equal((await answers()).length, 2, "people answer now");
  await hotline.webhooks.delete(webhook.id);
});

test("contacts are the same on both sides after each run, and a run without changes writes nothing", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "hotline-sync-"));
  const sync = (env) => example("contact-sync", "sync.mjs", folder, env);
  const path = join(folder, "crm.json");
  const readCrm = async () => JSON.parse(await readFile(path, "utf8"));
  const changeCrm = async (change) => writeFile(path, JSON.stringify(change(await readCrm())));
  const a = await hotline.contacts.create({ name: "A", code: "a" });
  const b = await hotline.contacts.create({ name: "B", code: "b" });
  assert.deepEqual(await sync(), { pulled: 2, pushed: 0, conflicts: 0 });

  await hotline.contacts.update(a.id, { name: "A, here" });
  await changeCrm((all) => [...all.map((row) => (row.code === "b" ? { ...row, name: "B, there", isChanged: true } : row)), { code: "c", name: "C", email: null, isChanged: true }]);
  assert.deepEqual(await sync(), { pulled: 1, pushed: 2, conflicts: 0 });
  assert.equal((await hotline.contacts.get(b.id)).name, "B, there");
  assert.deepEqual((await readCrm()).map(({ name }) => name).sort(), ["A, here", "B, there", "C"]);
  assert.deepEqual(await sync(), { pulled: 0, pushed: 0, conflicts: 0 }, "own writes are recognized");

  await hotline.contacts.update(a.id, { name: "A, again" });
  await changeCrm((all) => all.map((row) => (row.code === "a" ? { ...row, name: "A, there", isChanged: true } : row)));
  assert.deepEqual(await sync(), { pulled: 1, pushed: 0, conflicts: 1 });
  await hotline.contacts.delete(b.id);
  await sync();
  assert.deepEqual((await readCrm()).map(({ name }) => name).sort(), ["A, again", "C"]);

  await hotline.contacts.delete(a.id);
  await sync({ HOTLINE_URL: await withGap(t) });
  assert.deepEqual((await readCrm()).map(({ name }) => name), ["C"], "what was deleted in a gap is noticed");
});

test("an export has every record, and those created or changed meanwhile", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hotline-export-"));
  const before = await hotline.contacts.create({ name: "Exported" });
  const exporting = example("export", "export.py", folder);
  const during = await hotline.contacts.create({ name: "Created meanwhile" });
  const counts = await exporting;
  const lines = async (file) => (await readFile(join(folder, file), "utf8")).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const contacts = await lines("contacts.ndjson");
  assert.equal(contacts.length, counts.contacts);
  assert.equal(contacts.filter(({ id }) => id === before.id).length, 1);
  await hotline.contacts.update(before.id, { name: "Changed" });
  assert.equal((await example("export", "export.py", folder)).contacts, undefined, "the second run has only changes");
  const files = (await readdir(folder)).filter((file) => file.startsWith("changes-"));
  const changes = (await Promise.all(files.map(lines))).flat();
  const ids = new Set([...contacts, ...changes.map(({ data }) => data)].map(({ id }) => id));
  assert.ok(ids.has(during.id), "created meanwhile: in the list or among the changes");
  assert.ok(changes.some(({ type, data }) => type === "contact.updated" && data.name === "Changed"));
});

test("the service accepts the bodies that the pages of the API show", async () => {
  const { stdout } = await run("python3", [join(here, "../../tools/site/api.py"), "bodies"], { maxBuffer: 16 << 20 });
  const requests = JSON.parse(stdout);
  assert.ok(requests.length > 50);
  const refused = [];
  for (const { id, method, path, body } of requests) {
    const headers = { authorization: `Bearer ${process.env.HOTLINE_API_KEY}`, "content-type": "application/json" };
    const response = await fetch(`${process.env.HOTLINE_URL}${path}`, { method, headers, body: JSON.stringify(body) });
    const { error, data } = await response.json();
    const { status } = response;
    // The examples refer to records that do not exist here, or are of another kind or in another state: the bodies are
    // still valid.
    const isOfRecord = ({ code }) => ["unknown_record", "wrong_record", "not_every_record_once"].includes(code);
    const isExpected = [404, 409].includes(status) || ([400, 422].includes(status) && error.details?.length > 0 && error.details.every(isOfRecord));
    if ((status >= 400 && !isExpected) || data?.errors?.length) refused.push({ id, status, message: error?.message, errors: data?.errors });
  }
  assert.deepEqual(refused, []);
});
