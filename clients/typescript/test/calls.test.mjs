// Requests as they are sent, retries, and the errors of responses.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as client from "../dist/index.js";
import { fromPath } from "../dist/node.js";
import { fake, hangUp, refusal } from "./fake.mjs";

const { Hotline } = client;
const TAG = { data: { id: 7, name: "VIP" } };

test("every attempt of a write has the same idempotency key", async (t) => {
  const unavailable = refusal(503, "ERR_API_UNAVAILABLE", { headers: { "retry-after": "0" } });
  const { hotline, requests } = await fake(t, [hangUp, unavailable, { status: 201, body: TAG }]);
  assert.equal((await hotline.tags.create({ name: "VIP" })).id, 7);
  assert.equal(requests.length, 3);
  const keys = new Set(requests.map((request) => request.headers["idempotency-key"]));
  assert.equal(keys.size, 1);
  assert.match([...keys][0], /^[0-9a-f-]{36}$/);
  assert.deepEqual(JSON.parse(requests[2].body), { name: "VIP" });
  assert.equal(requests[0].headers.authorization, "Bearer sk_live_test");
});

test("each write has a key of its own, unless the caller gives one", async (t) => {
  const { hotline, requests } = await fake(t, [{ status: 201, body: TAG }]);
  await hotline.tags.create({ name: "a" });
  await hotline.tags.create({ name: "b" });
  await hotline.tags.update(7, { name: "c" }, { idempotencyKey: "order-4711" });
  const [first, second, third] = requests.map((request) => request.headers["idempotency-key"]);
  assert.notEqual(first, second);
  assert.equal(third, "order-4711");
});

test("a call waits for Retry-After, and fails at once if it exceeds the limit", async (t) => {
  const limited = (seconds) => refusal(429, "ERR_API_RATE_LIMITED", { headers: { "retry-after": String(seconds) } });
  const { hotline, requests } = await fake(t, [limited(1), { body: TAG }, limited(3600)]);
  const start = performance.now();
  await hotline.tags.get(7);
  assert.ok(performance.now() - start >= 1000);
  await assert.rejects(hotline.tags.get(7), (error) => {
    assert.ok(error instanceof client.RateLimitedError);
    assert.equal(error.retryAfter, 3600);
    return true;
  });
  assert.equal(requests.length, 3);
});

test("a permanent error is not retried", async (t) => {
  const { hotline, requests } = await fake(t, [refusal(409, "ERR_API_CONFLICT", { details: { field: "name", id: 3 } })]);
  await assert.rejects(hotline.tags.create({ name: "VIP" }), (error) => {
    assert.ok(error instanceof client.ConflictError);
    assert.equal(error.requestId, "req_1");
    assert.deepEqual(error.details, { field: "name", id: 3 });
    assert.equal(error.operation, "createTag");
    return true;
  });
  assert.equal(requests.length, 1);
});

test("a write without a key is not retried when its outcome is unknown", async (t) => {
  const { hotline, requests } = await fake(t, [hangUp]);
  await assert.rejects(hotline.visitors.showAgentTyping("key", 7), client.ApiConnectionError);
  assert.equal(requests.length, 1);
});

test("a call is retried at most maxRetries times", async (t) => {
  const { hotline, requests } = await fake(t, [refusal(503, "ERR_API_UNAVAILABLE")]);
  await assert.rejects(hotline.tags.get(7, { maxRetries: 1 }), client.UnavailableError);
  assert.equal(requests.length, 2);
});

test("a deletion whose response was lost succeeds if a retry answers 404", async (t) => {
  const { hotline, requests } = await fake(t, [hangUp, refusal(404, "ERR_API_NOT_FOUND")]);
  await hotline.tags.delete(7);
  assert.equal(requests.length, 2);
  await assert.rejects(hotline.tags.delete(7), client.NotFoundError);
});

