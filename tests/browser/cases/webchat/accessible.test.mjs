// For everybody: axe-core, the keyboard, the sizes of what is pressed; and pictures of it all for people to look at.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { checkWith, TARGET_PX_MIN } from "../../support/accessible.mjs";
import { DESKTOP, PHONE } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { webchatEnv } from "../../support/webchat.mjs";
import { INVOICE, MUG } from "../../support/shop.mjs";
import { eventually } from "../../support/wait.mjs";

async function check(visitor, what) {
  // Half-way through a movement colours are mixed.
  await visitor.stillness();
  await checkWith(visitor.page, { include: ["hotline-webchat"] }, what);
}

/** What can be pressed, and is missed too easily. */
const tooSmall = (visitor) =>
  visitor.widget.locator("button:visible, textarea:visible, .option:visible, .file:visible, .picture:visible").evaluateAll((all, min) => {
    const sizes = all.map((it) => [it.className || it.tagName, it.getBoundingClientRect()]);
    return sizes.filter(([, { width, height }]) => width < min || height < min).map(([name]) => name);
  }, TARGET_PX_MIN);

const reply = (id, title) => ({ type: "reply", reply: { id, title } });

const card = (env, name) => ({
  header: { type: "image", image: { link: `${env.shop.origin}/${name}.png` } },
  body: { text: `The ${name} mug` },
  action: { buttons: [{ type: "quick_reply", quick_reply: { id: name, title: `Take ${name}` } }] },
});

/** A conversation with one of each. */
async function everything(env, visitor, ticket) {
  const text = (body) => ({ body: { text: body } });
  await env.company.say(ticket, "Hello Maria! Your order is on its way: https://acme.example/orders/4711");
  for (const interactive of [
    { type: "button", ...text("When shall we deliver?"), action: { buttons: [reply("a", "Tomorrow"), reply("b", "On Saturday")] } },
    { type: "list", ...text("Which mug is it about?"), action: { button: "Choose a mug", sections: [{ title: "Large", rows: [{ id: "o", title: "Ocean", description: "400 ml" }] }, { title: "Small", rows: [{ id: "n", title: "Night" }] }] } },
    { type: "cta_url", ...text("Follow it here."), action: { name: "cta_url", parameters: { display_text: "Track it", url: "https://acme.example/track" } } },
    { type: "location_request_message", ...text("Where shall it go?"), action: { name: "send_location" } },
    { type: "carousel", ...text("New this week:"), action: { cards: ["ocean", "desert", "night"].map((name) => card(env, name)) } },
  ]) {
    await env.company.interactive(ticket, interactive);
  }
  await env.company.media(ticket, MUG);
  await env.company.media(ticket, INVOICE, "Your invoice");
  await visitor.option("Tomorrow").click();
  await visitor.tell("Thank you! See you at www.acme.example");
}

for (const [device, size, themes] of [["desktop", DESKTOP, ["light", "dark"]], ["phone", PHONE, ["dark", "light"]]]) {
  for (const colorScheme of chosen(themes)) {
    // A strong colour, and one on which white cannot be read.
    const color = colorScheme === "light" ? "#2563eb" : "#facc15";
    describe(`the widget on a ${device}, ${colorScheme}`, () => {
      const env = webchatEnv("--color", color);
      const form = webchatEnv("--color", color, "--pre-chat-field", "name", "--pre-chat-field", "email");

      it("is accessible in every state", async () => {
        const name = `${device}-${colorScheme}`;
        const visitor = await env.visit({ ...size, colorScheme });
        await visitor.launcher.waitFor();
        await check(visitor, "closed");
        await visitor.screenshot(`${name}-closed`);

        await visitor.open();
        await check(visitor, "open");
        await visitor.screenshot(`${name}-open`);

        await visitor.tell(`I am on a ${name}`);
        const ticket = await env.company.ticketOf(`I am on a ${name}`);
        await everything(env, visitor, ticket);
        await check(visitor, "in conversation");
        assert.deepEqual(await tooSmall(visitor), []);
        const beyond = await visitor.log.evaluate((log) => log.scrollWidth - log.clientWidth);
        assert.equal(beyond, 0, "nothing reaches over the side");
        await visitor.screenshot(`${name}-conversation`);
        await visitor.widget.getByText("When shall we deliver?").scrollIntoViewIfNeeded();
        await visitor.screenshot(`${name}-interactive`);
        await visitor.widget.locator(".carousel").scrollIntoViewIfNeeded();
        await visitor.screenshot(`${name}-carousel`);

        await visitor.widget.getByRole("button", { name: "Choose a mug" }).click();
        await check(visitor, "with a list");
        await visitor.screenshot(`${name}-list`);
        await visitor.page.keyboard.press("Escape");

        await eventually("an agent is seen typing", async () => {
          await env.company.typing(ticket, true);
          return visitor.widget.locator(".typing").isVisible();
        });
        await check(visitor, "while an agent types");
        await visitor.context.setOffline(true);
        await visitor.widget.getByText("You're offline.").waitFor();
        await check(visitor, "offline");
        await visitor.screenshot(`${name}-offline`);
        await visitor.context.setOffline(false);

        await visitor.page.keyboard.press("Escape");
        await env.company.say(ticket, "Are you still there?");
        await visitor.widget.locator(".teaser").waitFor();
        await check(visitor, "closed with unread messages");
        await visitor.screenshot(`${name}-unread`);

        await visitor.open();
        await visitor.widget.getByRole("button", { name: "End the conversation" }).click();
        await check(visitor, "when asked to end");
        await visitor.widget.getByRole("button", { name: "End conversation" }).click();
        await visitor.widget.getByText("This conversation has ended.").waitFor();
        await check(visitor, "ended");
        await visitor.screenshot(`${name}-ended`);
        await visitor.leave();
      });

      it("asks accessibly who is there", async () => {
        const visitor = await form.visit({ ...size, colorScheme });
        await visitor.open();
        await check(visitor, "the form");
        await visitor.widget.getByRole("button", { name: "Start the chat" }).click();
        await check(visitor, "the form with errors");
        await visitor.screenshot(`${device}-${colorScheme}-form`);
        await visitor.leave();
      });
    });
  }
}

