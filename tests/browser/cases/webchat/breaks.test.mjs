// What the widget does when its socket is closed: it comes back, and not with everybody else at once.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { backoff } from "../../../../src/visitors/assets/widget/source/backoff.js";
import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

/** What a service that moves says to every socket, and what one says to a page that is no longer admitted. */
const MOVED = 1012;
const NOT_ADMITTED = 4403;

describe("the pause before another try", () => {
  it("doubles to half a minute, and to less where it is told so", () => {
    for (const [attempts, most] of [[0, 500], [1, 1_000], [3, 4_000], [5, 16_000], [6, 30_000], [1_000, 30_000]]) {
      for (const pause of Array.from({ length: 200 }, () => backoff(attempts))) {
        assert.ok(pause >= most / 2 && pause <= most, `attempt ${attempts}: ${pause}`);
      }
    }
    for (const pause of Array.from({ length: 200 }, () => backoff(20, 5_000))) {
      assert.ok(pause >= 2_500 && pause <= 5_000, `${pause}`);
    }
  });

  it("is another one in every browser, however long it is", () => {
    for (const pauses of [() => backoff(0), () => backoff(1_000), () => backoff(1_000, 5_000)]) {
      const drawn = Array.from({ length: 200 }, pauses);
      const [least, most] = [Math.min(...drawn), Math.max(...drawn)];
      assert.ok(new Set(drawn).size > 100, "many browsers would come at once");
      assert.ok(most - least > most / 4, `all of them come between ${least} and ${most}`);
    }
  });
});

describe("a service that moves", () => {
  const env = webchatEnv();

  it("closes with 1012, and the conversation goes on by itself", async () => {
    const { visitor, ticket, hello } = await env.meet();
    let opened = 0;
    // From here on each socket passes this test on its way.
    await visitor.page.routeWebSocket(/\/socket$/, (socket) => {
      opened += 1;
      const server = socket.connectToServer();
      if (opened > 2) return;
      server.onMessage((message) => {
        socket.send(message);
        // As a service does it that gives the conversation away: in the middle, with no further word.
        if (JSON.parse(message).type !== "caughtUp") return;
        socket.close({ code: MOVED, reason: "moved" });
        server.close();
      });
    });
    await visitor.page.reload();
    await visitor.panel.waitFor();
    await env.company.say(ticket, "Said while it moved");
    await visitor.theirs("Said while it moved").waitFor();
    await visitor.tell("Nothing was lost");
    await eventually("the socket came back twice", async () => opened > 2);
    assert.deepEqual(await visitor.texts(), [hello, "Said while it moved", "Nothing was lost"]);
    const stored = await env.company.messages(ticket);
    assert.deepEqual(stored.map(({ body }) => body), [hello, "Said while it moved", "Nothing was lost"]);
    await visitor.leave();
  });
});

describe("a page that is no longer admitted", () => {
  const env = webchatEnv();

  it("is told by 4403, shows nothing, and does not come back", async () => {
    const { visitor } = await env.meet();
    let opened = 0;
    await visitor.page.routeWebSocket(/\/socket$/, (socket) => {
      opened += 1;
      const server = socket.connectToServer();
      server.onMessage((message) => {
        socket.send(message);
        if (JSON.parse(message).type !== "caughtUp") return;
        socket.close({ code: NOT_ADMITTED, reason: "no longer admitted" });
        server.close();
      });
    });
    await visitor.page.reload();
    await eventually("the socket was opened", async () => opened === 1);
    await visitor.launcher.waitFor({ state: "hidden" });
    await visitor.panel.waitFor({ state: "hidden" });
    await visitor.page.evaluate(() => ["focus", "online"].forEach((name) => dispatchEvent(new Event(name))));
    // Longer than the first pause before another try.
    await visitor.page.evaluate(() => new Promise((done) => setTimeout(done, 1_500)));
    assert.equal(opened, 1);
    await visitor.leave();
  });
});
