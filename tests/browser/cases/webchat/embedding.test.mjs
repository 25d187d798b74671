// The widget on other people's pages.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { webchatEnv } from "../../support/webchat.mjs";
import { strictPolicy } from "../../support/shop.mjs";
import { eventually } from "../../support/wait.mjs";

const script = fileURLToPath(new URL("../../../../src/visitors/assets/widget/widget.js", import.meta.url));

/** What a page has to load for it, compressed. */
const BYTES_MAX = 30 * 1024;

describe("the script", () => {
  const env = webchatEnv();

  it("is small, and is served compressed", async () => {
    assert.ok(gzipSync(await readFile(script), { level: 9 }).length <= BYTES_MAX);
    const answer = await fetch(`${env.company.door}/widget.js`, { headers: { "Accept-Encoding": "gzip" } });
    assert.equal(answer.headers.get("Content-Encoding"), "gzip");
    assert.equal(await answer.text(), await readFile(script, "utf8"));
  });

  it("asks nobody but its own door", async () => {
    const visitor = await env.visit();
    const asked = new Set();
    visitor.page.on("request", (request) => asked.add(new URL(request.url()).origin));
    visitor.page.on("websocket", (socket) => asked.add(new URL(socket.url()).origin));
    await visitor.page.reload();
    await visitor.open();
    await visitor.tell("Who hears this?");
    const { origin, host } = new URL(env.service.url);
    assert.deepEqual([...asked].sort(), [env.shop.origin, origin, `ws://${host}`].sort());
    await visitor.leave();
  });

  it("puts one widget on a page, however often it is there", async () => {
    const visitor = await env.visit();
    await visitor.launcher.waitFor();
    const loaded = visitor.page.waitForResponse(/widget\.js\?again/);
    await visitor.page.evaluate(() => {
      const again = document.createElement("script");
      again.src = `${document.querySelector("script").src}?again`;
      document.body.append(again);
    });
    await loaded;
    await visitor.open();
    await visitor.tell("One of me");
    assert.equal(await visitor.page.locator("hotline-webchat").count(), 1);
    await visitor.leave();
  });

  it("leaves the page's styles outside, and its own inside", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const look = (element) => {
      const { color, letterSpacing, textTransform, textAlign, borderTopStyle, float } = getComputedStyle(element);
      return { color, letterSpacing, textTransform, textAlign, borderTopStyle, float };
    };
    const heading = await visitor.widget.locator(".greeting p").evaluate(look);
    assert.deepEqual(heading, {
      color: "rgb(26, 29, 33)",
      letterSpacing: "normal",
      textTransform: "none",
      textAlign: "start",
      borderTopStyle: "none",
      float: "none",
    });
    const outside = await visitor.page.locator("main h1").evaluate(look);
    assert.equal(outside.color, "rgb(220, 20, 60)");
    await visitor.leave();
  });
});

describe("a page with a strict Content-Security-Policy", () => {
  const env = webchatEnv();

  it("shows the widget, which breaks none of it", async () => {
    const visitor = await env.visit({}, { policy: strictPolicy(env.service) });
    const broken = [];
    await visitor.page.exposeFunction("noteBroken", (what) => broken.push(what));
    await visitor.page.addInitScript(() => {
      addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) =>
        window.noteBroken(`${effectiveDirective} ${blockedURI}`),
      );
    });
    await visitor.page.reload();
    await visitor.open();
    await visitor.tell("Under guard");
    const ticket = await env.company.ticketOf("Under guard");
    await env.company.say(ticket, "Pushed under guard");
    await visitor.theirs("Pushed under guard").waitFor();
    await visitor.stillness();
    const { width, height } = await visitor.panel.boundingBox();
    assert.deepEqual([Math.round(width), Math.round(height)], [392, 680]);
    assert.notEqual(await visitor.launcher.evaluate((it) => getComputedStyle(it).backgroundImage), "none");
    assert.deepEqual(broken, []);
    await visitor.screenshot("strict-policy");
    await visitor.leave();
  });
});

describe("a website that may not show the webchat", () => {
  const env = webchatEnv();

  it("gets no widget, no session and no socket", async () => {
    const visitor = await env.visit({}, { origin: env.shop.otherOrigin });
    const said = visitor.page.waitForEvent("console", { predicate: (line) => line.text().startsWith("Hotline webchat:") });
    await visitor.page.reload();
    await said;
    assert.equal(await visitor.widget.count(), 0);

    const opened = await visitor.page.evaluate(
      (door) => fetch(`${door}/sessions`, { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } }).then(() => "open", () => "refused"),
      env.company.door,
    );
    assert.equal(opened, "refused");
    const direct = await fetch(`${env.company.door}/sessions`, {
      method: "POST",
      body: "{}",
      headers: { "Content-Type": "application/json", Origin: env.shop.otherOrigin },
    });
    assert.equal(direct.status, 403);
    assert.equal((await direct.json()).error.code, "ERR_API_FORBIDDEN_ORIGIN");

    // Not even with a token from a website that may.
    const guest = await env.meet();
    const name = `hotline:${env.company.channel.publicKey}:session`;
    const { token } = await guest.visitor.page.evaluate((name) => JSON.parse(localStorage.getItem(name)), name);
    const socket = await visitor.page.evaluate(
      ([door, token]) =>
        new Promise((resolve) => {
          const socket = new WebSocket(`${door.replace("http", "ws")}/socket`, ["hotline.v1", token]);
          socket.onopen = () => resolve("open");
          socket.onclose = () => resolve("refused");
        }),
      [env.company.door, token],
    );
    assert.equal(socket, "refused");
    await guest.visitor.leave();
    await visitor.leave();
  });
});

describe("a website from which the webchat is withdrawn", () => {
  const env = webchatEnv();

  it("does not show it as the browser remembers it", async () => {
    const { visitor } = await env.meet();
    await env.service.cli("channel", "update", String(env.company.channel.id), "--allow-origin", "https://other.example");
    await eventually("the website is refused", async () => {
      const answer = await fetch(`${env.company.door}/config`, { headers: { Origin: env.shop.origin } });
      return answer.status === 403;
    });
    // Without the cache of the browser, which may have an answer of a moment ago.
    await visitor.page.route(`${env.company.door}/config`, (route) => route.fallback());
    const said = visitor.page.waitForEvent("console", { predicate: (line) => line.text().startsWith("Hotline webchat:") });
    await visitor.page.reload();
    assert.match((await said).text(), /not one of the channel's allowed websites/);
    assert.equal(await visitor.widget.count(), 0);
    await visitor.leave();
  });
});
