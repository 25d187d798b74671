// The client and a running service: `clients/service.sh node --test clients/typescript/test/service.mjs`.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { ConflictError, Hotline, NotFoundError, PreconditionFailedError, SecretLost, UnauthorizedError, ValidationError, WindowClosedError, webhooks } from "../dist/index.js";

const hotline = new Hotline();
const channelId = Number(process.env.HOTLINE_CHANNEL);
const unique = () => crypto.randomUUID().slice(0, 8);

/** A conversation of a visitor with the company. */
async function conversation(name = "Maria") {
  const session = await hotline.sessions.open({ channelId, visitor: { name, externalId: unique() } });
  const message = await hotline.sessions.sendMessage(session.id, { body: "Is anyone there?" });
  return { session, ticketId: message.ticketId };
}

test("a conversation, from a visitor's question to a closed ticket", async () => {
  const { session, ticketId } = await conversation();
  assert.match(session.token, /^vt_/);
  const job = await hotline.messages.send({ ticketId, type: "text", body: "Hello {{firstName}}!" });
  assert.equal(job.status, "queued");
  const bodies = (await hotline.tickets.listMessages(ticketId).toArray()).map(({ body }) => body);
  assert.deepEqual(bodies, ["Is anyone there?", "Hello Maria!"]);
  assert.equal((await hotline.messages.getJob(job.jobId)).ticketId, ticketId);
  const closed = await hotline.tickets.close(ticketId);
  assert.equal(closed.status, "closed");
  await assert.rejects(hotline.tickets.close(ticketId), (error) => error.name === "TicketClosedError" && error instanceof ConflictError);
});

test("a file is sent and can be read at its address", async () => {
  const { ticketId } = await conversation();
  await hotline.messages.send({ ticketId, type: "media", body: "The invoice", medias: [{ data: "a,b\n1,2\n", fileName: "invoice.csv", mimeType: "text/csv" }] });
  const sent = (await hotline.tickets.listMessages(ticketId).toArray()).find(({ media }) => media);
  assert.equal(sent.media.fileName, "invoice.csv");
  const file = await fetch(new URL(sent.media.url, process.env.HOTLINE_URL));
  assert.equal(await file.text(), "a,b\n1,2\n");
});

test("the same key takes effect once, and another body is a conflict", async () => {
  const name = unique();
  const key = `order-${name}`;
  const replays = [];
  const watched = new Hotline({ onResponse: ({ isReplay }) => replays.push(isReplay) });
  const first = await watched.tags.create({ name }, { idempotencyKey: key });
  const second = await watched.tags.create({ name }, { idempotencyKey: key });
  assert.equal(first.id, second.id);
  assert.deepEqual(replays, [false, true]);
  await assert.rejects(watched.tags.create({ name: `${name}!` }, { idempotencyKey: key }), { name: "IdempotencyConflictError" });
});

test("errors are of their class, with fields and the id of the request", async () => {
  await assert.rejects(hotline.contacts.get(999_999_999), (error) => error instanceof NotFoundError && /^req_/.test(error.requestId));
  await assert.rejects(hotline.contacts.create({ email: "no" }), (error) => {
    assert.ok(error instanceof ValidationError);
    assert.deepEqual(error.fields.map(({ field, code }) => `${field} ${code}`).sort(), ["email not_an_email", "name required"]);
    return true;
  });
  await assert.rejects(new Hotline({ apiKey: "sk_live_wrong" }).tags.list().first(), UnauthorizedError);
  assert.ok(WindowClosedError.prototype instanceof Error);
});

test("a change that is computed from an old read is refused", async () => {
  const contact = await hotline.contacts.create({ name: unique() });
  const changed = await hotline.contacts.update(contact.id, { email: "a@example.com" }, { ifMatch: contact.updatedAt });
  assert.equal(changed.email, "a@example.com");
  await assert.rejects(hotline.contacts.update(contact.id, { email: null }, { ifMatch: contact.updatedAt }), PreconditionFailedError);
  await hotline.contacts.delete(contact.id, { ifMatch: changed.updatedAt });
});

test("a list is read to its end over several pages", async () => {
  const color = unique();
  for (let at = 0; at < 7; at++) await hotline.tags.create({ name: `${color} ${at}` });
  const list = hotline.tags.list({ search: color, perPage: 3 });
  const pages = [];
  for await (const page of list.pages()) pages.push(page.data.length);
  assert.deepEqual(pages, [3, 3, 1]);
  assert.ok(Math.abs(list.startedAt - hotline.now()) < 10_000);
  assert.equal((await hotline.tags.list({ updatedFrom: list.startedAt, search: color }).toArray()).length <= 7, true);
});

test("a lost secret names the webhook, which can then get another", async () => {
  const body = { url: "https://example.com/hotline", types: ["ticket.opened"] };
  const key = { idempotencyKey: unique() };
  const made = await hotline.webhooks.create(body, key);
  assert.match(made.secret, /^whsec_/);
  const lost = await hotline.webhooks.create(body, key).catch((error) => error);
  assert.ok(lost instanceof SecretLost);
  assert.equal(lost.id, made.id);
  assert.match((await hotline.webhooks.rotateSecret(lost.id)).secret, /^whsec_/);
  await hotline.webhooks.delete(made.id);
});

test("a webhook's requests are verified", async (t) => {
  const received = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ raw: Buffer.concat(chunks), headers: request.headers });
    response.writeHead(204).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { id, secret } = await hotline.webhooks.create({ url: `http://127.0.0.1:${server.address().port}/`, types: ["ticket.opened"] });
  const outcome = await hotline.webhooks.test(id);
  assert.equal(outcome.status, 204);
  assert.equal((await hotline.webhooks.verify(received[0].raw, received[0].headers, secret)).type, "webhook.test");
  const other = await hotline.webhooks.rotateSecret(id);
  await hotline.webhooks.test(id);
  for (const one of [secret, other.secret]) assert.equal((await webhooks.verify(received[1].raw, received[1].headers, one)).data.webhookId, id);
  await hotline.webhooks.delete(id);
});

test("events arrive as they happen, and from where a reader stopped", async () => {
  const mine = hotline.events.listen({ types: ["contact.created"] });
  const first = mine.next();
  const { meta } = await hotline.events.list({ after: "latest" });
  const contact = await hotline.contacts.create({ name: unique() });
  const event = (await first).value;
  await mine.return();
  const again = hotline.events.listen({ after: meta.lastId, types: ["contact.created"] });
  const read = (await again.next()).value;
  await again.return();
  assert.equal(read.data.id, contact.id);
  assert.equal(read.by.type, "integration");
  assert.equal(event.type, "contact.created");
  for await (const one of hotline.events.stream({ after: meta.lastId })) {
    assert.equal(one.data.id, contact.id);
    break;
  }
});

test("a report is rows, or CSV", async () => {
  assert.ok(Array.isArray(await hotline.reports.tickets({ groupBy: "day" })));
  assert.match(await hotline.reports.ticketsCsv({ groupBy: "day" }), /^[\w,]+\r?\n/);
});
