// Conversations of many messages, and messages of many characters.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { isProofs, measures } from "../../support/extent.mjs";
import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

/** Messages of a conversation that is read through: more than are drawn at once. */
const MANY = isProofs ? 1_000 : 200;

/** What the widget's page may wait for its turn, and what a conversation may take to be there once the chat is opened. */
const GAP_MAX_MS = 50;
const OPEN_MAX_MS = 100;

/** What the service takes of one text. */
const TEXT_BYTES_MAX = 65_536;

const text = (number) => `Answer ${number}`;

/** Says so many things, in their order. */
async function answer(company, ticket, count, begin = 0) {
  for (let at = begin; at < begin + count; at++) await company.say(ticket, text(at));
}

describe("a long conversation", () => {
  const env = webchatEnv();

  it("is drawn from its end, and read through to its beginning and back", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await answer(env.company, ticket, MANY);
    await visitor.page.reload();
    await visitor.theirs(text(MANY - 1)).waitFor();
    const drawn = () => visitor.widget.locator(".message:not(.greeting):not(.typing)").count();
    await eventually("the socket has brought all of it", () => visitor.widget.locator("[aria-live=polite]").count());
    assert.ok((await drawn()) < 60, "a few screens are drawn");
    assert.equal(await visitor.widget.locator(".greeting").count(), 0, "what was said first is not there yet");

    const seen = new Set();
    const collect = async () => {
      for (const said of await visitor.texts()) seen.add(said);
    };
    await collect();
    // By the button, as somebody does who sees no scroll bar.
    await visitor.widget.getByRole("button", { name: "Show earlier messages" }).evaluate((button) => button.click());
    await eventually("its beginning", async () => {
      await visitor.log.evaluate((log) => log.scrollTo({ top: 0 }));
      await collect();
      return visitor.widget.locator(".greeting").count();
    });
    await visitor.own(hello).waitFor();
    // The last of them may have been drawn after those before were collected.
    await collect();
    assert.ok((await drawn()) <= 130, "what is far away goes");
    const missing = () => [...Array(MANY).keys()].filter((number) => !seen.has(text(number)));
    assert.deepEqual(missing(), [], "nothing was left out on the way");

    // What comes meanwhile neither moves what is read nor is missed.
    await env.company.say(ticket, "One more");
    await visitor.widget.getByRole("button", { name: "New messages" }).waitFor();
    await visitor.own(hello).waitFor();
    seen.clear();
    await collect();
    await eventually("its end", async () => {
      await visitor.log.evaluate((log) => log.scrollTo({ top: log.scrollHeight }));
      await collect();
      return visitor.theirs("One more").isVisible();
    });
    // The last of them may have been drawn since.
    await collect();
    assert.deepEqual(missing(), [], "nothing was left out on the way back");
    await visitor.leave();
  });

  it("goes to its end by the button, from anywhere, and when the visitor writes", async () => {
    const { visitor, ticket } = await env.meet();
    await answer(env.company, ticket, 140);
    await visitor.page.reload();
    await visitor.theirs(text(139)).waitFor();
    const up = () =>
      eventually("its beginning", async () => {
        await visitor.log.evaluate((log) => log.scrollTo({ top: 0 }));
        return visitor.widget.locator(".greeting").count();
      });
    await up();
    await env.company.say(ticket, "Are you there?");
    await visitor.widget.getByRole("button", { name: "New messages" }).click();
    await visitor.theirs("Are you there?").waitFor();
    await up();
    await visitor.tell("Yes");
    const last = (await visitor.texts()).at(-1);
    assert.equal(last, "Yes");
    await visitor.leave();
  });

  it("stays at its end while what surrounds it changes its height, until its reader moves up", async () => {
    const { visitor, ticket } = await env.meet();
    await answer(env.company, ticket, 30);
    await visitor.theirs(text(29)).waitFor();
    /** How much of it is below what is in sight, once a scroll was heard and what follows from it is done. */
    const below = () =>
      visitor.log.evaluate(async (log) => {
        for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
        return log.scrollHeight - log.scrollTop - log.clientHeight;
      });
    const height = () => visitor.log.evaluate((log) => log.clientHeight);
    const draft = "One line\n".repeat(8);
    assert.ok((await below()) <= 1);
    const whole = await height();

    // A longer draft takes of its box when it was scrolled to what came, before the widget hears of that scroll.
    await visitor.log.evaluate((log, draft) => {
      const root = log.getRootNode();
      const write = () => {
        const field = root.querySelector("textarea");
        field.value = draft;
        field.dispatchEvent(new Event("input"));
      };
      root.addEventListener("scroll", write, { capture: true, once: true });
      // Not every browser keeps what is read where it is.
      log.style.overflowAnchor = "none";
    }, draft);
    await env.company.say(ticket, "Take your time");
    await visitor.theirs("Take your time").waitFor();
    await eventually("the scroll is heard", async () => (await visitor.field.inputValue()) === draft);
    assert.ok((await below()) <= 1, "the newest is in sight");
    assert.ok(whole - (await height()) > 60, "the draft takes more of it than is near to its end");
    await visitor.field.press("End");
    await visitor.field.press("x");
    assert.ok((await below()) <= 1, "and stays there while more is written");
    await visitor.field.fill("");
    assert.ok((await below()) <= 1, "and when nothing is");
    assert.equal(await height(), whole);

    // Who moves up has left the end, also at the same time as something else changes.
    await visitor.log.evaluate((log, draft) => {
      log.scrollTop -= 200;
      const field = log.getRootNode().querySelector("textarea");
      field.value = draft;
      field.dispatchEvent(new Event("input"));
    }, draft);
    assert.ok((await below()) >= 200, "what is read stays");
    await env.company.say(ticket, "Are you there?");
    await visitor.widget.getByRole("button", { name: "New messages" }).click();
    await eventually("its end", async () => (await below()) <= 1);
    await visitor.leave();
  });

  it("is there at once, and never holds its page up", measures, async () => {
    const { visitor, ticket } = await env.meet();
    await answer(env.company, ticket, 1_000);
    await visitor.page.close();
    const page = await visitor.context.newPage();
    await page.addInitScript(() => {
      // The chat is closed when the page is loaded.
      sessionStorage.clear();
      window.gaps = [];
      const { port1, port2 } = new MessageChannel();
      let last = performance.now();
      port1.onmessage = () => {
        const now = performance.now();
        window.gaps.push(now - last);
        last = now;
        port2.postMessage(0);
      };
      port2.postMessage(0);
    });
    await page.goto(visitor.page.url());
    await page.locator("hotline-webchat .badge").waitFor();
    const took = await page.evaluate(async (newest) => {
      const root = document.querySelector("hotline-webchat").shadowRoot;
      const begun = performance.now();
      window.gaps.length = 0;
      root.querySelector(".launcher").click();
      while (!root.querySelector(".list").textContent.includes(newest)) await new Promise(requestAnimationFrame);
      return performance.now() - begun;
    }, text(999));
    assert.ok(took <= OPEN_MAX_MS, `${took} ms`);
    // A second of its life with the chat open, and the same conversation brought by a socket that finds nothing kept.
    await page.evaluate(() => {
      for (const key of Object.keys(localStorage)) if (key.endsWith(":messages")) localStorage.removeItem(key);
    });
    await page.reload();
    await page.locator("hotline-webchat .launcher").click();
    await page.evaluate(() => void (window.gaps.length = 0));
    await page.locator("hotline-webchat .list", { hasText: text(999) }).waitFor();
    await page.waitForTimeout(1_000);
    const worst = await page.evaluate(() => Math.max(...window.gaps));
    assert.ok(worst <= GAP_MAX_MS, `the page waited ${worst} ms`);
    await visitor.leave();
  });
});

