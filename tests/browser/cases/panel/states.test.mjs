// What pages show besides their records: nothing yet, questions, what is shown once, a file on its way in. Words are not
// cut, and all of it is accessible; in every language for the proofs.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { checkLayout, checkPage } from "../../support/accessible.mjs";
import { DESKTOP, PHONE } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { panelEnv } from "../../support/panel.mjs";

const languages = chosen([
  ["pt", { ...PHONE, colorScheme: "dark" }],
  ["en", { ...PHONE, colorScheme: "light" }],
  ["es", { ...DESKTOP, colorScheme: "light" }],
]);

/** Lists in which a new company has nothing, and whether something is made from there. */
const EMPTY = {
  "/tags": true, "/queues": true, "/wrapup-types": true, "/wrapup-categories": true, "/quick-messages": true, "/global-variables": true,
  "/products": true, "/product-categories": true, "/crm/boards": true, "/contact-lists": true, "/custom-fields": true, "/webhooks": true,
  "/custom-fields/order": false,
};

/** Lists that begin with something. */
const FILLED = ["/users", "/profiles", "/channels", "/tokens", "/audit-log"];

describe("the panel", () => {
  const env = panelEnv();

  /** Looks at what there is now, under this name; at its roles and colours only where that is asked for. */
  const look = async (panel, name, language, isWhole = true) => {
    await checkLayout(panel.page, `${name}, ${language}`);
    if (isWhole) await checkPage(panel.page, `${name}, ${language}`);
    await panel.screenshot(`panel-state-${name}-${language}`);
  };

  for (const [number, [language, options]] of languages.entries()) {
    // Words are another's in each language; roles and colours of each list are looked at in one of them.
    const isTurn = (place) => place % languages.length === number;

    it(`says what to do first where there is nothing, and searches every list: ${language}`, async () => {
      const company = await env.service.company(["https://shop.example"]);
      const person = await company.person("Administrator");
      const panel = await env.open("/", { person, locale: language, ...options });
      for (const [place, [path, isMade]] of Object.entries(EMPTY).entries()) {
        await panel.turnTo(path);
        const told = await panel.page.locator(".empty").innerText();
        assert.ok(told.trim().length > 15, `${path}: ${told}`);
        assert.equal(await panel.page.locator(`.empty a[href$="${path}/new"]`).count(), isMade ? 1 : 0, path);
        if (path !== "/custom-fields/order") assert.equal(await panel.page.getByRole("searchbox").count(), 1, path);
        await look(panel, `empty${path.replaceAll("/", "-")}`, language, isTurn(place));
      }
      for (const [place, path] of FILLED.entries()) {
        await panel.turnTo(path);
        await panel.page.getByRole("searchbox").fill("what nobody has");
        await panel.page.locator(".empty").waitFor();
        await look(panel, `not-found${path.replaceAll("/", "-")}`, language, isTurn(place));
      }
      await panel.leave();
    });

    it(`asks, and shows what is shown once: ${language}`, async () => {
      const person = await env.company.person("Administrator", { name: `Asked in ${language}` });
      const panel = await env.open("/tokens/new", { person, locale: language, ...options });
      const { page } = panel;
      const answered = () => page.getByRole("dialog").waitFor({ state: "detached" });
      await page.locator("#main input[type=text]").first().fill(`Made in ${language}`);
      await page.locator(".matrix tbody input").first().check();
      await page.locator("#main button[type=submit]").click();
      await page.locator("dialog code").first().waitFor();
      await look(panel, "key", language);
      await page.locator("dialog .primary").click();
      await answered();
      await page.locator("#main .button.danger").click();
      await page.locator("dialog .words").waitFor();
      await look(panel, "revoke", language);
      await page.keyboard.press("Escape");
      await answered();

      await panel.turnTo("/account");
      await page.locator(".card.wide .button.primary").click();
      await page.locator("dialog input").fill(person.password);
      await page.locator("dialog button[type=submit]").click();
      await page.locator("dialog .qr").waitFor();
      await look(panel, "second-factor", language);
      await page.keyboard.press("Escape");
      await answered();

      await panel.turnTo("/contacts/import");
      const rows = ["Name,Phone,E-mail", `Maria Lima,55119${String(Date.now()).slice(-8)},maria@example.com`, "Nobody,12,"];
      await page.locator("input[type=file]").setInputFiles({ name: "contacts.csv", mimeType: "text/csv", buffer: Buffer.from(rows.join("\n")) });
      await page.locator("select").first().waitFor();
      await look(panel, "import", language);
      await page.locator("#main .button.primary").click();
      await page.locator(".note").first().waitFor();
      await page.getByRole("table").waitFor();
      await look(panel, "imported", language);
      await panel.leave();
    });
  }
});
