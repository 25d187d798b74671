// The package in a real n8n beside a running service: `clients/n8n.sh`. N8N is its command, N8N_PACKAGE the archive.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { Hotline } from "../../typescript/dist/index.js";

const run = promisify(execFile);
const hotline = new Hotline();
const channelId = Number(process.env.HOTLINE_CHANNEL);
/** n8n starts within a minute on a machine that does nothing else. */
const SECONDS_MAX = 300;
const PEOPLE = { email: "owner@example.com", firstName: "Maria", lastName: "Lima", password: "Hotline-4711" };

let folder, address, proxy, n8n, cookie, env;
let log = "";

async function eventually(what, condition) {
  for (const end = Date.now() + SECONDS_MAX * 1000; Date.now() < end; ) {
    const found = await condition();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 200));
  }
  assert.fail(`${what}: not within ${SECONDS_MAX} s; the log of n8n:\n${log.slice(-3000)}`);
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Between n8n and the service: loses the response to the first webhook that is made. */
async function losingProxy() {
  const counts = { created: 0, rotated: 0 };
  const server = createServer((incoming, outgoing) => {
    const made = request(process.env.HOTLINE_URL + incoming.url, { method: incoming.method, headers: incoming.headers }, (response) => {
      const isCreation = incoming.method === "POST" && incoming.url === "/api/v1/webhooks";
      if (incoming.url.endsWith("/rotate-secret")) counts.rotated++;
      if (isCreation && ++counts.created === 1) {
        response.resume();
        response.on("end", () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(response.statusCode, response.headers);
      response.pipe(outgoing);
    });
    made.on("error", () => outgoing.destroy());
    incoming.pipe(made);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, counts, url: `http://127.0.0.1:${server.address().port}` };
}

const CREDENTIALS = { hotlineApi: { id: "hotline-1", name: "Hotline" } };
const node = (name, parameters, index) => ({
  id: `node-${index}`, name, type: "n8n-nodes-hotline.hotline", typeVersion: 1, position: [index * 200, 0], parameters, credentials: CREDENTIALS,
});
const ofTicket = "={{ $('Hotline Trigger').item.json.data.ticketId }}";

/** Answers a visitor, counts all contacts in a note, and closes the ticket. */
const WORKFLOW = {
  id: "answers", name: "Answers", active: false, settings: { executionOrder: "v1" },
  nodes: [
    {
      id: "trigger", name: "Hotline Trigger", type: "n8n-nodes-hotline.hotlineTrigger", typeVersion: 1, position: [0, 0],
      webhookId: "5b0f6a52-6f0e-4c4f-9a63-4a7f5d0a4711", parameters: { events: ["message.received"] }, credentials: CREDENTIALS,
    },
    node("Answer", { resource: "message", operation: "send", type: "text", ticketId: ofTicket, body: "=You wrote: {{ $json.data.body }}" }, 1),
    node("Contacts", { resource: "contact", operation: "list", returnAll: true, filters: { search: "Paged" } }, 2),
    { ...node("Note", { resource: "ticket", operation: "addNote", ticketId: ofTicket, body: "={{ $('Contacts').all().length }} contacts" }, 3), executeOnce: true },
    node("Close", { resource: "ticket", operation: "close", ticketId: ofTicket, fields: { wrapupNote: "answered by n8n" } }, 4),
  ],
  connections: Object.fromEntries(
    [["Hotline Trigger", "Answer"], ["Answer", "Contacts"], ["Contacts", "Note"], ["Note", "Close"]].map(([from, to]) => [
      from, { main: [[{ node: to, type: "main", index: 0 }]] },
    ]),
  ),
};

/** A request to n8n's own API, as its editor makes them. */
async function editor(method, path, body) {
  const headers = { "content-type": "application/json", "browser-id": "test", ...(cookie ? { cookie } : {}) };
  const response = await fetch(`${address}/rest${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
  cookie = response.headers.getSetCookie().map((one) => one.split(";")[0]).join("; ") || cookie;
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
  return JSON.parse(text).data;
}

async function setActive(active) {
  const { versionId } = await editor("GET", `/workflows/${WORKFLOW.id}`);
  return await editor("PATCH", `/workflows/${WORKFLOW.id}`, { active, versionId });
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "hotline-n8n-"));
  const nodes = join(folder, ".n8n/nodes");
  await mkdir(nodes, { recursive: true });
  await writeFile(join(nodes, "package.json"), '{"private": true}');
  await run("npm", ["install", "--offline", "--legacy-peer-deps", "--no-audit", "--no-fund", process.env.N8N_PACKAGE], { cwd: nodes });
  proxy = await losingProxy();
  const port = await freePort();
  address = `http://127.0.0.1:${port}`;
  env = {
    PATH: process.env.PATH, HOME: folder, N8N_USER_FOLDER: folder, N8N_PORT: String(port), N8N_LISTEN_ADDRESS: "127.0.0.1", WEBHOOK_URL: address,
    // The other engine is native code for a newer Node.
    N8N_EXPRESSION_ENGINE: "legacy",
    N8N_RUNNERS_BROKER_PORT: String(await freePort()),
    N8N_DIAGNOSTICS_ENABLED: "false", N8N_VERSION_NOTIFICATIONS_ENABLED: "false", N8N_TEMPLATES_ENABLED: "false", N8N_PERSONALIZATION_ENABLED: "false",
    N8N_SECURE_COOKIE: "false", N8N_ENCRYPTION_KEY: "test-of-the-node", N8N_LOG_LEVEL: "info",
  };
  const credential = { ...CREDENTIALS.hotlineApi, type: "hotlineApi", data: { url: `${proxy.url}/`, apiKey: process.env.HOTLINE_API_KEY } };
  await writeFile(join(folder, "credentials.json"), JSON.stringify([credential]));
  await writeFile(join(folder, "workflow.json"), JSON.stringify([WORKFLOW]));
  for (const [command, file] of [["import:credentials", "credentials.json"], ["import:workflow", "workflow.json"]]) {
    await run(process.env.N8N, [command, `--input=${join(folder, file)}`], { env });
  }
  n8n = spawn(process.env.N8N, ["start"], { env, stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [n8n.stdout, n8n.stderr]) stream.on("data", (text) => (log += text));
  await eventually("n8n is ready", async () => {
    assert.equal(n8n.exitCode, null, log);
    return (await fetch(`${address}/healthz/readiness`).catch(() => undefined))?.ok;
  });
  await eventually("the owner of n8n", () => editor("POST", "/owner/setup", PEOPLE).catch((error) => (/404|503/.test(error.message) ? undefined : Promise.reject(error))));
});

after(async () => {
  if (n8n && n8n.exitCode === null) {
    n8n.kill();
    await once(n8n, "exit");
  }
  proxy?.server.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

test("an activated workflow answers a visitor once, although the response with its secret was lost", async () => {
  for (let index = 0; index < 120; index++) await hotline.contacts.create({ name: `Paged ${index}` });
  await setActive(true);
  const webhooks = await hotline.webhooks.list().toArray();
  assert.deepEqual(webhooks.map(({ active, types, url }) => [active, types, url.startsWith(address)]), [[true, ["message.received"], true]]);
  assert.deepEqual(proxy.counts, { created: 2, rotated: 1 });

  const forged = await fetch(webhooks[0].url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ type: "message.received", data: { ticketId: 1 } }) });
  assert.equal(forged.status, 401);

  const session = await hotline.sessions.open({ channelId, visitor: { name: "Ana", externalId: "n8n-1" } });
  const { ticketId } = await hotline.sessions.sendMessage(session.id, { body: "When are you open?" });
  await eventually("the ticket is closed by the last node", async () => (await hotline.tickets.get(ticketId)).status === "closed");
  const messages = await hotline.tickets.listMessages(ticketId).toArray();
  const of = (type, direction) => messages.filter((one) => one.type === type && (direction === undefined || one.direction === direction)).map(({ body }) => body);
  assert.deepEqual(of("text", "outbound"), ["You wrote: When are you open?"]);
  assert.deepEqual(of("note"), ["120 contacts"]);
  const executions = await eventually("the execution is kept", async () => {
    const { results } = await editor("GET", `/executions?filter=${encodeURIComponent(JSON.stringify({ workflowId: WORKFLOW.id }))}`);
    return results.length > 0 && results.every(({ status }) => status === "success") && results;
  });
  assert.equal(executions.length, 1, "the forged request has started nothing");
});

test("the service's own test of the webhook is accepted, and starts nothing", async () => {
  const { id } = await hotline.webhooks.list().first();
  const result = await hotline.webhooks.test(id);
  assert.equal(result.status ?? result.responseStatus ?? result.statusCode, 200, JSON.stringify(result));
});

test("a deactivated workflow leaves no webhook", async () => {
  await setActive(false);
  assert.deepEqual(await hotline.webhooks.list().toArray(), []);
});
