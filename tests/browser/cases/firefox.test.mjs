// The main paths of panel and widget in Firefox.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import { Fox, launchFirefox } from "../support/firefox.mjs";
import { Service } from "../support/service.mjs";
import { MUG, Shop, strictPolicy } from "../support/shop.mjs";
import { eventually } from "../support/wait.mjs";

describe("in Firefox", () => {
  const service = Service.shared();
  let browser, shop, company;
  before(async () => {
    [browser, shop] = await Promise.all([launchFirefox(), Shop.start()]);
    company = await service.company([shop.origin]);
  });
  after(async () => {
    await browser?.close();
    await shop?.stop();
  });

  it("somebody signs in, makes a record and a token, and changes their language and password", async () => {
    const person = await company.person("Administrator", { name: "Fuchs" });
    const fox = await Fox.open(browser, `${service.url}/panel/tags`);
    await fox.fill({ "E-mail": person.email, Password: "not the password at all" });
    await fox.click("Sign in", "button");
    await fox.said("Wrong e-mail or password.");
    await fox.fill({ Password: person.password });
    await fox.page.keyboard.press("Enter");
    await fox.said("Tags", "h1");
    // The cookie is no script's, and no other website's.
    const cookies = await fox.context.cookies();
    assert.ok(cookies.some(({ name, httpOnly }) => name === "hotline_session" && httpOnly));
    assert.equal(await fox.page.evaluate(() => document.cookie), "");

    await fox.keepNotices();
    await fox.click("New tag");
    await fox.click("Create", "button");
    await fox.see(".wrong");
    await fox.fill({ Name: "Raposa" });
    await fox.click("Create", "button");
    await fox.notice("Created.");
    assert.ok((await company.data("GET", "/tags")).some(({ name }) => name === "Raposa"));

    await fox.click("API tokens");
    await fox.click("New token");
    await fox.said("New token", "h1");
    await fox.fill({ Name: "Firefox" });
    await fox.press(() => fox.see('input[aria-label="Tags: Read"]'));
    await fox.click("Create", "button");
    const key = await (await fox.see("[role=dialog] code, dialog code")).evaluate((code) => code.textContent);
    const answer = await fetch(`${service.url}/api/v1/tags`, { headers: { Authorization: `Bearer ${key}` } });
    assert.equal(answer.status, 200);
    await fox.click("Done", "button");
    await fox.said("Firefox", "h1");

    await fox.page.goto(`${service.url}/panel/account`);
    await fox.said("Your account", "h1");
    await fox.keepNotices();
    await fox.fill({ "Current password": person.password, "New password": "a password made in Firefox" });
    await fox.click("Change password", "button");
    await fox.notice("Saved.");
    await (await fox.field("Language")).select("pt");
    await fox.click("Save", "button");
    await fox.said("Sua conta", "h1");
    await fox.press(() => fox.see('button[aria-label="Sair"]'));
    await fox.said("Entrar", "h1");
    await fox.fill({ "E-mail": person.email, Senha: "a password made in Firefox" });
    await fox.click("Entrar", "button");
    await fox.said("Sua conta", "h1");
    await fox.leave();
  });

  it("a channel is looked at beside its preview, and markup stays text", async () => {
    const person = await company.person("Administrator", { name: `<img src=x onerror="window.evil=1">` });
    const fox = await Fox.open(browser, `${service.url}/panel/channels/${company.channel.id}`);
    await fox.fill({ "E-mail": person.email, Password: person.password });
    await fox.click("Sign in", "button");
    await fox.said("Website", "h1");
    await fox.fill({ Title: "Raposa" });
    await fox.until(() => document.querySelector(".preview .frame > div")?.shadowRoot?.querySelector("h2")?.textContent === "Raposa");
    assert.equal(await fox.page.evaluate(() => window.evil), undefined);
    assert.ok((await fox.page.evaluate(() => document.body.innerText)).includes("<img src=x"));
    await fox.leave();
  });

  it("a visitor asks, is answered, sends a picture, and finds it all again", async () => {
    const fox = await Fox.open(browser, shop.page(company, { policy: strictPolicy(service) }));
    await fox.press(() => fox.within(".launcher"));
    const field = await fox.within("textarea");
    await field.type("Olá from Firefox 🦊");
    await field.press("Enter");
    await fox.within("[data-state=sent]");
    const ticket = await company.ticketOf("Olá from Firefox 🦊");
    await company.say(ticket, "Good day.");
    const bubbles = () => fox.page.evaluate(() => [...document.querySelector("hotline-webchat").shadowRoot.querySelectorAll(".bubble")].map((it) => it.textContent.trim()));
    await eventually("the answer is shown", async () => (await bubbles()).includes("Good day."));
    const folder = await mkdtemp(join(tmpdir(), "hotline-fox-"));
    await writeFile(join(folder, MUG.name), MUG.content);
    const input = await fox.within("input[type=file]");
    await input.uploadFile(join(folder, MUG.name));
    await (await fox.within("textarea")).press("Enter");
    await eventually("the picture has come", async () => (await company.messages(ticket)).some(({ media }) => media?.length || media?.url));
    await rm(folder, { recursive: true });
    await fox.page.reload();
    await eventually("the conversation is there again", async () => {
      const open = await fox.page.evaluate(() => {
        const root = document.querySelector("hotline-webchat")?.shadowRoot;
        if (!root) return false;
        if (!root.querySelector("[role=dialog]:not([hidden])")?.checkVisibility()) root.querySelector(".launcher")?.click();
        return true;
      });
      return open && (await bubbles()).includes("Good day.");
    });
    await fox.leave();
  });
});
