// `hotline demo`: both sides in one window.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { DESKTOP, visit, withBrowser } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { Panel } from "../../support/panel.mjs";
import { Service } from "../../support/service.mjs";
import { MUG } from "../../support/shop.mjs";
import { eventually } from "../../support/wait.mjs";

describe("the demo's page", () => {
  const env = {};

  withBrowser(env);
  before(async () => (env.service = await Service.start("demo")));
  after(() => env.service?.remove());

  for (const colorScheme of chosen(["light", "dark"])) {
    it(`lets visitor and desk talk, ${colorScheme}`, async () => {
      const size = { viewport: { ...DESKTOP.viewport, width: 1480 } };
      const visitor = await visit(env.browser, env.service.url, { ...size, colorScheme });
      const { page } = visitor;
      const broken = [];
      page.on("console", (line) => line.type() === "error" && broken.push(line.text()));
      const desk = page.locator(".desk");
      await visitor.panel.waitFor();
      const hello = `Do you have tea cups, in ${colorScheme}?`;
      await visitor.tell(hello);
      await desk.locator(".said.inbound", { hasText: hello }).waitFor();
      await visitor.own(hello).and(visitor.widget.locator("[data-state=read]")).waitFor();

      // Typing fades: each writes on until the other side has seen it.
      const answer = desk.locator("textarea");
      await answer.pressSequentially("Of course");
      await eventually("the visitor sees the desk type", async () => {
        await answer.press("!");
        return visitor.widget.locator(".typing").isVisible();
      });
      const answered = await answer.inputValue();
      await answer.press("Enter");
      await visitor.theirs(answered).waitFor();
      await desk.locator(".said.outbound", { hasText: "read" }).waitFor();

      await visitor.field.pressSequentially("Great");
      await eventually("the desk sees the visitor type", async () => {
        await visitor.field.press("!");
        return desk.getByText("is typing…").isVisible();
      });

      await desk.getByLabel("Assign to").selectOption({ label: "Ana Souza" });
      await desk.locator("#facts", { hasText: "Ana Souza" }).waitFor();
      await visitor.screenshot(`demo-${colorScheme}`);

      await desk.getByRole("button", { name: "Close", exact: true }).click();
      await desk.getByRole("button", { name: "Reopen" }).waitFor();
      await desk.locator("#facts", { hasText: "Solved" }).waitFor();
      assert.deepEqual(broken, []);
      await visitor.leave();
    });
  }

  it("says who may sign in at the panel, and lets them in", async () => {
    const { service, browser } = env;
    const guide = await eventually("what is printed", () => service.printed.includes("Stop it with Ctrl-C.") && service.printed.join("\n"));
    assert.ok(guide.includes(`The panel is at ${service.url}/panel/.`));
    for (const [role, greeting] of [["administrator", "Hello, admin@demo.example"], ["agent", "Hello, Ana Souza"]]) {
      const [, email, password] = new RegExp(`^${role} (\\S+) (\\S+)$`, "m").exec(guide);
      const panel = await Panel.open({ service, browser }, "/");
      await panel.fill({ "E-mail": email, Password: password });
      await panel.button("Sign in").click();
      await panel.heading(greeting).waitFor();
      await panel.leave();
    }
  });

  it("sends each sample, and a file the other way", async () => {
    const visitor = await visit(env.browser, env.service.url);
    await visitor.panel.waitFor();
    await visitor.tell("Show me");
    const desk = visitor.page.locator(".desk");
    await desk.locator(".said.inbound", { hasText: "Show me" }).waitFor();
    const sample = (name) => desk.getByRole("button", { name, exact: true }).click();

    await sample("Buttons");
    await visitor.option("Tomorrow").click();
    await desk.locator(".said.inbound", { hasText: "Tomorrow" }).waitFor();
    await sample("List");
    await visitor.widget.getByRole("button", { name: "Choose a mug" }).click();
    await visitor.option("Night").click();
    await desk.locator(".said.inbound", { hasText: "Night" }).waitFor();
    await sample("Link");
    await visitor.widget.getByRole("link", { name: "Track parcel" }).waitFor();
    await sample("Location");
    await visitor.option("Share my location").waitFor();
    await sample("Carousel");
    const pictures = visitor.widget.locator(".track img");
    await eventually("the cards have pictures", () => pictures.evaluateAll((all) => all.length === 3 && all[0].naturalWidth > 0));
    await visitor.option("I'd like desert").click();
    await desk.locator(".said.inbound", { hasText: "I'd like desert" }).waitFor();
    assert.equal(await visitor.option("I'd like desert").getAttribute("class"), "option chosen");

    await visitor.widget
      .locator("input[type=file]")
      .setInputFiles({ name: MUG.name, mimeType: MUG.mimeType, buffer: MUG.content });
    const shown = desk.getByRole("img", { name: "mug.png" });
    await eventually("the desk sees the picture", () => shown.evaluate((it) => it.naturalWidth === 8));
    assert.equal(await desk.getByRole("alert").count(), 0, "nothing was refused");
    await visitor.screenshot("demo-samples");
    await visitor.leave();
  });

  it("signs its visitor in and out", async () => {
    const visitor = await visit(env.browser, env.service.url);
    const { page } = visitor;
    const desk = page.locator(".desk");
    await visitor.panel.waitFor();
    await visitor.tell("I have an account");
    await desk.locator("#facts", { hasText: "not verified" }).waitFor();
    await page.getByRole("button", { name: "Sign in as Maria Lima" }).click();
    await page.getByText("You are signed in as Maria Lima.").waitFor();
    await visitor.tell("It is me, Maria");
    await desk.locator(".said.inbound", { hasText: "It is me, Maria" }).waitFor();
    await desk.locator("#contact", { hasText: "Maria Lima" }).waitFor();
    await eventually("the desk sees it", async () => /· verified/.test(await desk.locator("#facts").textContent()));
    await visitor.screenshot("demo-signed-in");
    await page.getByRole("button", { name: "Sign out" }).click();
    await eventually("nothing of hers is left", async () => (await visitor.texts()).length === 0);
    await visitor.leave();
  });

  it("says so when something does not work", async () => {
    const visitor = await visit(env.browser, env.service.url);
    await visitor.panel.waitFor();
    await visitor.tell("Are you there?");
    const desk = visitor.page.locator(".desk");
    await desk.locator(".said.inbound", { hasText: "Are you there?" }).waitFor();
    // More than a message may have; nothing of it is cut.
    await desk.locator("textarea").fill("x".repeat(65_537));
    await desk.getByRole("button", { name: "Send", exact: true }).click();
    await desk.getByRole("alert").getByText("body must have at most 65536 bytes").waitFor();
    await visitor.leave();
  });
});
