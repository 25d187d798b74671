// Who one is in which company, and what is done when a password, a phone or a session is lost.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { address, Desk, panel, signIn } from "../../support/panel.mjs";
import { totp } from "../../support/totp.mjs";
import { eventually } from "../../support/wait.mjs";

describe("an account", () => {
  const at = panel();

  const enter = async (desk, { email, password }) => {
    await desk.fill({ "E-mail": email, Password: password });
    await desk.button("Sign in").click();
  };

  /** Sets up a second factor, and answers its secret and its recovery codes. */
  const enrol = async (desk, { password }) => {
    await desk.button("Set up").click();
    await desk.dialog().getByLabel("Current password").fill(password);
    await desk.button("Continue").click();
    const secret = await desk.dialog().locator("code").first().textContent();
    await desk.dialog().getByLabel("Six-digit code").fill(totp(secret));
    await desk.button("Confirm").click();
    return { secret, codes: await storedCodes(desk) };
  };

  const storedCodes = async (desk) => {
    await desk.dialog().getByRole("heading", { name: "Recovery codes" }).waitFor();
    const codes = (await desk.dialog().locator("code").textContent()).trim().split("\n");
    await desk.button("Done").click();
    return codes;
  };

  it("of several companies, and of the installation, is asked where to work", async () => {
    const email = address("several");
    const { password } = await at.service.cli("admin", "create", email);
    const other = await at.service.company(["https://other.example"]);
    const names = [];
    for (const company of [at.company, other]) {
      await company.person("Agent", { name: "Several", email, password });
      const { cookie } = await signIn(at.service, await company.person("Administrator"));
      const answer = await fetch(`${at.service.url}/panel/api/v1/company`, { headers: { Cookie: `${cookie.name}=${cookie.value}` } });
      names.push((await answer.json()).data.name);
    }
    for (const [choice, header] of [[names[0], names[0]], [names[1], names[1]], ["All companies", null]]) {
      const desk = await Desk.open(at, "/");
      await enter(desk, { email, password });
      await desk.text("Choose a company").waitFor();
      assert.equal(await desk.page.locator(".box .stack button").count(), 3);
      await desk.button(choice).click();
      await desk.heading().filter({ hasText: "Hello" }).waitFor();
      if (header) assert.equal(await desk.page.locator("header .company").textContent(), header);
      else await desk.link("Companies").first().waitFor();
      await desk.leave();
    }
  });

  it("whose password or phone is lost is helped by an administrator", async () => {
    const person = await at.company.person("Agent", { name: "Forgetful" });
    const own = await at.open("/account", { person });
    await enrol(own, person);
    await own.leave();

    const desk = await at.open(`/users/${person.id}`);
    await desk.button("Reset password").click();
    const link = await desk.dialog().locator("code").textContent();
    await desk.text(/^Expires .* works once\./).waitFor();
    await desk.button("Done").click();
    await desk.button("Turn off two-step verification").click();
    await desk.dialog().getByRole("button", { name: "Turn off two-step verification" }).click();
    await desk.notice("Saved.").waitFor();
    await desk.leave();

    const reset = await Desk.open(at, `/welcome${new URL(link).hash}`);
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
    const person = await at.company.person("Agent", { name: "Renewing" });
    const desk = await at.open("/account", { person });
    const { codes } = await enrol(desk, person);
    await desk.button("New recovery codes").click();
    await desk.dialog().getByLabel("Current password").fill("not the password");
    await desk.button("Continue").click();
    await desk.dialog().locator(".wrong, .note.error").first().waitFor();
    await desk.dialog().getByLabel("Current password").fill(person.password);
    await desk.button("Continue").click();
    const anew = await storedCodes(desk);
    assert.deepEqual(anew.filter((code) => codes.includes(code)), []);

    const late = await Desk.open(at, "/account");
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
    await desk.leave();
  });

  it("ends its sessions elsewhere, one or all others, and then its own", async () => {
    const person = await at.company.person("Agent", { name: "Ending" });
    const elsewhere = [];
    for (let sessions = 0; sessions < 3; sessions++) elsewhere.push(await signIn(at.service, person));
    const isOpen = async ({ cookie: { name, value } }) =>
      (await fetch(`${at.service.url}/panel/api/v1/account`, { headers: { Cookie: `${name}=${value}` } })).status === 200;
    const desk = await at.open("/account", { person });
    const rows = () => desk.page.getByRole("row").count();
    await eventually("four sessions", async () => (await rows()) === 5);
    await desk.page.getByRole("row").filter({ hasNotText: "this session" }).getByRole("button").first().click();
    await desk.dialog().getByRole("button", { name: "End session" }).click();
    await eventually("one has ended", async () => (await rows()) === 4);
    const left = await Promise.all(elsewhere.map(isOpen));
    assert.equal(left.filter(Boolean).length, 2);
    await desk.button("End all other sessions").click();
    await desk.dialog().getByRole("button", { name: "End all other sessions" }).click();
    await eventually("this one is left", async () => (await rows()) === 2);
    assert.deepEqual(await Promise.all(elsewhere.map(isOpen)), [false, false, false]);
    await desk.page.getByRole("row").filter({ hasText: "this session" }).getByRole("button").click();
    await desk.dialog().getByRole("button", { name: "End session" }).click();
    await desk.heading("Sign in").waitFor();
    await desk.leave();
  });
});
