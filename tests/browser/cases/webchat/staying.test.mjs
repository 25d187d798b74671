// One widget on a page, whatever the page does.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { visit } from "../../support/browser.mjs";
import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

const count = (visitor) => visitor.page.locator("hotline-webchat").count();

describe("a page that includes the line twice", () => {
  const env = webchatEnv();

  for (const lines of [2, 3]) {
    it(`has one widget of ${lines} lines`, async () => {
      const visitor = await visit(env.browser, env.shop.page(env.company, { lines }));
      await visitor.open();
      await visitor.tell(`One of ${lines}`);
      assert.equal(await count(visitor), 1);
      assert.equal(await visitor.page.evaluate(() => document.querySelectorAll("hotline-webchat").length), 1);
      await visitor.leave();
    });
  }
});

/** What single-page sites do to a page when they turn to another one. */
const TURNS = {
  "replaces its body, and runs the line anew": () => {
    const body = document.createElement("body");
    body.innerHTML = "<main><h1>Another page</h1></main>";
    const line = document.createElement("script");
    line.src = document.querySelector("script[src*='widget.js']").src;
    body.append(line);
    document.body.replaceWith(body);
  },
  "puts a cached copy of its body there": () => {
    const copy = document.body.cloneNode(true);
    document.body.replaceWith(copy);
  },
  "empties its body": () => {
    document.body.innerHTML = "<main><h1>Another page</h1></main>";
  },
  "is without a body for a moment": async () => {
    const { body } = document;
    body.remove();
    await new Promise((wait) => setTimeout(wait, 200));
    document.documentElement.append(document.createElement("body"));
  },
  "moves the element": () => {
    const place = document.body.appendChild(document.createElement("div"));
    place.append(document.querySelector("hotline-webchat"));
  },
};

describe("a page that turns to another one without loading it", () => {
  const env = webchatEnv();

  for (const [what, turn] of Object.entries(TURNS)) {
    it(`keeps the chat when it ${what}`, async () => {
      const { visitor, ticket, hello } = await env.meet();
      for (const round of [1, 2]) {
        await visitor.page.evaluate(turn);
        await eventually("one widget", async () => (await count(visitor)) === 1 && visitor.panel.isVisible());
        await env.company.say(ticket, `Still there, ${round}?`);
        await visitor.theirs(`Still there, ${round}?`).waitFor();
        await visitor.tell(`Yes, ${round}`);
      }
      assert.deepEqual(await visitor.texts(), [hello, "Still there, 1?", "Yes, 1", "Still there, 2?", "Yes, 2"]);
      assert.equal(await count(visitor), 1);
      await visitor.leave();
    });
  }

  it("is left alone by a widget that it takes away each time", async () => {
    const visitor = await env.visit();
    await visitor.launcher.waitFor();
    const times = await visitor.page.evaluate(async () => {
      // The widget counts how often it was taken away within ten seconds, which a slow page would outlast.
      const now = Date.now();
      Date.now = () => now;
      for (let times = 0; times < 40; times++) {
        const widget = document.querySelector("hotline-webchat");
        if (!widget) return times;
        widget.remove();
        await new Promise((wait) => setTimeout(wait, 20));
      }
      return 40;
    });
    assert.ok(times > 1 && times < 40, `${times}`);
    await visitor.leave();
  });
});
