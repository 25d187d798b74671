// Who the visitor is: what the website has signed, and what is left in the browser when they leave.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { before, describe, it } from "node:test";

import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

/** As a shop's server signs it. */
function sign(secret, claims) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(Date.now() / 1000) + 3600;
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({ exp, ...claims })}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
}

const identify = (visitor, identity) =>
  visitor.page.evaluate((identity) => window.HotlineWebchat.identify(identity), identity);

const logout = (visitor) => visitor.page.evaluate(() => window.HotlineWebchat.logout());

const kept = (visitor, env, name) =>
  visitor.page.evaluate(
    (name) => JSON.parse(localStorage.getItem(name)),
    `hotline:${env.company.channel.publicKey}:${name}`,
  );

/** Holds the next request that a page sends there; `isAsked` once there is one, and `go` lets it pass. */
async function hold(page, url) {
  let asked;
  let letGo;
  const isAsked = new Promise((done) => (asked = done));
  const held = new Promise((done) => (letGo = done));
  let isFirst = true;
  // The widget gives up a call after twenty seconds: it waits for this one however long it is held.
  await page.evaluate(() => {
    const { setTimeout } = window;
    window.setTimeout = (act, ms, ...given) => setTimeout(act, ms === 20_000 ? 3_600_000 : ms, ...given);
  });
  await page.route(url, async (route) => {
    if (route.request().method() !== "POST" || !isFirst) return route.fallback();
    isFirst = false;
    asked();
    await held;
    await route.continue();
  });
  return { isAsked, go: letGo };
}

/** The channel's identity secret, once the service knows it. */
function secretOf(env) {
  before(async () => {
    env.secret = (await env.service.cli("channel", "rotate-identity-secret", String(env.company.channel.id))).identitySecret;
    await eventually("the secret is seen", async () => {
      const body = JSON.stringify({ identity: sign(env.secret, { sub: "first" }) });
      const headers = { "Content-Type": "application/json", Origin: env.shop.origin };
      return (await fetch(`${env.company.door}/sessions`, { method: "POST", headers, body })).ok;
    });
    let number = 0;
    env.customer = (name) => ({ sub: `customer-${(number += 1)}`, name });
  });
}

