// What a visitor finds again: after a reload, in another tab, after a service that was killed.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { visit, withBrowser } from "../../support/browser.mjs";
import { webchatEnv } from "../../support/webchat.mjs";
import { freePort, Service } from "../../support/service.mjs";
import { Shop } from "../../support/shop.mjs";
import { eventually } from "../../support/wait.mjs";

describe("a reload", () => {
  const env = webchatEnv();

  it("finds the conversation, the open panel and the draft", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await env.company.say(ticket, "An answer");
    await visitor.theirs("An answer").waitFor();
    await visitor.field.fill("I was about to sa");
    await visitor.page.reload();
    await visitor.panel.waitFor();
    await visitor.theirs("An answer").waitFor();
    assert.deepEqual(await visitor.texts(), [hello, "An answer"]);
    assert.equal(await visitor.field.inputValue(), "I was about to sa");

    await visitor.tell("I was about to say yes");
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, "An answer", "I was about to say yes"]);
    await visitor.leave();
  });

  it("finds what came while the page was gone, as unread", async () => {
    const { visitor, ticket } = await env.meet();
    const page = visitor.page.url();
    await visitor.page.close();
    await env.company.say(ticket, "Are you still there?");
    const back = await visitor.anotherTab(page);
    await back.widget.locator(".badge", { hasText: "1" }).waitFor();
    await back.open();
    await back.theirs("Are you still there?").waitFor();
    await back.leave();
  });

  it("sends what could not be sent before it", async () => {
    const { visitor, ticket, hello } = await env.meet();
    const send = `${env.company.door}/messages`;
    await visitor.page.route(send, (route) => route.abort());
    await visitor.say("Said into the void");
    await visitor.own("Said into the void").and(visitor.widget.locator("[data-state=waiting]")).waitFor();
    await visitor.page.unroute(send);
    await visitor.page.reload();
    await visitor.own("Said into the void").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, "Said into the void"]);
    await visitor.leave();
  });
});

describe("a line that fails", () => {
  const env = webchatEnv();

  it("is noticed, and what is said meanwhile is sent once it is back", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await visitor.context.setOffline(true);
    await visitor.widget.getByText("You're offline.").waitFor();
    await visitor.say("Said offline");
    await visitor.own("Said offline").and(visitor.widget.locator("[data-state=waiting]")).waitFor();
    await env.company.say(ticket, "Said meanwhile");
    await visitor.context.setOffline(false);
    await visitor.own("Said offline").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    await visitor.theirs("Said meanwhile").waitFor();
    await visitor.widget.getByText("You're offline.").waitFor({ state: "hidden" });
    assert.deepEqual(await visitor.texts(), [hello, "Said meanwhile", "Said offline"]);
    await visitor.leave();
  });

  it("that loses the answer to a send sends again, and the message is there once", async () => {
    const { visitor, ticket, hello } = await env.meet();
    let lost = 0;
    await visitor.page.route(`${env.company.door}/messages`, async (route) => {
      if (route.request().method() !== "POST" || lost) return route.fallback();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    // Without the socket, which would bring the message as well.
    await visitor.page.evaluate(() => (window.WebSocket = class extends EventTarget { close() {} }));
    await visitor.tell("Once, please");
    assert.equal(lost, 1);
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, "Once, please"]);
    await visitor.leave();
  });

  it("that lets no socket pass is made up for by asking", async () => {
    const visitor = await env.visit();
    await visitor.page.addInitScript(() => {
      window.WebSocket = class extends EventTarget {
        constructor() {
          super();
          setTimeout(() => this.onclose && this.onclose({ code: 1006 }));
        }
        close() {}
      };
    });
    await visitor.page.reload();
    await visitor.open();
    await visitor.tell("Do sockets matter?");
    const ticket = await env.company.ticketOf("Do sockets matter?");
    await env.company.say(ticket, "Not at all");
    await visitor.theirs("Not at all").waitFor();
    await visitor.leave();
  });

  it("that is told to slow down does, and loses nothing", async () => {
    const { visitor, ticket, hello } = await env.meet();
    const { clock } = visitor.page;
    const now = () => visitor.page.evaluate(() => Date.now());
    const asked = [];
    await visitor.page.route(`${env.company.door}/messages`, async (route) => {
      if (route.request().method() !== "POST") return route.fallback();
      asked.push(await now());
      if (asked.length > 2) return route.fallback();
      const headers = { "Access-Control-Allow-Origin": env.shop.origin, "Access-Control-Expose-Headers": "Retry-After", "Retry-After": "5" };
      await route.fulfill({ status: 429, headers, json: { error: { code: "ERR_API_RATE_LIMITED", message: "slow" } } });
    });
    await clock.install();
    // The moment may have passed when the page hears of it. Even then its clock stands from the first try on.
    await eventually("the clock stands", async () => clock.pauseAt((await now()) + 1_000).then(() => true, () => false));
    await visitor.say("In due time");
    const busy = visitor.widget.getByText("Too many messages at once. Sending shortly…");
    await busy.waitFor();
    await eventually("it is sent for the third time", async () => {
      await clock.runFor(1_000);
      return asked.length > 2;
    });
    await clock.resume();
    await visitor.own("In due time").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    await busy.waitFor({ state: "hidden" });
    const [first, second, third] = asked;
    assert.ok(second - first >= 5_000 && third - second >= 5_000, `it waits as it is asked to: ${asked}`);
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, "In due time"]);
    await visitor.leave();
  });
});