describe("an open chat into which many messages come", () => {
  const env = webchatEnv();

  it("says once a second at most what was seen, and stays connected", async () => {
    const { visitor, ticket } = await env.meet();
    const seen = [];
    let opened = 0;
    await visitor.page.routeWebSocket(/\/socket$/, (socket) => {
      opened += 1;
      const server = socket.connectToServer();
      socket.onMessage((message) => {
        if (JSON.parse(message).type === "seen") seen.push(Date.now());
        server.send(message);
      });
    });
    await visitor.page.reload();
    await visitor.panel.waitFor();
    await eventually("it is connected", () => opened);
    const begun = Date.now();
    // More than the frames a socket may send in ten seconds.
    await answer(env.company, ticket, 90);
    await eventually("the desk knows that all were seen", async () => {
      const messages = await env.company.data("GET", `/tickets/${ticket.id}/messages?order=desc&perPage=100`);
      return messages.filter(({ direction }) => direction === "outbound").every(({ status }) => status === "read");
    });
    const seconds = (Date.now() - begun) / 1000;
    assert.ok(seen.length <= seconds + 2, `${seen.length} frames in ${seconds} s`);
    assert.equal(opened, 1, "the service has not cut it off");
    await visitor.leave();
  });
});

describe("a socket that is away while the visitor writes", () => {
  const env = webchatEnv();

  it("brings what was said before, although something newer is there", async () => {
    const { visitor, ticket, hello } = await env.meet();
    let passes = true;
    const open = [];
    await visitor.page.routeWebSocket(/\/socket$/, (socket) => {
      if (!passes) return socket.close({ code: 1011 });
      const server = socket.connectToServer();
      open.push(() => {
        socket.close({ code: 1012 });
        server.close();
      });
    });
    // The door answers calls all the while, but tells nothing that is new.
    await visitor.page.route(/\/(session|messages\?after=\d+|messages)$/, (route) =>
      route.request().method() === "GET" && !passes ? route.abort() : route.fallback(),
    );
    await visitor.page.reload();
    await visitor.own(hello).waitFor();
    await eventually("it is connected", () => open.length);
    await env.company.say(ticket, "Before");
    await visitor.theirs("Before").waitFor();
    passes = false;
    open.forEach((close) => close());
    await env.company.say(ticket, "In between");
    await visitor.tell("Newer");
    passes = true;
    await visitor.theirs("In between").waitFor();
    assert.deepEqual(await visitor.texts(), [hello, "Before", "In between", "Newer"]);
    await visitor.leave();
  });
});