describe("a visitor the website names", () => {
  const env = webchatEnv();
  secretOf(env);

  it("in the middle goes on in the conversation, as who they are", async () => {
    const { visitor, ticket, hello } = await env.meet();
    const before = await kept(visitor, env, "session");
    assert.equal(await identify(visitor, sign(env.secret, env.customer("Vera Lima"))), true);
    const after = await kept(visitor, env, "session");
    assert.deepEqual([after.id, after.token], [before.id, before.token]);
    await visitor.tell("It is me");
    const shown = await env.company.data("GET", `/tickets/${ticket.id}`);
    assert.deepEqual([shown.verified, shown.contact.name, shown.lastMessage.body], [true, "Vera Lima", "It is me"]);
    await env.company.say(ticket, "Hello, Vera");
    await visitor.theirs("Hello, Vera").waitFor();
    assert.deepEqual(await visitor.texts(), [hello, "It is me", "Hello, Vera"]);
    await visitor.leave();
  });

  it("who is there already goes on in their own conversation, and the desk is told", async () => {
    const customer = env.customer("Nils Berg");
    const home = await env.visit();
    await home.page.waitForFunction(() => window.HotlineWebchat);
    await identify(home, sign(env.secret, customer));
    await home.open();
    await home.tell("From home");
    const { visitor, ticket, hello } = await env.meet();
    assert.equal(await identify(visitor, sign(env.secret, customer)), true);
    await visitor.own("From home").waitFor();
    await visitor.tell("From the shop");
    await home.own("From the shop").waitFor();
    const notes = (await env.company.messages(ticket)).filter(({ type }) => type === "note");
    assert.equal(notes.length, 1);
    assert.match(notes[0].body, /Nils Berg/);
    assert.deepEqual((await visitor.texts()).sort(), [hello, "From home", "From the shop"].sort(), "what was said stays");
    await visitor.leave();
    await home.leave();
  });

  it("by the line that embeds the widget is known from the first word, and asked nothing", async () => {
    const identity = sign(env.secret, env.customer("Olga Maier"));
    const visitor = await env.visit({}, { identity });
    await visitor.open();
    await visitor.tell("Known from the start");
    const ticket = await env.company.ticketOf("Known from the start");
    assert.deepEqual([ticket.verified, ticket.contact.name], [true, "Olga Maier"]);
    // On the next page the door is not asked again.
    const asked = [];
    visitor.page.on("request", (request) => /identify|sessions/.test(request.url()) && asked.push(request.url()));
    await visitor.page.reload();
    await visitor.own("Known from the start").waitFor();
    await visitor.tell("On the next page");
    assert.deepEqual(asked, []);
    await visitor.leave();
  });

  it("by a signature that is none stays unknown, and the console says why", async () => {
    const { visitor, hello } = await env.meet();
    const said = visitor.page.waitForEvent("console", { predicate: (line) => line.text().startsWith("Hotline webchat:") });
    assert.equal(await identify(visitor, sign("another secret", env.customer("Eve"))), false);
    assert.match((await said).text(), /not signed with a secret of this webchat/);
    await visitor.tell("Still nobody");
    const ticket = await env.company.ticketOf("Still nobody");
    assert.equal(ticket.verified, false);
    assert.deepEqual(await visitor.texts(), [hello, "Still nobody"]);
    await visitor.leave();
  });

  it("and leaves is found by nobody in any tab", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await identify(visitor, sign(env.secret, env.customer("Vera Lima")));
    const tab = await visitor.anotherTab();
    await tab.open();
    await tab.own(hello).waitFor();
    await visitor.field.fill("a secret I was about to");
    await logout(visitor);
    for (const one of [visitor, tab]) {
      await eventually("the screen is empty", async () => (await one.texts()).length === 0);
      assert.equal(await one.field.inputValue(), "");
    }
    const left = await visitor.page.evaluate(() => JSON.stringify({ ...localStorage }));
    for (const gone of ["vt_", "Hello, number", "a secret"]) assert.ok(!left.includes(gone), `${gone} is left: ${left}`);
    await visitor.page.reload();
    await visitor.panel.waitFor();
    await visitor.tell("Somebody else");
    const other = await env.company.ticketOf("Somebody else");
    assert.equal(other.verified, false);
    assert.notEqual(other.contact.id, ticket.contact.id);
    await visitor.leave();
  });

  it("and leaves while something is on its way is heard no more", async () => {
    const { visitor } = await env.meet();
    const send = await hold(visitor.page, `${env.company.door}/messages`);
    await visitor.say("On its way");
    await send.isAsked;
    await logout(visitor);
    await send.go();
    await visitor.tell("Somebody new");
    assert.deepEqual(await visitor.texts(), ["Somebody new"]);
    const ticket = await env.company.ticketOf("Somebody new");
    assert.deepEqual((await env.company.messages(ticket)).map(({ body }) => body), ["Somebody new"]);
    await visitor.leave();
  });

  it("and leaves while a conversation is begun leaves none", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const begin = await hold(visitor.page, `${env.company.door}/sessions`);
    await visitor.say("Never begun");
    await begin.isAsked;
    await logout(visitor);
    const ended = visitor.page.waitForRequest(`${env.company.door}/end`);
    await begin.go();
    await ended;
    assert.equal(await kept(visitor, env, "session"), null);
    await visitor.tell("Begun by another");
    assert.deepEqual(await visitor.texts(), ["Begun by another"]);
    await visitor.leave();
  });

  it("after somebody else takes nothing of theirs along", async () => {
    const { visitor, hello } = await env.meet();
    await identify(visitor, sign(env.secret, env.customer("Vera Lima")));
    await visitor.own(hello).waitFor();
    await identify(visitor, sign(env.secret, env.customer("Nils Berg")));
    await eventually("her words are gone", async () => (await visitor.texts()).length === 0);
    await visitor.tell("I am Nils");
    const ticket = await env.company.ticketOf("I am Nils");
    assert.equal(ticket.contact.name, "Nils Berg");
    assert.deepEqual(await visitor.texts(), ["I am Nils"]);
    await visitor.leave();
  });
});

describe("somebody else, before the first word", () => {
  const env = webchatEnv();
  secretOf(env);

  it("finds no draft of who was named before", async () => {
    const visitor = await env.visit({}, { identity: sign(env.secret, env.customer("Vera Lima")) });
    await visitor.open();
    await visitor.field.fill("of Vera alone");
    await eventually("she is known", () => kept(visitor, env, "subject"));
    await visitor.page.goto(env.shop.page(env.company, { identity: sign(env.secret, env.customer("Nils Berg")) }));
    await visitor.panel.waitFor();
    await eventually("her draft is gone", async () => (await visitor.field.inputValue()) === "");
    assert.equal(await kept(visitor, env, "draft"), null);
    await visitor.leave();
  });
});

