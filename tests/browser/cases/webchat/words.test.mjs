// What people wrote, in the direction in which it is written; and what is said of who is there.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { signIn } from "../../support/panel.mjs";
import { webchatEnv } from "../../support/webchat.mjs";
import { eventually } from "../../support/wait.mjs";

const ARABIC = "مرحبا، طلبي رقم 123 لم يصل.";
const HEBREW = "שלום, מה שלומך?";

const direction = (locator) =>
  locator.evaluate((element) => {
    const lines = document.createRange();
    lines.selectNodeContents(element);
    const { direction, textAlign } = getComputedStyle(element);
    return { direction, textAlign };
  });

const isRightToLeft = async (locator, what) => assert.equal((await direction(locator)).direction, "rtl", what);

describe("somebody's words", () => {
  const env = webchatEnv("--title", HEBREW, "--greeting", ARABIC);

  it("stand in their own direction, wherever they are", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const { widget } = visitor;
    await isRightToLeft(widget.locator("h2").first(), "the title");
    await isRightToLeft(widget.locator(".greeting p"), "the greeting");
    await visitor.field.fill(ARABIC);
    await isRightToLeft(visitor.field, "what is being written");
    await visitor.field.fill("Hello");
    assert.equal((await direction(visitor.field)).direction, "ltr");
    await visitor.tell(ARABIC);
    await isRightToLeft(visitor.own(ARABIC).locator("p"), "what the visitor said");
    const ticket = await env.company.ticketOf(ARABIC);
    const agent = await env.company.data("POST", "/users", { name: HEBREW, email: `rtl-${Date.now()}@acme.example` });
    await env.company.data("POST", "/messages", { ticketId: ticket.id, type: "text", body: HEBREW, userId: agent.id });
    await isRightToLeft(visitor.theirs(HEBREW).locator("p"), "what an agent said");
    await isRightToLeft(visitor.theirs(HEBREW).locator(".name"), "the agent's name");
    await env.company.interactive(ticket, {
      type: "button",
      header: { type: "text", text: ARABIC },
      body: { text: HEBREW },
      footer: { text: ARABIC },
      action: { buttons: [{ type: "reply", reply: { id: "a", title: "نعم" } }] },
    });
    const last = widget.locator(".interactive").last();
    for (const part of [".head", "p:not(.foot)", ".foot", ".option span"]) await isRightToLeft(last.locator(part).first(), part);
    await env.company.interactive(ticket, {
      type: "list",
      body: { text: HEBREW },
      action: { button: "اختر", sections: [{ title: HEBREW, rows: [{ id: "r", title: ARABIC.slice(0, 20), description: HEBREW }] }] },
    });
    await widget.locator(".opener").last().click();
    for (const part of [".sheet h2", ".sheet h3", ".sheet .option span", ".sheet .option small"]) await isRightToLeft(widget.locator(part).first(), part);
    await visitor.page.keyboard.press("Escape");

    await visitor.page.keyboard.press("Escape");
    await env.company.data("POST", "/messages", { ticketId: ticket.id, type: "text", body: ARABIC, userId: agent.id });
    await widget.locator(".teaser", { hasText: ARABIC }).waitFor();
    for (const part of [".teaser strong", ".teaser .words span"]) await isRightToLeft(widget.locator(part), part);
    await visitor.leave();
  });

  it("do not turn the widget round on a page that is written from right to left", async () => {
    const visitor = await env.visit();
    await visitor.launcher.waitFor();
    await visitor.page.evaluate(() => (document.documentElement.dir = "rtl"));
    await visitor.open();
    const send = await visitor.widget.getByRole("button", { name: "Send" }).boundingBox();
    const field = await visitor.field.boundingBox();
    assert.ok(send.x > field.x);
    await visitor.leave();
  });
});

describe("who is there", () => {
  const env = webchatEnv();

  it("is said before the first word, and only when it is true", async () => {
    const visitor = await env.visit();
    await visitor.open();
    const said = (text) => visitor.widget.locator(".status", { hasText: text }).waitFor();
    await env.company.person("Agent", { name: "Idle" });
    await visitor.page.reload();
    await said("Leave us a message");
    await visitor.tell("Is anybody there?");
    await said("Leave us a message");

    const person = await env.company.person("Agent", { name: "Ana" });
    const { cookie } = await signIn(env.service, person);
    const used = await fetch(`${env.service.url}/panel/api/v1/tags`, { headers: { Cookie: `${cookie.name}=${cookie.value}` } });
    assert.equal(used.status, 200);
    const other = await env.visit();
    await other.open();
    await other.widget.locator(".status", { hasText: "Online now" }).waitFor();
    await other.leave();
    await visitor.page.reload();
    await said("Online now");
    await visitor.leave();
  });

  it("is nobody while the service does not say", async () => {
    const visitor = await env.visit();
    await visitor.launcher.waitFor();
    await visitor.page.route((url) => url.pathname.endsWith("/config"), (route) => route.abort());
    await visitor.page.reload();
    await visitor.open();
    await eventually("nobody is promised", async () => (await visitor.widget.locator(".status").textContent()) === "Leave us a message");
    await visitor.leave();
  });
});