describe("a text that is too long", () => {
  const env = webchatEnv("--pre-chat-field", "name");

  it("is never cut: what the service takes is sent whole, what it does not take stays to be shortened", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const { widget } = visitor;
    await widget.getByLabel("Name").fill("M".repeat(300));
    await widget.getByRole("button", { name: "Start the chat" }).click();
    await widget.getByText("This is too long. Please shorten it.").waitFor();
    assert.equal((await widget.getByLabel("Name").inputValue()).length, 300);
    await widget.getByLabel("Name").fill("Maria");
    await widget.getByRole("button", { name: "Start the chat" }).click();
    await visitor.field.waitFor();

    const much = "é".repeat(TEXT_BYTES_MAX / 2 + 1);
    await visitor.say(much);
    await widget.getByText("This is too long. Please shorten it.").waitFor();
    assert.equal(await visitor.field.inputValue(), much);
    assert.equal(await visitor.field.getAttribute("aria-invalid"), "true");
    assert.deepEqual(await visitor.texts(), []);
    const all = "é".repeat(TEXT_BYTES_MAX / 2);
    await visitor.tell(all);
    const ticket = await env.company.ticketOf(all);
    assert.deepEqual((await env.company.messages(ticket)).map(({ body }) => body), [all]);
    assert.equal(await widget.locator(".composer .error").textContent(), "");
    await visitor.leave();
  });
});

describe("an empty file", () => {
  const env = webchatEnv();

  it("is named as that, and can be taken away alone", async () => {
    const { visitor } = await env.meet();
    await visitor.widget.locator("input[type=file]").setInputFiles({ name: "nothing.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) });
    await visitor.widget.getByText("This file is empty.").waitFor();
    assert.equal(await visitor.widget.getByRole("button", { name: "Try again" }).count(), 0);
    await visitor.widget.getByRole("button", { name: "Delete" }).click();
    await visitor.widget.getByText("This file is empty.").waitFor({ state: "detached" });
    await visitor.leave();
  });
});
