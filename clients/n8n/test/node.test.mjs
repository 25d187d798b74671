// The node without n8n and without a service: what it sends for each operation.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const { Hotline } = require("../dist/nodes/Hotline/Hotline.node.js");
const { OPERATIONS } = require("../dist/nodes/Hotline/generated/operations.js");
const { PROPERTIES } = require("../dist/nodes/Hotline/generated/properties.js");
const { isSigned } = require("../dist/nodes/Hotline/signature.js");
const { toForm } = require("../dist/nodes/Hotline/form.js");
const document = JSON.parse(await readFile(new URL("../../../openapi.json", import.meta.url), "utf8"));

/** What n8n gives a node, with these parameters and responses. */
function context(parameters, responses, isForgiving = false) {
  const sent = [];
  return {
    sent,
    getInputData: () => [{ json: {} }],
    getNodeParameter: (name, _, fallback) => parameters[name] ?? fallback,
    getNode: () => ({ id: "node-1", name: "Hotline", type: "hotline", typeVersion: 1, position: [0, 0], parameters: {} }),
    getCredentials: async () => ({ url: "https://hotline.example/" }),
    getInstanceId: () => "instance",
    getExecutionId: () => "42",
    getTimezone: () => "America/Sao_Paulo",
    getWorkflowDataProxy: () => ({ $runIndex: 0 }),
    continueOnFail: () => isForgiving,
    helpers: {
      httpRequestWithAuthentication: async (name, options) => {
        assert.equal(name, "hotlineApi");
        sent.push(options);
        const response = responses.shift() ?? { statusCode: 200, headers: {}, body: '{"data":{}}' };
        if (response instanceof Error) throw response;
        return response;
      },
    },
  };
}

const ok = (data, meta) => ({ statusCode: 200, headers: {}, body: JSON.stringify({ data, meta }) });
const run = (one) => Hotline.prototype.execute.call(one);

test("every operation on its resources is one of the node, with a path without gaps", async () => {
  const expected = Object.entries(document.paths)
    .filter(([path]) => /^\/api\/v1\/(messages|tickets|contacts|campaigns|crm\/cards)(\/|$)/.test(path))
    .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId));
  assert.deepEqual(Object.values(OPERATIONS).map(({ id }) => id).sort(), expected.sort());
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const [resource, verb] = name.split(".");
    const isShown = ({ displayOptions }) => displayOptions?.show.resource?.[0] === resource && displayOptions.show.operation?.[0] === verb;
    const parameters = { resource, operation: verb };
    for (const property of PROPERTIES.filter(isShown)) {
      if (property.required) parameters[property.name] = property.type === "number" ? 7 : property.type === "dateTime" ? null : property.default || "x";
    }
    const one = context(parameters, operation.result === "page" ? [ok([], {})] : operation.result === "none" ? [{ statusCode: 204, headers: {}, body: "" }] : []);
    await run(one);
    assert.equal(one.sent.length, 1, name);
    assert.equal(one.sent[0].method, operation.method);
    assert.match(one.sent[0].url, /^https:\/\/hotline\.example\/api\/v1\/[^{}]+$/, name);
    assert.equal(one.sent[0].headers["Idempotency-Key"] !== undefined, operation.isKeyed, name);
  }
});

test("a list is read by its cursor, up to the limit", async () => {
  const pages = () => [ok([{ id: 1 }, { id: 2 }], { nextCursor: "c2" }), ok([{ id: 3 }, { id: 4 }], { nextCursor: null })];
  const all = context({ resource: "contact", operation: "list", returnAll: true, filters: { search: "Ana", tagId: "7" } }, pages());
  assert.deepEqual((await run(all))[0].map(({ json }) => json.id), [1, 2, 3, 4]);
  assert.deepEqual(all.sent.map(({ qs }) => qs.cursor).length, 2);
  assert.equal(all.sent[1].qs.cursor, "c2");
  assert.equal(all.sent[1].qs.search, "Ana");
  const three = context({ resource: "contact", operation: "list", limit: 3 }, pages());
  assert.equal((await run(three))[0].length, 3);
});