test("a call ends at its timeout, and when its signal is aborted", async (t) => {
  const silent = () => undefined;
  const { hotline } = await fake(t, [silent]);
  await assert.rejects(hotline.tags.get(7, { timeout: 50, maxRetries: 0 }), client.ApiTimeoutError);
  const controller = new AbortController();
  const call = hotline.tags.get(7, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
});

test("the error of a lost secret names its record", async (t) => {
  const record = { id: 5, url: "https://example.com", secret: null };
  const replay = { status: 201, headers: { "idempotent-replay": "true" }, body: { data: record } };
  const { hotline } = await fake(t, [hangUp, replay]);
  await assert.rejects(hotline.webhooks.create({ url: "https://example.com" }), (error) => {
    assert.ok(error instanceof client.SecretLost);
    assert.equal(error.id, 5);
    return true;
  });
});

test("every error code of the API document has its class, and so has status 408", async (t) => {
  const document = JSON.parse(await readFile(new URL("../../../openapi.json", import.meta.url)));
  const codes = document.components.schemas.ApiError.properties.error.properties.code.enum;
  const { ERRORS_BY_CODE } = await import("../dist/generated/errors.js");
  assert.deepEqual(Object.keys(ERRORS_BY_CODE).sort(), [...codes].sort());
  for (const [code, { status, error: Class }] of Object.entries(ERRORS_BY_CODE)) {
    const { hotline } = await fake(t, [refusal(status, code)], { maxRetries: 0 });
    await assert.rejects(hotline.tags.get(7), (error) => {
      assert.equal(error.constructor, Class);
      assert.equal(client[error.name], Class, `${error.name} is exported`);
      assert.equal(error.code, code);
      return true;
    });
  }
  const { hotline } = await fake(t, [refusal(408, "ERR_API_BAD_REQUEST")], { maxRetries: 0 });
  await assert.rejects(hotline.tags.get(7), client.RequestTimeoutError);
});

test("unknown codes and statuses are errors, too", async (t) => {
  const { hotline } = await fake(t, [refusal(409, "ERR_API_NEW"), refusal(418, "ERR_API_TEAPOT"), { status: 502, body: "<html>" }]);
  await assert.rejects(hotline.tags.get(7), (error) => error instanceof client.ConflictError && error.code === "ERR_API_NEW");
  await assert.rejects(hotline.tags.get(7), (error) => error.constructor === client.ApiError && error.status === 418);
  await assert.rejects(hotline.tags.get(7, { maxRetries: 0 }), (error) => error.status === 502 && error.code === "");
});

test("invalid fields are listed with their codes and parameters", async (t) => {
  const fields = [{ field: "name", reason: "is required", code: "required", params: {} }];
  const { hotline } = await fake(t, [refusal(422, "ERR_API_VALIDATION", { details: fields })]);
  await assert.rejects(hotline.contacts.create({}), (error) => {
    assert.ok(error instanceof client.ValidationError && error instanceof client.UnprocessableError);
    assert.deepEqual(error.fields, fields);
    return true;
  });
});

test("the token is in no error and no output, and is not sent to the target of a redirect", async (t) => {
  const { hotline, requests } = await fake(t, [{ status: 302, headers: { location: "/elsewhere" } }, refusal(401, "ERR_API_UNAUTHORIZED")]);
  await assert.rejects(hotline.tags.get(7), /redirects/);
  assert.equal(requests.length, 1);
  const error = await hotline.tags.get(7).catch((thrown) => thrown);
  const { inspect } = await import("node:util");
  const shown = inspect(hotline, { depth: 9, showHidden: true }) + inspect(error, { depth: 9 }) + JSON.stringify(hotline);
  assert.ok(!shown.includes("sk_live"), shown);
});

test("errors of the configuration name what is wrong, but show no password", () => {
  assert.throws(() => new Hotline({ apiKey: "sk_live_x", url: "" }), /HOTLINE_URL/);
  assert.throws(() => new Hotline({ url: "https://hotline.example", apiKey: "" }), /HOTLINE_API_KEY/);
  assert.throws(() => new Hotline({ url: "https://u:hunter2@hotline.example", apiKey: "k" }), (error) => !error.message.includes("hunter2"));
  assert.throws(() => new Hotline({ url: "ftp://hotline.example", apiKey: "k" }), /https/);
});

test("times, lists and flags are encoded in the query", async (t) => {
  const { hotline, requests } = await fake(t, [{ body: { data: [], meta: { hasMore: false, lastId: 0 } } }]);
  await hotline.tickets.list({ unassigned: true, updatedFrom: new Date(0) }).toArray();
  await hotline.events.list({ types: ["ticket.opened", "ticket.closed"], after: 3 });
  const queries = requests.map((request) => Object.fromEntries(new URL(request.url, "http://x").searchParams));
  assert.deepEqual(queries[0], { unassigned: "true", updatedFrom: "1970-01-01T00:00:00.000Z", cursor: "" });
  assert.deepEqual(queries[1], { types: "ticket.opened,ticket.closed", after: "3" });
});

test("an id is encoded as one segment of the path, and is required", async (t) => {
  const { hotline, requests } = await fake(t, [{ body: { data: {} } }]);
  await hotline.sessions.get("a/../b?c");
  assert.equal(requests[0].url, "/api/v1/webchat/sessions/a%2F..%2Fb%3Fc");
  assert.throws(() => hotline.contacts.delete(undefined), TypeError);
});

test("ifMatch accepts the record's updatedAt or its ETag", async (t) => {
  const { hotline, requests } = await fake(t, [{ body: { data: {} } }]);
  await hotline.contacts.update(7, {}, { ifMatch: "2026-01-31T12:00:00.000Z" });
  await hotline.contacts.update(7, {}, { ifMatch: 'W/"x"' });
  assert.deepEqual(requests.map((request) => request.headers["if-match"]), ['"2026-01-31T12:00:00.000Z"', 'W/"x"']);
});

test("a list follows the cursors, and starts at the time of its first page", async (t) => {
  const date = "Sat, 31 Jan 2026 12:00:00 GMT";
  const page = (data, nextCursor) => ({ headers: { date }, body: { data, meta: { perPage: 2, hasMore: nextCursor !== null, nextCursor } } });
  const { hotline, requests } = await fake(t, [page([{ id: 1 }, { id: 2 }], "c1"), page([], "c2"), page([{ id: 3 }], null)]);
  const list = hotline.contacts.list({ perPage: 2, search: "maria" });
  const ids = [];
  for await (const contact of list) ids.push(contact.id);
  assert.deepEqual(ids, [1, 2, 3]);
  assert.equal(list.startedAt.toISOString(), "2026-01-31T12:00:00.000Z");
  assert.ok(Math.abs(hotline.now() - Date.parse(date)) < 5000);
  const cursors = requests.map((request) => new URL(request.url, "http://x").searchParams.get("cursor"));
  assert.deepEqual(cursors, ["", "c1", "c2"]);
});

test("toArray fails if the list exceeds its limit", async (t) => {
  const body = { data: [{ id: 1 }, { id: 2 }], meta: { hasMore: false, nextCursor: null } };
  const { hotline } = await fake(t, [{ body }]);
  await assert.rejects(hotline.contacts.list().toArray(1), RangeError);
  assert.equal((await hotline.contacts.list().first()).id, 1);
});

test("files from paths, contents and streams are sent as one form, the same in each attempt", async (t) => {
  const { hotline, requests } = await fake(t, [hangUp, { status: 202, body: { data: { jobId: "job_1", status: "queued" } } }]);
  const folder = await mkdtemp(join(tmpdir(), "hotline-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "a.txt");
  await writeFile(path, "from a path");
  async function* stream() {
    yield new TextEncoder().encode("from a ");
    yield new TextEncoder().encode("stream");
  }
  const job = await hotline.messages.send({
    ticketId: 7,
    type: "media",
    body: "See the files",
    template: { name: "x" },
    medias: [await fromPath(path), { data: stream(), fileName: 'b".txt', mimeType: "text/plain" }, new File(["c"], "c.txt")],
  });
  assert.equal(job.jobId, "job_1");
  assert.deepEqual(requests[0].body, requests[1].body);
  const form = await new Response(requests[1].body, { headers: { "content-type": requests[1].headers["content-type"] } }).formData();
  assert.equal(form.get("ticketId"), "7");
  assert.equal(form.get("template"), '{"name":"x"}');
  const files = form.getAll("medias");
  assert.deepEqual(await Promise.all(files.map((file) => file.text())), ["from a path", "from a stream", "c"]);
  assert.deepEqual(files.map((file) => file.name), ["a.txt", 'b".txt', "c.txt"]);
});

test("every attempt is reported", async (t) => {
  const reported = [];
  const answers = [refusal(503, "ERR_API_UNAVAILABLE"), { headers: { "ratelimit-limit": "9", "ratelimit-remaining": "8", "ratelimit-reset": "7" }, body: TAG }];
  const { hotline } = await fake(t, answers, { onResponse: (response) => reported.push(response) });
  await hotline.tags.get(7);
  assert.deepEqual(reported.map(({ status, attempt, code }) => [status, attempt, code]), [[503, 1, "ERR_API_UNAVAILABLE"], [200, 2, undefined]]);
  assert.deepEqual(reported[1].rateLimit, { limit: 9, remaining: 8, reset: 7 });
  assert.equal(reported[1].operation, "getTag");
});

test("an exception from onResponse ends the call", async (t) => {
  const thrown = new Error("from onResponse");
  const onResponse = () => {
    throw thrown;
  };
  const { hotline, requests } = await fake(t, [{ body: TAG }, refusal(503, "ERR_API_UNAVAILABLE"), { body: ":\n\n" }], { onResponse });
  const isThrown = (error) => error === thrown;
  await assert.rejects(hotline.tags.get(7), isThrown);
  await assert.rejects(hotline.tags.get(7), isThrown);
  await assert.rejects(hotline.events.stream().next(), isThrown);
  assert.equal(requests.length, 3, "no call is retried");
});