describe("the widget by keyboard", () => {
  const env = webchatEnv();

  it("is reached, used and left without a mouse", async () => {
    const visitor = await env.visit();
    await visitor.launcher.waitFor();
    const focused = () => visitor.widget.evaluate((host) => host.shadowRoot.activeElement?.className || host.shadowRoot.activeElement?.tagName);
    const { keyboard } = visitor.page;
    await visitor.page.locator("main a").focus();
    await keyboard.press("Tab");
    assert.equal(await focused(), "launcher");
    assert.equal(await visitor.launcher.getAttribute("aria-expanded"), "false");
    await keyboard.press("Enter");
    await visitor.panel.waitFor();
    assert.equal(await visitor.launcher.getAttribute("aria-expanded"), "true");
    assert.equal(await focused(), "TEXTAREA");
    await keyboard.type("Without");
    await keyboard.press("Shift+Enter");
    await keyboard.type("a mouse");
    await keyboard.press("Enter");
    await visitor.widget.locator(".own[data-state=sent]").waitFor();
    assert.deepEqual(await visitor.texts(), ["Without\na mouse"]);
    assert.equal(await focused(), "TEXTAREA");
    await keyboard.press("Shift+Tab");
    assert.equal(await focused(), "plain attach");
    await keyboard.press("Shift+Tab");
    assert.equal(await focused(), "log");
    await keyboard.press("Escape");
    await visitor.panel.waitFor({ state: "hidden" });
    assert.equal(await focused(), "launcher");
    await visitor.leave();
  });

  it("says what comes, once, and not what was there", async () => {
    const { visitor, ticket, hello } = await env.meet();
    await visitor.page.reload();
    await visitor.own(hello).waitFor();
    await visitor.widget.locator(".log[aria-live=polite]").waitFor();
    await visitor.log.evaluate((log) => {
      window.added = [];
      new MutationObserver((changes) => {
        for (const { addedNodes } of changes) for (const node of addedNodes) window.added.push(node.textContent);
      }).observe(log, { childList: true, subtree: true });
    });
    await env.company.say(ticket, "Read this out");
    await visitor.theirs("Read this out").waitFor();
    await env.company.data("POST", `/tickets/${ticket.id}/read`);
    await visitor.own(hello).and(visitor.widget.locator("[data-state=read]")).waitFor();
    const added = await visitor.page.evaluate(() => window.added.filter((text) => text.trim()));
    assert.equal(added.length, 1);
    assert.match(added[0], /Support, .*: Read this out/);
    await visitor.leave();
  });

  it("does not move for who asked for less motion", async () => {
    const visitor = await env.visit({ reducedMotion: "reduce" });
    await visitor.open();
    const moving = await visitor.panel.evaluate((panel) => getComputedStyle(panel).animationName);
    assert.equal(moving, "none");
    await visitor.leave();
  });
});

describe("the page behind the chat", () => {
  const env = webchatEnv();

  for (const [device, size, isCovered] of [["phone", PHONE, true], ["desktop", DESKTOP, false]]) {
    it(`is ${isCovered ? "out of reach while it is covered" : "still reached"}: ${device}`, async () => {
      const visitor = await env.visit(size);
      const behind = () => visitor.page.evaluate(() => document.querySelector("main").inert);
      await visitor.open();
      assert.equal(await behind(), isCovered);
      assert.equal(await visitor.panel.getAttribute("aria-modal"), isCovered ? "true" : null);
      await visitor.page.keyboard.press("Escape");
      await visitor.panel.waitFor({ state: "hidden" });
      assert.equal(await behind(), false);
      await visitor.leave();
    });
  }
});