describe("two tabs", () => {
  const env = webchatEnv();

  it("are in step", async () => {
    const { visitor: one, ticket, hello } = await env.meet();
    const two = await one.anotherTab();
    await two.open();
    await two.own(hello).waitFor();

    await one.tell("From the first");
    await two.own("From the first").waitFor();
    await two.tell("From the second");
    await one.own("From the second").waitFor();
    await env.company.say(ticket, "To both");
    for (const tab of [one, two]) {
      await tab.theirs("To both").waitFor();
      assert.deepEqual(await tab.texts(), [hello, "From the first", "From the second", "To both"]);
    }
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, "From the first", "From the second", "To both"]);
    await one.leave();
  });

  it("share what was read", async () => {
    const { visitor: one, ticket } = await env.meet();
    await one.field.press("Escape");
    const two = await one.anotherTab();
    await env.company.say(ticket, "For either");
    await two.widget.locator(".badge").waitFor();
    await one.widget.locator(".badge").waitFor();
    await two.open();
    await one.widget.locator(".badge").waitFor({ state: "hidden" });
    await one.leave();
  });

  it("open one session between them", async () => {
    const one = await env.visit();
    const two = await one.anotherTab();
    await one.open();
    await two.open();
    await Promise.all([one.say("I am one"), two.say("I am two")]);
    for (const tab of [one, two]) {
      for (const text of ["I am one", "I am two"]) {
        await tab.own(text).and(tab.widget.locator("[data-state=sent]")).waitFor();
      }
    }
    const open = await env.company.data("GET", "/tickets?status=open");
    const theirs = open.filter(({ lastMessage }) => /^I am /.test(lastMessage.body));
    assert.equal(theirs.length, 1);
    assert.equal((await env.company.messages(theirs[0])).length, 2);
    await one.leave();
  });

  it("end together and begin again together", async () => {
    const { visitor: one } = await env.meet();
    const two = await one.anotherTab();
    await two.open();
    await one.widget.getByRole("button", { name: "End the conversation" }).click();
    await one.widget.getByRole("button", { name: "End conversation" }).click();
    await two.widget.getByText("This conversation has ended.").waitFor();
    await two.widget.getByRole("button", { name: "Start a new conversation" }).click();
    await two.tell("Again");
    await one.own("Again").waitFor();
    await one.leave();
  });
});

describe("a service that is killed", () => {
  const env = {};

  withBrowser(env);
  before(async () => {
    const address = `127.0.0.1:${await freePort()}`;
    [env.service, env.shop] = await Promise.all([Service.start("serve", { address }), Shop.start()]);
    env.company = await env.service.company([env.shop.origin]);
  });

  after(async () => {
    await env.shop?.stop();
    await env.service?.remove();
  });

  it("while the visitor types takes nothing from them, and asks nothing of them", async () => {
    const visitor = await visit(env.browser, env.shop.page(env.company));
    await visitor.open();
    await visitor.tell("Before the fall");
    const ticket = await env.company.ticketOf("Before the fall");
    await env.company.say(ticket, "Answered before");
    await visitor.theirs("Answered before").waitFor();

    await visitor.field.pressSequentially("Said while it was aw");
    await env.service.kill();
    await visitor.field.pressSequentially("ay");
    await visitor.widget.getByText("Reconnecting…").waitFor();
    assert.equal(await visitor.field.inputValue(), "Said while it was away");
    await visitor.field.press("Enter");
    await visitor.own("Said while it was away").and(visitor.widget.locator("[data-state=waiting]")).waitFor();
    await visitor.field.pressSequentially("A draft, and");

    await env.service.again();
    await visitor.own("Said while it was away").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    await visitor.widget.getByText("Reconnecting…").waitFor({ state: "hidden" });
    await env.company.say(ticket, "Answered after");
    await visitor.theirs("Answered after").waitFor();
    assert.equal(await visitor.field.inputValue(), "A draft, and");
    await visitor.field.pressSequentially(" its end");
    await visitor.field.press("Enter");
    await visitor.own("A draft, and its end").and(visitor.widget.locator("[data-state=sent]")).waitFor();

    const said = ["Before the fall", "Answered before", "Said while it was away", "Answered after", "A draft, and its end"];
    assert.deepEqual(await visitor.texts(), said);
    const stored = await eventually("all of it is stored", async () => {
      const messages = await env.company.messages(ticket);
      return messages.length >= said.length && messages;
    });
    assert.deepEqual(stored.map(({ body }) => body), said);
    await visitor.leave();
  });

  it("between a message and its answer leaves the message there once", async () => {
    const visitor = await visit(env.browser, env.shop.page(env.company));
    await visitor.open();
    await visitor.tell("First");
    const ticket = await env.company.ticketOf("First");
    let held = 0;
    await visitor.page.route(`${env.company.door}/messages`, async (route) => {
      if (route.request().method() !== "POST" || held) return route.fallback();
      held += 1;
      // The service has it, and dies before the browser learns of it.
      await route.fetch();
      await env.service.kill();
      await route.abort();
    });
    await visitor.say("Second");
    await eventually("the service is gone", () => held && env.service.process.signalCode);
    await env.service.again();
    await visitor.own("Second").and(visitor.widget.locator("[data-state=sent]")).waitFor();
    assert.deepEqual(await visitor.texts(), ["First", "Second"]);
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), ["First", "Second"]);
    await visitor.leave();
  });
});
