// Who one is in which company, and what is done when a password, a phone or a session is lost.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { address, Panel, panelEnv, signIn } from "../../support/panel.mjs";
import { totp } from "../../support/totp.mjs";
import { eventually } from "../../support/wait.mjs";

describe("an account", () => {
  const env = panelEnv();

  const enter = async (panel, { email, password }) => {
    await panel.fill({ "E-mail": email, Password: password });
    await panel.button("Sign in").click();
  };

  /** Sets up a second factor, and answers its secret and its recovery codes. */
  const enrol = async (panel, { password }) => {
    await panel.button("Set up").click();
    await panel.dialog().getByLabel("Current password").fill(password);
    await panel.button("Continue").click();
    const secret = await panel.dialog().locator("code").first().textContent();
    await panel.dialog().getByLabel("Six-digit code").fill(totp(secret));
    await panel.button("Confirm").click();
    return { secret, codes: await storedCodes(panel) };
  };

  const storedCodes = async (panel) => {
    await panel.dialog().getByRole("heading", { name: "Recovery codes" }).waitFor();
    const codes = (await panel.dialog().locator("code").textContent()).trim().split("\n");
    await panel.button("Done").click();
    return codes;
  };

  it("of several companies, and of the installation, is asked where to work", async () => {
    const email = address("several");
    const { password } = await env.service.cli("admin", "create", email);
    const other = await env.service.company(["https://other.example"]);
    const names = [];
    for (const company of [env.company, other]) {
      await company.person("Agent", { name: "Several", email, password });
      const { cookie } = await signIn(env.service, await company.person("Administrator"));
      const answer = await fetch(`${env.service.url}/panel/api/v1/company`, { headers: { Cookie: `${cookie.name}=${cookie.value}` } });
      names.push((await answer.json()).data.name);
    }
    for (const [choice, header] of [[names[0], names[0]], [names[1], names[1]], ["All companies", null]]) {
      const panel = await Panel.open(env, "/");
      await enter(panel, { email, password });
      await panel.text("Choose a company").waitFor();
      assert.equal(await panel.page.locator(".box .stack button").count(), 3);
      await panel.button(choice).click();
      await panel.heading().filter({ hasText: "Hello" }).waitFor();
      if (header) assert.equal(await panel.page.locator("header .company").textContent(), header);
      else await panel.link("Companies").first().waitFor();
      await panel.leave();
    }
  });

  it("whose password or phone is lost is helped by an administrator", async () => {
    const person = await env.company.person("Agent", { name: "Forgetful" });
    const own = await env.open("/account", { person });
    await enrol(own, person);
    await own.leave();

    const panel = await env.open(`/users/${person.id}`);
    await panel.button("Reset password").click();
    const link = await panel.dialog().locator("code").textContent();
    await panel.text(/^Expires .* works once\./).waitFor();
    await panel.button("Done").click();
    await panel.button("Turn off two-step verification").click();
    await panel.dialog().getByRole("button", { name: "Turn off two-step verification" }).click();
    await panel.notice("Saved.").waitFor();
    await panel.leave();

    const reset = await Panel.open(env, `/welcome${new URL(link).hash}`);
    await reset.text(`Forgetful, choose a new password for ${person.email}.`).waitFor();
    await reset.fill({ Password: "remembered from now on" });
    await reset.button("Set password").click();
    await reset.link("Sign in").click();
    await enter(reset, person);
    await reset.page.getByRole("alert").filter({ hasText: "Wrong e-mail or password" }).waitFor();
    await enter(reset, { ...person, password: "remembered from now on" });
    await reset.heading("Hello, Forgetful").waitFor();
    await reset.leave();
  });

  it("has recovery codes made anew, and its second factor removed", async () => {
    const person = await env.company.person("Agent", { name: "Renewing" });
    const panel = await env.open("/account", { person });
    const { codes } = await enrol(panel, person);
    await panel.button("New recovery codes").click();
    await panel.dialog().getByLabel("Current password").fill("not the password");
    await panel.button("Continue").click();
    await panel.dialog().locator(".wrong, .note.error").first().waitFor();
    await panel.dialog().getByLabel("Current password").fill(person.password);
    await panel.button("Continue").click();
    const anew = await storedCodes(panel);
    assert.deepEqual(anew.filter((code) => codes.includes(code)), []);

    const late = await Panel.open(env, "/account");
    await enter(late, person);
    await late.heading("Two-step verification").waitFor();
    await late.button("Use a recovery code").click();
    await late.field("Recovery code").fill(codes[0]);
    await late.button("Continue").click();
    await late.page.getByRole("alert").filter({ hasText: "Wrong code" }).waitFor();
    await late.field("Recovery code").fill(anew[0]);
    await late.button("Continue").click();
    await late.heading("Your account").waitFor();
    await late.button("Turn off").click();
    await late.dialog().getByLabel("Current password").fill(person.password);
    await late.button("Continue").click();
    await late.text("Not set up.").waitFor();
    await late.leave();
    await panel.leave();
  });

  it("ends its sessions elsewhere, one or all others, and then its own", async () => {
    const person = await env.company.person("Agent", { name: "Ending" });
    const elsewhere = [];
    for (let sessions = 0; sessions < 3; sessions++) elsewhere.push(await signIn(env.service, person));
    const isOpen = async ({ cookie: { name, value } }) =>
      (await fetch(`${env.service.url}/panel/api/v1/account`, { headers: { Cookie: `${name}=${value}` } })).status === 200;
    const panel = await env.open("/account", { person });
    const rows = () => panel.page.getByRole("row").count();
    await eventually("four sessions", async () => (await rows()) === 5);
    await panel.page.getByRole("row").filter({ hasNotText: "this session" }).getByRole("button").first().click();
    await panel.dialog().getByRole("button", { name: "End session" }).click();
    await eventually("one has ended", async () => (await rows()) === 4);
    const left = await Promise.all(elsewhere.map(isOpen));
    assert.equal(left.filter(Boolean).length, 2);
    await panel.button("End all other sessions").click();
    await panel.dialog().getByRole("button", { name: "End all other sessions" }).click();
    await eventually("this one is left", async () => (await rows()) === 2);
    assert.deepEqual(await Promise.all(elsewhere.map(isOpen)), [false, false, false]);
    await panel.page.getByRole("row").filter({ hasText: "this session" }).getByRole("button").click();
    await panel.dialog().getByRole("button", { name: "End session" }).click();
    await panel.heading("Sign in").waitFor();
    await panel.leave();
  });
});
