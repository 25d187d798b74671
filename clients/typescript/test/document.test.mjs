// Nothing of the document is missing in the client.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Hotline, OPERATIONS } from "../dist/index.js";

const document = JSON.parse(await readFile(new URL("../../../openapi.json", import.meta.url)));

/** Every operation that a company's token may call. */
function documented() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => (operation.security ?? document.security).some((one) => "token" in one))
      .map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
  );
}

test("every operation that a token may call is a method that makes its request", async () => {
  const operations = documented();
  const underApi = Object.entries(document.paths).filter(([path]) => path.startsWith("/api/v1/"));
  const count = underApi.reduce((sum, [, methods]) => sum + Object.keys(methods).length, 0);
  assert.ok(count >= 161, `only ${count} operations under /api/v1`);
  assert.equal(operations.filter(({ path }) => path.startsWith("/api/v1/")).length, count);
  assert.deepEqual(Object.keys(OPERATIONS).sort(), operations.map(({ operationId }) => operationId).sort());

  let sent;
  const answer = { data: [], meta: { hasMore: false, gap: false, lastId: 0, oldestId: null } };
  const hotline = new Hotline({
    url: "http://hotline.test",
    apiKey: "sk_live_test",
    fetch: async (url, init) => {
      sent = { url: new URL(url), ...init };
      return new Response(JSON.stringify(answer), { status: 200 });
    },
  });
  for (const operation of operations) {
    const { resource, name } = OPERATIONS[operation.operationId];
    assert.equal(typeof hotline[resource]?.[name], "function", `${resource}.${name}`);
    const ids = (operation.parameters ?? []).filter((one) => one.in === "path").map((one, at) => at + 1);
    const result = hotline[resource][name](...ids, ...(operation.requestBody ? [{}] : []));
    if (Symbol.asyncIterator in result) for await (const _ of result) continue;
    else await result;
    let at = 0;
    assert.equal(sent.method, operation.method, operation.operationId);
    assert.equal(sent.url.pathname, operation.path.replace(/\{\w+\}/g, () => String(++at)), operation.operationId);
    const isKeyed = operation.parameters?.some((one) => one.name === "Idempotency-Key") ?? false;
    assert.equal("idempotency-key" in sent.headers, isKeyed, operation.operationId);
  }
});

test("every POST and PUT of the API has a key", () => {
  const writes = documented().filter(({ path, method }) => path.startsWith("/api/v1/") && /POST|PUT/.test(method));
  const without = writes.filter(({ parameters }) => !parameters?.some((one) => one.name === "Idempotency-Key"));
  assert.deepEqual(without.map(({ operationId }) => operationId), []);
});
