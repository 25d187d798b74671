// Signing in, what becomes of a session that ends, and one's own account.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Panel, panelEnv, signIn } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";
import { totp } from "../../support/totp.mjs";

describe("signing in", () => {
  const env = panelEnv();

  it("says the same of a wrong password, of nobody, and of who is switched off", async () => {
    const off = await env.company.person("Agent", { name: "Off" });
    await env.company.data("PUT", `/users/${off.id}`, { active: false });
    const panel = await env.open("/tags", { person: null });
    await panel.heading("Sign in").waitFor();
    const said = [];
    for (const [email, password] of [
      [env.administrator.email, "not the password at all"],
      ["nobody-at-all@example.com", env.administrator.password],
      [off.email, off.password],
    ]) {
      await panel.fill({ "E-mail": email, Password: password });
      await panel.button("Sign in").click();
      await panel.page.getByRole("alert").filter({ hasText: "Wrong e-mail or password" }).waitFor();
      said.push(await panel.page.getByRole("alert").allTextContents());
      await panel.fill({ Password: "" });
    }
    assert.deepEqual(said[1], said[0]);
    assert.deepEqual(said[2], said[0]);
    await panel.leave();
  });

  it("leads to the page that was asked for, and out again", async () => {
    const panel = await env.open("/queues", { person: null });
    await panel.fill({ "E-mail": env.administrator.email, Password: env.administrator.password });
    await panel.page.keyboard.press("Enter");
    await panel.heading("Queues").waitFor();
    await panel.page.reload();
    await panel.heading("Queues").waitFor();
    const cookies = await panel.context.cookies();
    assert.deepEqual(cookies.map(({ name }) => name).sort(), ["hotline_device", "hotline_session"]);
    for (const { httpOnly, sameSite } of cookies) assert.deepEqual([httpOnly, sameSite], [true, "Strict"]);
    assert.equal(await panel.page.evaluate(() => document.cookie), "", "no script sees it");
    await panel.button("Sign out").click();
    await panel.heading("Sign in").waitFor();
    await panel.page.goBack().catch(() => {});
    await panel.page.goto(`${panel.service.url}/panel/tags`);
    await panel.heading("Sign in").waitFor();
    await panel.leave();
  });

  it("loses nothing of a form when the session ends", async () => {
    const own = { ...env.administrator, session: await signIn(env.service, env.administrator) };
    const panel = await env.open("/quick-messages/new", { person: own });
    await panel.fill({ Shortcut: "kept", Message: "All of this\nstays." });
    await panel.context.clearCookies();
    await panel.button("Create").click();
    const dialog = panel.dialog();
    await dialog.getByText("Your session has ended").waitFor();
    await panel.page.keyboard.press("Escape");
    await panel.page.keyboard.press("Escape");
    // It stays until somebody has signed in.
    await dialog.waitFor();
    assert.equal(await panel.field("E-mail").inputValue(), own.email);
    await dialog.getByLabel("Password").fill("wrong, very wrong");
    await panel.page.keyboard.press("Enter");
    await dialog.getByText("Wrong e-mail or password").waitFor();
    await dialog.getByLabel("Password").fill(own.password);
    await panel.page.keyboard.press("Enter");
    await panel.notice("Created.").waitFor();
    const [made] = await env.company.data("GET", "/quick-messages?search=kept");
    assert.equal(made.message, "All of this\nstays.");
    await panel.leave();
  });

  it("keeps what was typed while another page is looked at, until it is discarded", async () => {
    const panel = await env.open("/tags/new");
    await panel.fill({ Name: "Half a tag" });
    await panel.link("Queues").click();
    await panel.heading("Queues").waitFor();
    await panel.turnTo("/tags/new");
    assert.equal(await panel.field("Name").inputValue(), "Half a tag");
    await panel.text("Unsaved changes restored.").waitFor();
    await panel.button("Discard").click();
    assert.equal(await panel.field("Name").inputValue(), "");
    await panel.leave();
  });

  it("takes a second factor once it is set up, a code once, and a recovery code", async () => {
    const person = await env.company.person("Agent", { name: "Careful" });
    const panel = await env.open("/account", { person });
    await panel.button("Set up").click();
    await panel.dialog().getByLabel("Current password").fill(person.password);
    await panel.button("Continue").click();
    const secret = await panel.dialog().locator("code").first().textContent();
    await panel.dialog().getByRole("img", { name: /^QR/ }).waitFor();
    await panel.dialog().getByLabel("Six-digit code").fill("000000");
    await panel.button("Confirm").click();
    await panel.dialog().locator(".wrong").waitFor();
    const first = totp(secret);
    await panel.dialog().getByLabel("Six-digit code").fill(first);
    await panel.button("Confirm").click();
    await panel.dialog().getByRole("heading", { name: "Recovery codes" }).waitFor();
    const codes = (await panel.dialog().locator("code").textContent()).trim().split("\n");
    assert.equal(codes.length, 10);
    await panel.button("Done").click();
    await panel.text("On. Recovery codes left: 10.").waitFor();
    await panel.leave();

    const again = await Panel.open(env, "/account");
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
    const person = await env.company.person("Agent", { name: "Changing" });
    const elsewhere = await signIn(env.service, person);
    const panel = await env.open("/account", { person });
    await eventually("both sessions", async () => (await panel.page.getByRole("row").count()) === 3);
    await panel.fill({ "Current password": "not the one", "New password": "short" });
    await panel.button("Change password").click();
    await panel.page.locator(".wrong").first().waitFor();
    assert.ok((await panel.page.locator(".wrong").count()) >= 1);
    await panel.fill({ "Current password": person.password, "New password": "another quite long password" });
    await panel.button("Change password").click();
    await panel.notice("Saved.").waitFor();
    await eventually("the other session has ended", async () => (await panel.page.getByRole("row").count()) === 2);
    const answer = await fetch(`${env.service.url}/panel/api/v1/account`, { headers: { Cookie: `${elsewhere.cookie.name}=${elsewhere.cookie.value}` } });
    assert.equal(answer.status, 401);
    await panel.leave();
  });

  it("speaks the language somebody chooses", async () => {
    const person = await env.company.person("Agent", { name: "Falante" });
    const panel = await env.open("/account", { person });
    await panel.page.getByRole("combobox", { name: "Language" }).selectOption("pt");
    await panel.button("Save").click();
    await panel.heading("Sua conta").waitFor();
    assert.equal(await panel.page.evaluate(() => document.documentElement.lang), "pt");
    await panel.leave();
    const elsewhere = await env.open("/account", { person, locale: "es-ES" });
    await elsewhere.heading("Sua conta").waitFor();
    await elsewhere.leave();
  });
});