test("a lost response and a busy service are tried again under the same key, and other calls have other keys", async () => {
  const parameters = { resource: "message", operation: "send", type: "text", body: "Hello", fields: { contactId: 7, closeTicket: true } };
  const one = context(parameters, [new Error("socket hang up"), { statusCode: 503, headers: { "retry-after": "0" }, body: "{}" }, ok({ id: 1 })]);
  assert.deepEqual((await run(one))[0].map(({ json }) => json), [{ id: 1 }]);
  const keys = one.sent.map(({ headers }) => headers["Idempotency-Key"]);
  assert.equal(new Set(keys).size, 1);
  assert.equal(keys.length, 3);
  assert.deepEqual(JSON.parse(one.sent[0].body), { contactId: 7, closeTicket: true, type: "text", body: "Hello" });
  const other = context({ ...parameters, body: "Bye" }, []);
  await run(other);
  assert.notEqual(other.sent[0].headers["Idempotency-Key"], keys[0]);
});

test("an error names its code and every field, and an item may fail alone", async () => {
  const body = JSON.stringify({ error: { code: "ERR_API_VALIDATION", message: "invalid", details: [{ field: "number", code: "x", reason: "8 to 15 digits" }] } });
  const failed = () => [{ statusCode: 422, headers: { "x-request-id": "r-1" }, body }];
  const parameters = { resource: "contact", operation: "create", name: "Ana", fields: {} };
  await assert.rejects(run(context(parameters, failed())), (error) => {
    assert.match(error.message, /ERR_API_VALIDATION/);
    assert.match(error.description, /number: 8 to 15 digits; request r-1/);
    assert.equal(error.httpCode, "422");
    return true;
  });
  assert.match((await run(context(parameters, failed(), true)))[0][0].json.error, /ERR_API_VALIDATION/);
  await assert.rejects(run(context({ resource: "ticket", operation: "get", ticketId: "" }, [])), /ticketId must not be empty/);
  const word = { resource: "ticket", operation: "transfer", ticketId: 7, fields: { queueId: "abc" } };
  await assert.rejects(run(context(word, [])), /queueId must be a number/);
});

test("null empties a field", async () => {
  const one = context({ resource: "ticket", operation: "transfer", ticketId: 7, fields: { userId: null } }, []);
  await run(one);
  assert.deepEqual(JSON.parse(one.sent[0].body), { userId: null });
});

test("only a recent request signed with the secret is the service's", () => {
  const secret = `whsec_${Buffer.from("a key of a webhook").toString("base64")}`;
  const now = new Date("2026-01-31T12:00:00Z");
  const body = Buffer.from('{"id":1}');
  const at = String(now.getTime() / 1000);
  const signature = createHmac("sha256", Buffer.from("a key of a webhook")).update(`evt_1_1.${at}.`).update(body).digest("base64");
  const headers = { "webhook-id": "evt_1_1", "webhook-timestamp": at, "webhook-signature": `v1,AAAA v1,${signature}` };
  assert.equal(isSigned(secret, headers, body, now), true);
  assert.equal(isSigned(secret, headers, Buffer.from('{"id":2}'), now), false);
  assert.equal(isSigned(secret, { ...headers, "webhook-id": "evt_1_2" }, body, now), false);
  assert.equal(isSigned(secret, headers, body, new Date(now.getTime() + 301_000)), false);
  assert.equal(isSigned("whsec_", headers, body, now), false);
  assert.equal(isSigned(secret, {}, body, now), false);
});

test("a form has the bytes of its files, and names that cannot end a header", () => {
  const file = { content: Buffer.from([0, 255, 13, 10]), fileName: 'a"\r\nX: y', mimeType: "text/plain\r\nX: y" };
  const form = toForm({ type: "media", template: { name: "x" }, body: null }, [file], "b").toString("latin1");
  assert.equal(
    form,
    '--b\r\nContent-Disposition: form-data; name="type"\r\n\r\nmedia\r\n--b\r\nContent-Disposition: form-data; name="template"\r\n\r\n{"name":"x"}\r\n' +
      '--b\r\nContent-Disposition: form-data; name="medias"; filename="a%22%0D%0AX: y"\r\nContent-Type: text/plain\r\n\r\n\x00\xff\r\n\r\n--b--\r\n',
  );
});
