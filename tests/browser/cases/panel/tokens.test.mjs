// The rules of tokens, through the page and with the keys it shows.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { address, panelEnv } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";

/** Seconds for which a token is made that stops soon; where making it takes longer, twice as many, and so on. */
const LIFE_S = 3;
const LIFE_S_MAX = 400;

describe("tokens", () => {
  const env = panelEnv();

  const call = async (key, method, path, body) => {
    const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...(body && { "Content-Type": "application/json" }) };
    const answer = await fetch(`${env.service.url}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    return { status: answer.status, body: await answer.json().catch(() => null) };
  };

  /** Ticks these boxes of the matrix: "Tags: Read". */
  const allow = async (panel, ...names) => {
    for (const name of names) await panel.page.getByRole("checkbox", { name, exact: true }).check();
  };

  /** The key that is shown, once. */
  const shownKey = async (panel) => {
    await panel.dialog().getByRole("heading", { name: "Save this key" }).waitFor();
    return panel.dialog().locator("code").first().textContent();
  };

  const create = async (panel, name, ...permissions) => {
    await panel.turnTo("/tokens/new");
    await panel.fill({ Name: name });
    await allow(panel, ...permissions);
    await panel.button("Create").click();
    const key = await shownKey(panel);
    await panel.button("Done").click();
    await panel.heading(name).waitFor();
    return key;
  };

  it("have a key of one form, which is shown once, with a line to try it", async () => {
    const panel = await env.open("/tokens/new", { permissions: ["clipboard-read", "clipboard-write"] });
    await panel.button("Create").click();
    await panel.page.locator(".wrong").first().waitFor();
    await panel.fill({ Name: "Shop" });
    await allow(panel, "Tags: Read", "Tags: Create");
    await panel.button("Create").click();
    const key = await shownKey(panel);
    assert.match(key, /^sk_live_[A-Za-z0-9]{32}$/);
    await panel.page.getByRole("button", { name: "Copy: Key" }).click();
    assert.equal(await panel.page.evaluate(() => navigator.clipboard.readText()), key);
    const line = await panel.dialog().locator("code").nth(1).textContent();
    assert.equal(line, `curl -H "Authorization: Bearer ${key}" "${env.service.url}/api/v1/tags"`);
    await panel.page.keyboard.press("Escape");
    assert.ok(await panel.dialog().isVisible(), "it does not go by a key pressed too often");
    await panel.button("Done").click();
    await panel.heading("Shop").waitFor();
    const { status } = await call(key, "GET", "/tags");
    assert.equal(status, 200);
    await panel.page.reload();
    await panel.heading("Shop").waitFor();
    await panel.settled();
    const everything = await panel.page.content();
    assert.ok(!everything.includes(key), "the key is nowhere any more");
    assert.ok(everything.includes(`${key.slice(0, 16)}…`), "its beginning tells it from others");
    await panel.turnTo("/tokens");
    await panel.row("Shop").getByText("Active").waitFor();
    await eventually("when it was used last is shown", async () => {
      await panel.go("/tokens");
      return !/Never.*Never/.test(await panel.row("Shop").textContent());
    });
    await panel.leave();
  });

  it("may do what their matrix says, and the refusal names method and module", async () => {
    const panel = await env.open("/tokens");
    const key = await create(panel, "Reader", "Tags: Read", "Webchat: Read", "Webchat: Create");
    assert.equal((await call(key, "GET", "/tags")).status, 200);
    const refused = await call(key, "POST", "/tags", { name: "No" });
    assert.equal(refused.status, 403);
    assert.equal(refused.body.error.code, "ERR_API_FORBIDDEN_SCOPE");
    assert.match(refused.body.error.message, /POST/);
    assert.match(refused.body.error.message, /tags/);
    await allow(panel, "Tags: Create");
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    const made = await eventually("it may now", async () => {
      const answer = await call(key, "POST", "/tags", { name: "Made by Reader" });
      return answer.status === 201 && answer;
    });
    assert.equal(made.body.data.name, "Made by Reader");
    await panel.leave();
  });

  it("manage no tokens, and reach nothing of the panel", async () => {
    const panel = await env.open("/tokens");
    await panel.turnTo("/tokens/new");
    await panel.fill({ Name: "Everything" });
    await panel.page.getByRole("checkbox", { name: "Select all", exact: true }).check();
    await panel.button("Create").click();
    const key = await shownKey(panel);
    await panel.button("Done").click();
    for (const path of ["/tokens", "/tokens/1", "/audit-log", "/company"]) {
      assert.equal((await call(key, "GET", path)).status, 404, path);
      const answer = await fetch(`${env.service.url}/panel/api/v1${path}`, { headers: { Authorization: `Bearer ${key}` } });
      assert.equal(answer.status, 401, path);
    }
    // What is done with it is done under its name.
    const contact = (await call(key, "POST", "/contacts", { name: "Someone", number: "5511966665555" })).body.data;
    assert.equal(contact.name, "Someone");
    await panel.leave();
  });

  it("get another key, which ends the one before and keeps all else", async () => {
    const panel = await env.open("/tokens");
    const first = await create(panel, "Rotated", "Tags: Read");
    await panel.button("Rotate key").click();
    await panel.dialog().getByRole("button", { name: "Rotate key" }).click();
    const second = await shownKey(panel);
    assert.notEqual(second, first);
    await panel.button("Done").click();
    await eventually("the old key is dead", async () => (await call(first, "GET", "/tags")).status === 401);
    assert.equal((await call(second, "GET", "/tags")).status, 200);
    assert.equal(await panel.field("Name").inputValue(), "Rotated");
    assert.ok(await panel.page.getByRole("checkbox", { name: "Tags: Read", exact: true }).isChecked());
    await panel.leave();
  });

  it("are refused alike, whatever the reason: revoked, expired, from elsewhere, none", async () => {
    const panel = await env.open("/tokens");
    const revoked = await create(panel, "Revoked", "Tags: Read");
    await panel.button("Revoke").click();
    await panel.dialog().getByRole("button", { name: "Revoke" }).click();
    await panel.text("This token is revoked and can't be restored.").waitFor();
    assert.equal(await panel.button("Rotate key").count(), 0);

    await panel.turnTo("/tokens/new");
    await panel.fill({ Name: "From elsewhere", "Allowed IP addresses": "::1" });
    await allow(panel, "Tags: Read");
    await panel.button("Create").click();
    await panel.page.locator(".wrong").waitFor();
    await panel.fill({ "Allowed IP addresses": "203.0.113.7\n198.51.100.0/24" });
    await panel.button("Create").click();
    const elsewhere = await shownKey(panel);
    await panel.button("Done").click();

    const none = await call(null, "GET", "/tags");
    assert.equal(none.status, 401);
    const alike = ({ body }) => JSON.stringify({ ...body.error, message: body.error.message.replace(/[0-9a-f-]{20,}/g, "") });
    await eventually("the revoked one is refused", async () => (await call(revoked, "GET", "/tags")).status === 401);
    for (const key of [revoked, elsewhere, "sk_live_", "nonsense", `sk_live_${"a".repeat(32)}`]) {
      const refused = await call(key, "GET", "/tags");
      assert.equal(refused.status, 401, key);
      assert.equal(alike(refused), alike(none));
    }
    await panel.turnTo("/tokens?status=revoked");
    await panel.row("Revoked").first().waitFor();
    assert.equal(await panel.row("From elsewhere").count(), 0);
    await panel.turnTo("/tokens?search=elsewhere");
    await panel.row("203.0.113.7, 198.51.100.0/24").waitFor();
    await panel.leave();
  });

  it("act in the integration's name, also when who made them is gone", async () => {
    const maker = await env.company.person("Administrator", { name: "Maker" });
    const panel = await env.open("/tokens", { person: maker });
    const key = await create(panel, "Night bot", "Contacts: Create", "Conversations: Create", "Messages: Create", "Messages: Read");
    await panel.leave();
    await env.service.asRoot(env.company.id, "DELETE", `/users/${maker.id}`);
    const contact = (await call(key, "POST", "/contacts", { name: "Visitor", number: "5511955554444" })).body.data;
    const opened = await call(key, "POST", "/webchat/sessions", { channelId: env.company.channel.id });
    assert.equal(opened.status, 403, "what its matrix does not say");
    const session = await env.company.data("POST", "/webchat/sessions", { channelId: env.company.channel.id, visitor: { name: "Visitor", externalId: "v-1" } });
    await env.company.data("POST", `/webchat/sessions/${session.id}/messages`, { body: "Anybody there?" });
    const ticket = await env.company.ticketOf("Anybody there?");
    const sent = await call(key, "POST", "/messages", { ticketId: ticket.id, type: "text", body: "A bot is." });
    assert.equal(sent.status, 202, JSON.stringify(sent.body));
    const said = await eventually("it is said", async () => (await env.company.messages(ticket)).find(({ body }) => body === "A bot is."));
    assert.deepEqual([said.integration.name, said.user], ["Night bot", null]);
    assert.ok(contact.id);
    const found = await env.open("/tokens?search=Night");
    await found.row("Night bot").getByText("Active").waitFor();
    await found.leave();
  });

  it("are checked in order: the token, the company, its plan, its rate, the permission", async () => {
    const panel = await env.open("/tokens");
    const key = await create(panel, "Ordered", "Tags: Read");
    await panel.leave();
    const email = address("orderer");
    const { password } = await env.service.cli("admin", "create", email);
    const admin = await env.open(`/companies/${env.administrator.session.data.company.id}`, { person: { email, password } });
    const forbidden = () => call(key, "GET", "/queues");
    const expect = (status, code) => eventually(`${status} ${code}`, async () => {
      const answer = await forbidden();
      return answer.status === status && answer.body.error.code === code;
    });
    const set = async (name, isOn) => {
      await admin.page.getByRole("checkbox", { name }).setChecked(isOn);
      await save();
    };
    const save = async () => {
      const isSaved = admin.page.waitForResponse((answer) => answer.request().method() === "PUT");
      await admin.button("Save").click();
      assert.equal((await isSaved).status(), 200);
      await admin.settled();
    };
    // 5. Everything else is in order, and the permission is missing.
    await expect(403, "ERR_API_FORBIDDEN_SCOPE");
    // 4. Before it comes the rate: the second call of a minute that has one.
    await admin.fill({ "API calls per minute": "1" });
    await save();
    await expect(429, "ERR_API_RATE_LIMITED");
    // 3. Before that the plan, 2. before that the company, 1. and before all of them the token.
    await set("API access", false);
    await expect(403, "ERR_API_NOT_ENABLED");
    await set("Active", false);
    await expect(403, "ERR_API_COMPANY_INACTIVE");
    const wrong = await call(`sk_live_${"b".repeat(32)}`, "GET", "/queues");
    assert.deepEqual([wrong.status, wrong.body.error.code], [401, "ERR_API_UNAUTHORIZED"]);
    await set("Active", true);
    await set("API access", true);
    await admin.fill({ "API calls per minute": "" });
    await save();
    await expect(403, "ERR_API_FORBIDDEN_SCOPE");
    await eventually("it works again", async () => (await call(key, "GET", "/tags")).status === 200);
    await admin.leave();
  });

  it("are bound to fifty addresses at most, whatever a header says", async () => {
    const panel = await env.open("/tokens");
    const key = await create(panel, "Bound", "Tags: Read");
    const fifty = Array.from({ length: 50 }, (_, at) => `198.51.100.${at + 1}`);
    for (const [typed, isTaken] of [[[...fifty, "192.0.2.1"], false], [["10.0.0.0/33"], false], [["example.com"], false], [fifty, true]]) {
      await panel.fill({ "Allowed IP addresses": typed.join("\n") });
      await panel.button("Save").click();
      await (isTaken ? panel.notice("Saved.") : panel.page.locator(".wrong").first()).waitFor();
    }
    const none = await call(null, "GET", "/tags");
    await eventually("it is refused from here", async () => (await call(key, "GET", "/tags")).status === 401);
    const headers = { Authorization: `Bearer ${key}`, "X-Forwarded-For": fifty[0] };
    const forwarded = await fetch(`${env.service.url}/api/v1/tags`, { headers });
    assert.equal(forwarded.status, 401);
    assert.equal((await forwarded.json()).error.message, none.body.error.message);
    // Blank: from anywhere.
    const saved = async (addresses) => {
      await panel.fill({ "Allowed IP addresses": addresses });
      const answer = panel.page.waitForResponse((it) => it.request().method() === "PUT");
      await panel.button("Save").click();
      const { data } = await (await answer).json();
      await panel.settled();
      return data.allowedIps;
    };
    assert.deepEqual(await saved("127.0.0.0/8"), ["127.0.0.0/8"]);
    await eventually("it works from here", async () => (await call(key, "GET", "/tags")).status === 200);
    assert.deepEqual(await saved(""), []);
    await panel.turnTo("/tokens?search=Bound");
    await panel.row("Bound").getByText("Any", { exact: true }).waitFor();
    assert.equal((await call(key, "GET", "/tags")).status, 200);
    await panel.leave();
  });

  it("stop at the moment they expire", async () => {
    const panel = await env.open("/tokens/new");
    await panel.fill({ Name: "Short", Expires: "2020-01-01T00:00" });
    await allow(panel, "Tags: Read");
    await panel.button("Create").click();
    await panel.page.locator(".wrong").waitFor();
    let soon;
    for (let life = LIFE_S; ; life *= 2) {
      assert.ok(life < LIFE_S_MAX, "a token that stops soon is made");
      // A whole minute would be written without its seconds.
      const second = Math.ceil(Date.now() / 1000 + life);
      soon = new Date((second % 60 ? second : second + 1) * 1000);
      const local = new Date(soon.getTime() - soon.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
      await panel.fill({ Expires: local });
      await panel.button("Create").click();
      await panel.dialog().or(panel.page.locator(".wrong")).first().waitFor();
      if (await panel.dialog().isVisible()) break;
    }
    const key = await shownKey(panel);
    await panel.button("Done").click();
    const statuses = [];
    await eventually("it has stopped", async () => {
      const { status } = await call(key, "GET", "/tags");
      statuses.push([Date.now() < soon.getTime(), status]);
      return status === 401;
    });
    assert.ok(!statuses.some(([isBefore, status]) => isBefore && status === 401), "not before its time");
    await panel.turnTo("/tokens?status=expired");
    await panel.row("Short").getByText("Expired").waitFor();
    await panel.leave();
  });
});
