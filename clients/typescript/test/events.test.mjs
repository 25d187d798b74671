// Events across disconnects, and the signatures of webhooks.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { ApiTimeoutError, EventGap, Hotline, UnauthorizedError, WebhookVerificationError, webhooks } from "../dist/index.js";
import { SseParser } from "../dist/sse.js";
import { fake, refusal } from "./fake.mjs";

const event = (id) => ({ id, type: "ticket.opened", createdAt: "2026-01-31T12:00:00.000Z", data: { id: 1 }, previous: null });
const page = (data, meta) => ({ body: { data, meta: { hasMore: false, gap: false, oldestId: 1, lastId: data.at(-1)?.id ?? 0, ...meta } } });
const stream = (...ids) => (request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(":\n\n");
  for (const id of ids) response.write(`id: ${id}\nevent: ticket.opened\ndata: ${JSON.stringify(event(id))}\n\n`);
  response.socket.end();
};

test("events continue after the last one, whatever ends the connection", async (t) => {
  const unavailable = refusal(503, "ERR_API_UNAVAILABLE", { headers: { "retry-after": "0" } });
  const answers = [page([], { lastId: 4 }), page([], { lastId: 4 }), stream(5, 6), unavailable, page([event(7)], {}), stream(8), page([], { lastId: 8 }), stream(9)];
  const { hotline, requests } = await fake(t, answers);
  const ids = [];
  let disconnects = 0;
  for await (const one of hotline.events.listen({ onDisconnect: () => disconnects++ })) {
    ids.push(one.id);
    if (one.id === 9) break;
  }
  assert.deepEqual(ids, [5, 6, 7, 8, 9]);
  assert.equal(disconnects, 2);
  const afters = requests.map((request) => new URL(request.url, "http://x").searchParams.get("after"));
  assert.deepEqual(afters, ["latest", "4", "4", "6", "6", "7", "8", "8"]);
});

test("the response of a stream is reported", async (t) => {
  const seen = [];
  const onResponse = ({ operation, status, attempt, code }) => seen.push([operation, status, attempt, code]);
  const { hotline } = await fake(t, [stream(5), refusal(401, "ERR_API_UNAUTHORIZED")], { onResponse });
  for await (const one of hotline.events.stream({ after: 4 })) {
    assert.equal(one.id, 5);
    break;
  }
  await assert.rejects(hotline.events.stream({ after: 5 }).next(), UnauthorizedError);
  assert.deepEqual(seen, [["streamEvents", 200, 1, undefined], ["streamEvents", 401, 1, "ERR_API_UNAUTHORIZED"]]);
});

test("a gap is an error, unless it is handled", async (t) => {
  const gap = page([event(9)], { gap: true, oldestId: 9 });
  const { hotline } = await fake(t, [gap]);
  const reading = hotline.events.listen({ after: 2 });
  await assert.rejects(reading.next(), (error) => error instanceof EventGap && error.after === 2 && error.oldestId === 9);
  let handled;
  for await (const one of hotline.events.listen({ after: 2, onGap: (found) => void (handled = found) })) {
    assert.equal(one.id, 9);
    break;
  }
  assert.equal(handled.after, 2);
});

test("after a gap events continue where the log ends, also before the position", async (t) => {
  const { hotline, requests } = await fake(t, [page([], { gap: true, lastId: 4 }), stream(5)]);
  for await (const one of hotline.events.listen({ after: 9, onGap: () => undefined })) {
    assert.equal(one.id, 5);
    break;
  }
  const afters = requests.map((request) => new URL(request.url, "http://x").searchParams.get("after"));
  assert.deepEqual(afters, ["9", "4"]);
});

test("a position that is none is refused, and does not begin with what happens from now", async (t) => {
  const { hotline, requests } = await fake(t, []);
  for (const after of [undefined, null, "", "36", NaN, 1.5, {}]) {
    await assert.rejects(hotline.events.listen({ after }).next(), /^TypeError: after must be the id of an event/);
  }
  assert.equal(requests.length, 0);
});