describe("the form before a conversation", () => {
  const env = webchatEnv("--pre-chat-field", "name", "--pre-chat-field", "email");

  it("is empty once its visitor has left", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const { widget } = visitor;
    await widget.getByLabel("Name").fill("Vera Lima");
    await widget.getByLabel("E-mail").fill("vera@example.com");
    await widget.getByRole("button", { name: "Start the chat" }).click();
    await visitor.tell("I am Vera");
    await logout(visitor);
    await widget.getByLabel("Name").waitFor();
    assert.deepEqual([await widget.getByLabel("Name").inputValue(), await widget.getByLabel("E-mail").inputValue()], ["", ""]);
    await widget.getByLabel("E-mail").fill("half of an addr");
    await widget.getByRole("button", { name: "Start the chat" }).click();
    await widget.getByText("Enter a valid e-mail address.").waitFor();
    await logout(visitor);
    assert.equal(await widget.getByLabel("E-mail").inputValue(), "");
    assert.equal(await widget.getByText("Enter a valid e-mail address.").count(), 0);
    await visitor.leave();
  });
});

describe("a conversation after the one that has ended", () => {
  const env = webchatEnv();

  it("shows what was sent meanwhile, without an account", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await visitor.widget.getByRole("button", { name: "End the conversation" }).click();
    await visitor.widget.getByRole("button", { name: "End conversation" }).click();
    await visitor.widget.getByRole("button", { name: "Start a new conversation" }).waitFor();
    await env.company.say(ticket, "Sent to nobody");
    await visitor.widget.getByRole("button", { name: "Start a new conversation" }).click();
    await visitor.tell("Back again");
    await visitor.theirs("Sent to nobody").waitFor();
    const said = (await env.company.messages(ticket)).map(({ body }) => body);
    assert.deepEqual(said, [hello, "Sent to nobody", "Back again"], "one ticket, of one contact");
    await visitor.leave();
  });
});

describe("a webchat that requires an identity", () => {
  const env = webchatEnv("--require-identity");
  secretOf(env);

  it("shows nothing until there is one", async () => {
    const visitor = await env.visit();
    await visitor.page.waitForFunction(() => window.HotlineWebchat);
    await visitor.launcher.waitFor({ state: "attached" });
    assert.equal(await visitor.launcher.isVisible(), false);
    await identify(visitor, sign(env.secret, env.customer("Vera Lima")));
    await visitor.open();
    await visitor.tell("Let in");
    assert.equal((await env.company.ticketOf("Let in")).verified, true);
    await logout(visitor);
    await visitor.launcher.waitFor({ state: "hidden" });
    await visitor.leave();
  });
});

describe("what waits in a webchat that requires an identity", () => {
  const env = webchatEnv("--require-identity");
  secretOf(env);

  it("waits until there is one", async () => {
    const visitor = await env.visit();
    await visitor.page.waitForFunction(() => window.HotlineWebchat);
    const identity = sign(env.secret, env.customer("Vera Lima"));
    const sessions = `${env.company.door}/sessions`;
    await visitor.page.route(sessions, (route) => route.abort());
    await identify(visitor, identity);
    await visitor.open();
    await visitor.say("Said before a reload");
    await visitor.own("Said before a reload").and(visitor.widget.locator("[data-state=waiting]")).waitFor();
    await visitor.page.unroute(sessions);
    const asked = [];
    visitor.page.on("request", (request) => request.url() === sessions && request.method() === "POST" && asked.push(request.postData()));
    await visitor.page.reload();
    await visitor.page.waitForFunction(() => window.HotlineWebchat);
    await identify(visitor, identity);
    await visitor.own("Said before a reload").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    assert.deepEqual(asked.filter((body) => !body.includes("identity")), [], "nothing was asked without an identity");
    await visitor.leave();
  });
});

describe("a line with a key of no webchat", () => {
  const env = webchatEnv();

  it("says so in the console", async () => {
    const visitor = await env.visit();
    const { publicKey } = env.company.channel;
    const wrong = visitor.page.url().replace(publicKey, publicKey.replace(/.$/, (last) => (last === "x" ? "y" : "x")));
    const said = visitor.page.waitForEvent("console", { predicate: (line) => line.text().startsWith("Hotline webchat:") });
    await visitor.page.goto(wrong);
    const line = await said;
    assert.equal(line.type(), "warning");
    assert.match(line.text(), /no webchat has the public key .*\/widget\.js/);
    assert.equal(await visitor.widget.count(), 0);
    await visitor.leave();
  });
});
