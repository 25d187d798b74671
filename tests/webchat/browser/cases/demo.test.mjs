// `hotline demo`: both sides in one window.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { DESKTOP, launch, visit } from "../support/browser.mjs";
import { Service } from "../support/service.mjs";

describe("the demo's page", () => {
  const at = {};

  before(async () => {
    [at.service, at.browser] = await Promise.all([Service.start("demo"), launch()]);
  });

  after(async () => {
    await at.browser?.close();
    await at.service?.remove();
  });

  for (const colorScheme of ["light", "dark"]) {
    it(`lets visitor and desk talk, ${colorScheme}`, async () => {
      const size = { viewport: { ...DESKTOP.viewport, width: 1480 } };
      const visitor = await visit(at.browser, at.service.url, { ...size, colorScheme });
      const { page } = visitor;
      const broken = [];
      page.on("console", (line) => line.type() === "error" && broken.push(line.text()));
      const desk = page.locator(".desk");
      await visitor.panel.waitFor();
      const hello = `Do you have tea cups, in ${colorScheme}?`;
      await visitor.tell(hello);
      await desk.locator(".said.inbound", { hasText: hello }).waitFor();
      await visitor.own(hello).and(visitor.widget.locator("[data-state=read]")).waitFor();

      await desk.locator("textarea").pressSequentially("Of cour");
      await visitor.widget.locator(".typing").waitFor();
      await desk.locator("textarea").pressSequentially("se!");
      await desk.locator("textarea").press("Enter");
      await visitor.theirs("Of course!").waitFor();
      await desk.locator(".said.outbound", { hasText: "read" }).waitFor();

      await visitor.field.pressSequentially("Gre");
      await desk.getByText("is typing…").waitFor();

      await desk.getByLabel("Hand over to").selectOption({ label: "Ana Souza" });
      await desk.locator("#facts", { hasText: "Ana Souza" }).waitFor();
      await visitor.screenshot(`demo-${colorScheme}`);

      await desk.getByRole("button", { name: "Close", exact: true }).click();
      await desk.getByRole("button", { name: "Reopen" }).waitFor();
      await desk.locator("#facts", { hasText: "Solved" }).waitFor();
      assert.deepEqual(broken, []);
      await visitor.leave();
    });
  }

  // UNTIL `POST /messages` TAKES interactive MESSAGES its part is that of a refusal; then the sample is waited for in the
  // widget: `visitor.option("Tomorrow").click()`, and the desk shows the choice.
  it("says so when something does not work", async () => {
    const visitor = await visit(at.browser, at.service.url);
    await visitor.panel.waitFor();
    await visitor.tell("Show me");
    const desk = visitor.page.locator(".desk");
    await desk.locator(".said.inbound", { hasText: "Show me" }).waitFor();
    await visitor.page.route("**/api/v1/messages", (route) =>
      route.fulfill({ status: 422, json: { error: { code: "ERR_API_VALIDATION", message: "not today" } } }),
    );
    await desk.getByRole("button", { name: "Buttons" }).click();
    await desk.getByRole("alert").getByText("not today").waitFor();
    await visitor.leave();
  });
});