test("a refused token ends the iteration, and so does a signal", async (t) => {
  const { hotline } = await fake(t, [page([], { lastId: 1 }), refusal(401, "ERR_API_UNAUTHORIZED")]);
  await assert.rejects(hotline.events.listen().next(), UnauthorizedError);
  const quiet = (request, response) => response.writeHead(200).write(":\n\n");
  const other = await fake(t, [page([], { lastId: 1 }), page([], { lastId: 1 }), quiet]);
  const controller = new AbortController();
  const next = other.hotline.events.listen({ signal: controller.signal }).next();
  setTimeout(() => controller.abort(), 50);
  assert.deepEqual(await next, { done: true, value: undefined });
});

test("a silent service ends a stream, and a slow reader does not", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let send;
  const fetch = async (_, { signal }) => {
    const start = (controller) => {
      send = (id) => controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event(id))}\n\n`));
      signal.addEventListener("abort", () => controller.error(signal.reason));
      send(5);
    };
    return new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });
  };
  const events = new Hotline({ url: "http://127.0.0.1", apiKey: "sk_live_test", fetch }).events.stream({ after: 4 });
  assert.equal((await events.next()).value.id, 5);
  // The reader takes an hour for the event.
  t.mock.timers.tick(3_600_000);
  send(6);
  assert.equal((await events.next()).value.id, 6);
  const silent = assert.rejects(events.next(), ApiTimeoutError);
  await new Promise((resolve) => setImmediate(resolve));
  t.mock.timers.tick(45_000);
  await silent;
});

test("a stream is read in pieces of any size", () => {
  const text = ": hello\n\nid: 1\ndata: {\"a\":\r\ndata: \"ü\u2028\"}\r\n\r\ndata:x\n\n";
  for (const size of [1, 2, 3, 1000]) {
    const parser = new SseParser();
    const bytes = new TextEncoder().encode(text);
    const found = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...parser.feed(bytes.subarray(at, at + size)));
    assert.deepEqual(found, ['{"a":\n"ü\u2028"}', "x"], `in pieces of ${size}`);
  }
});

const OLD = `whsec_${Buffer.from("the old secret").toString("base64")}`;
const NEW = `whsec_${Buffer.from("the new secret").toString("base64")}`;

function signed(body, secrets, at = Math.floor(Date.now() / 1000)) {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(6), "base64");
    return `v1,${createHmac("sha256", key).update(`evt_1_5.${at}.`).update(body).digest("base64")}`;
  });
  return { "webhook-id": "evt_1_5", "webhook-timestamp": String(at), "webhook-signature": signatures.join(" ") };
}

test("a webhook's request is verified with either secret, in any kind of headers", async () => {
  const body = JSON.stringify(event(5));
  for (const headers of [signed(body, [OLD]), new Headers(signed(body, [NEW, OLD])), { ...signed(body, [NEW]), "Content-Type": "x" }]) {
    const read = await webhooks.verify(Buffer.from(body), headers, [OLD, NEW]);
    assert.equal(read.id, 5);
  }
  const upper = Object.fromEntries(Object.entries(signed(body, [OLD])).map(([name, value]) => [name.toUpperCase(), [value]]));
  assert.equal((await webhooks.verify(body, upper, OLD)).type, "ticket.opened");
});

test("what the service did not send is refused", async () => {
  const body = JSON.stringify(event(5));
  const good = signed(body, [OLD]);
  const cases = [
    [body + " ", good, OLD],
    [body, good, NEW],
    [body, signed(body, [OLD], Math.floor(Date.now() / 1000) - 301), OLD],
    [body, { ...good, "webhook-timestamp": "x" }, OLD],
    [body, { ...good, "webhook-id": "evt_1_6" }, OLD],
    [body, { ...good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,") }, OLD],
    [body, { ...good, "webhook-signature": "v1,!!" }, OLD],
    [body, {}, OLD],
  ];
  for (const [raw, headers, secret] of cases) {
    await assert.rejects(webhooks.verify(raw, headers, secret), WebhookVerificationError, JSON.stringify(headers));
  }
  await assert.rejects(webhooks.verify(body, good, "whsec_"), TypeError);
});
