// Signing in, what becomes of a session that ends, and one's own account.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Desk, panel, signIn } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";
import { totp } from "../../support/totp.mjs";

describe("signing in", () => {
  const at = panel();

  it("says the same of a wrong password, of nobody, and of who is switched off", async () => {
    const off = await at.company.person("Agent", { name: "Off" });
    await at.company.data("PUT", `/users/${off.id}`, { active: false });
    const desk = await at.open("/tags", { person: null });
    await desk.heading("Sign in").waitFor();
    const said = [];
    for (const [email, password] of [
      [at.administrator.email, "not the password at all"],
      ["nobody-at-all@example.com", at.administrator.password],
      [off.email, off.password],
    ]) {
      await desk.fill({ "E-mail": email, Password: password });
      await desk.button("Sign in").click();
      await desk.page.getByRole("alert").filter({ hasText: "Wrong e-mail or password" }).waitFor();
      said.push(await desk.page.getByRole("alert").allTextContents());
      await desk.fill({ Password: "" });
    }
    assert.deepEqual(said[1], said[0]);
    assert.deepEqual(said[2], said[0]);
    await desk.leave();
  });

  it("leads to the page that was asked for, and out again", async () => {
    const desk = await at.open("/queues", { person: null });
    await desk.fill({ "E-mail": at.administrator.email, Password: at.administrator.password });
    await desk.page.keyboard.press("Enter");
    await desk.heading("Queues").waitFor();
    await desk.page.reload();
    await desk.heading("Queues").waitFor();
    const cookies = await desk.context.cookies();
    assert.deepEqual(cookies.map(({ name }) => name).sort(), ["hotline_device", "hotline_session"]);
    for (const { httpOnly, sameSite } of cookies) assert.deepEqual([httpOnly, sameSite], [true, "Strict"]);
    assert.equal(await desk.page.evaluate(() => document.cookie), "", "no script sees it");
    await desk.button("Sign out").click();
    await desk.heading("Sign in").waitFor();
    await desk.page.goBack().catch(() => {});
    await desk.page.goto(`${desk.service.url}/panel/tags`);
    await desk.heading("Sign in").waitFor();
    await desk.leave();
  });

  it("loses nothing of a form when the session ends", async () => {
    const own = { ...at.administrator, session: await signIn(at.service, at.administrator) };
    const desk = await at.open("/quick-messages/new", { person: own });
    await desk.fill({ Shortcut: "kept", Message: "All of this\nstays." });
    await desk.context.clearCookies();
    await desk.button("Create").click();
    const dialog = desk.dialog();
    await dialog.getByText("Your session has ended").waitFor();
    await desk.page.keyboard.press("Escape");
    await desk.page.keyboard.press("Escape");
    // It stays until somebody has signed in.
    await dialog.waitFor();
    assert.equal(await desk.field("E-mail").inputValue(), own.email);
    await dialog.getByLabel("Password").fill("wrong, very wrong");
    await desk.page.keyboard.press("Enter");
    await dialog.getByText("Wrong e-mail or password").waitFor();
    await dialog.getByLabel("Password").fill(own.password);
    await desk.page.keyboard.press("Enter");
    await desk.notice("Created.").waitFor();
    const [made] = await at.company.data("GET", "/quick-messages?search=kept");
    assert.equal(made.message, "All of this\nstays.");
    await desk.leave();
  });

  it("keeps what was typed while another page is looked at, until it is discarded", async () => {
    const desk = await at.open("/tags/new");
    await desk.fill({ Name: "Half a tag" });
    await desk.link("Queues").click();
    await desk.heading("Queues").waitFor();
    await desk.turnTo("/tags/new");
    assert.equal(await desk.field("Name").inputValue(), "Half a tag");
    await desk.text("Unsaved changes restored.").waitFor();
    await desk.button("Discard").click();
    assert.equal(await desk.field("Name").inputValue(), "");
    await desk.leave();
  });

  it("takes a second factor once it is set up, a code once, and a recovery code", async () => {
    const person = await at.company.person("Agent", { name: "Careful" });
    const desk = await at.open("/account", { person });
    await desk.button("Set up").click();
    await desk.dialog().getByLabel("Current password").fill(person.password);
    await desk.button("Continue").click();
    const secret = await desk.dialog().locator("code").first().textContent();
    await desk.dialog().getByRole("img", { name: /^QR/ }).waitFor();
    await desk.dialog().getByLabel("Six-digit code").fill("000000");
    await desk.button("Confirm").click();
    await desk.dialog().locator(".wrong").waitFor();
    const first = totp(secret);
    await desk.dialog().getByLabel("Six-digit code").fill(first);
    await desk.button("Confirm").click();
    await desk.dialog().getByRole("heading", { name: "Recovery codes" }).waitFor();
    const codes = (await desk.dialog().locator("code").textContent()).trim().split("\n");
    assert.equal(codes.length, 10);
    await desk.button("Done").click();
    await desk.text("On. Recovery codes left: 10.").waitFor();
    await desk.leave();

    const again = await Desk.open(at, "/account");
    await again.fill({ "E-mail": person.email, Password: person.password });
    await again.button("Sign in").click();
    await again.heading("Two-step verification").waitFor();
    await again.field("Code").fill(first);
    await again.button("Continue").click();
    await again.page.getByRole("alert").filter({ hasText: "Wrong code" }).waitFor();
    await again.button("Use a recovery code").click();
    await again.field("Recovery code").fill(codes[0]);
    await again.button("Continue").click();
    await again.heading("Your account").waitFor();
    await again.text("Recovery codes left: 9").waitFor();
    await again.leave();
  });

  it("changes the password, which ends the other sessions", async () => {
    const person = await at.company.person("Agent", { name: "Changing" });
    const elsewhere = await signIn(at.service, person);
    const desk = await at.open("/account", { person });
    await eventually("both sessions", async () => (await desk.page.getByRole("row").count()) === 3);
    await desk.fill({ "Current password": "not the one", "New password": "short" });
    await desk.button("Change password").click();
    await desk.page.locator(".wrong").first().waitFor();
    assert.ok((await desk.page.locator(".wrong").count()) >= 1);
    await desk.fill({ "Current password": person.password, "New password": "another quite long password" });
    await desk.button("Change password").click();
    await desk.notice("Saved.").waitFor();
    await eventually("the other session has ended", async () => (await desk.page.getByRole("row").count()) === 2);
    const answer = await fetch(`${at.service.url}/panel/api/v1/account`, { headers: { Cookie: `${elsewhere.cookie.name}=${elsewhere.cookie.value}` } });
    assert.equal(answer.status, 401);
    await desk.leave();
  });

  it("speaks the language somebody chooses", async () => {
    const person = await at.company.person("Agent", { name: "Falante" });
    const desk = await at.open("/account", { person });
    await desk.page.getByRole("combobox", { name: "Language" }).selectOption("pt");
    await desk.button("Save").click();
    await desk.heading("Sua conta").waitFor();
    assert.equal(await desk.page.evaluate(() => document.documentElement.lang), "pt");
    await desk.leave();
    const elsewhere = await at.open("/account", { person, locale: "es-ES" });
    await elsewhere.heading("Sua conta").waitFor();
    await elsewhere.leave();
  });
});
