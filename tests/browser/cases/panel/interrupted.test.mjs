// What comes between: a session or a connection that ends, somebody else, another company, a rule that changes meanwhile.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { NAMED_HOST } from "../../support/browser.mjs";
import { address, Desk, panel, signIn } from "../../support/panel.mjs";
import { Service } from "../../support/service.mjs";
import { totp } from "../../support/totp.mjs";
import { eventually } from "../../support/wait.mjs";

describe("what is interrupted", () => {
  const at = panel();

  const signInHere = async (desk, { email, password }) => {
    await desk.fill({ "E-mail": email, Password: password });
    await desk.button("Sign in").click();
  };

  /** An administrator of the installation, in a company that is open. */
  const installer = async () => {
    const email = address("installer");
    const { password } = await at.service.cli("admin", "create", email);
    return at.open("/companies", { person: { email, password } });
  };
  const openCompany = async (desk, { name }) => {
    await desk.turnTo("/companies");
    await desk.field("Search").fill(name);
    await desk.page.getByRole("button", { name: `Go to company: ${name}` }).click();
    await desk.page.locator("header .company", { hasText: name }).waitFor();
  };
  const leaveCompany = async (desk) => {
    await desk.button("All companies").click();
    await desk.heading("Companies").waitFor();
  };
  const companies = () => Promise.all(["First", "Second"].map((name) => at.service.cli("company", "create", `${name} ${address("company")}`)));

  it("works over plain HTTP under a name, where browsers lend less", async () => {
    const named = new Service(at.service.dataDir, at.service.url.replace("127.0.0.1", NAMED_HOST));
    const desk = await Desk.open({ browser: at.browser, service: named }, "/tags/new");
    assert.equal(await desk.page.evaluate(() => isSecureContext), false);
    await signInHere(desk, at.administrator);
    await desk.heading("New tag").waitFor();
    await desk.fill({ Name: "Over plain HTTP" });
    await desk.button("Create").click();
    await desk.notice("Created.").waitFor();
    await desk.turnTo(`/channels/${at.company.channel.id}`);
    await desk.page.getByRole("button", { name: /^Copy: / }).first().click();
    await desk.text("Press Ctrl+C to copy").waitFor();
    assert.ok((await desk.page.evaluate(() => getSelection().toString())).length > 0);
    await desk.leave();
  });

  it("is not made twice when its answer was lost", async () => {
    const desk = await at.open("/contact-lists/new");
    let lost = 0;
    await desk.page.route("**/panel/api/v1/contact-lists", async (route) => {
      if (route.request().method() !== "POST" || lost > 0) return route.continue();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    await desk.fill({ Name: "Once alone" });
    await desk.button("Create").click();
    await desk.page.getByRole("alert").filter({ hasText: "Can't reach the server" }).waitFor();
    await desk.button("Create").click();
    await desk.notice("Created.").waitFor();
    assert.equal(lost, 1);
    assert.equal((await at.company.data("GET", "/contact-lists?search=Once%20alone")).length, 1);
    await desk.leave();
  });

  it("is made once more after another change was made there", async () => {
    const tag = await at.company.data("POST", "/tags", { name: "Zero" });
    const desk = await at.open(`/tags/${tag.id}`);
    const named = async (name) => {
      await desk.fill({ Name: name });
      await desk.button("Save").click();
    };
    let lost = 0;
    await desk.page.route(`**/panel/api/v1/tags/${tag.id}`, async (route) => {
      if (route.request().method() !== "PUT" || lost > 0) return route.continue();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    await named("One");
    await desk.page.getByRole("alert").filter({ hasText: "Can't reach the server" }).waitFor();
    await named("Two");
    await desk.heading("Two").waitFor();
    await named("One");
    await desk.heading("One").waitFor();
    assert.equal((await at.company.data("GET", `/tags/${tag.id}`)).name, "One");
    await desk.leave();
  });

  it("leaves nothing to somebody else, whose own session may end as well", async () => {
    const [first, second] = [await at.company.person("Administrator", { name: "First" }), await at.company.person("Administrator", { name: "Second" })];
    const desk = await at.open("/quick-messages/new", { person: first });
    await desk.fill({ Shortcut: "first", Message: "Of the first." });
    await desk.context.clearCookies();
    await desk.button("Create").click();
    await desk.dialog().getByText("Your session has ended").waitFor();
    await desk.dialog().getByRole("button", { name: "Use another account" }).click();
    await signInHere(desk, second);
    await desk.heading("New quick message").waitFor();
    assert.equal(await desk.field("Shortcut").inputValue(), "");
    await desk.fill({ Shortcut: "second", Message: "Of the second." });
    await desk.context.clearCookies();
    await desk.button("Create").click();
    await desk.dialog().getByText("Your session has ended").waitFor();
    await desk.dialog().getByLabel("Password").fill(second.password);
    await desk.page.keyboard.press("Enter");
    await desk.notice("Created.").waitFor();
    const made = await at.company.data("GET", "/quick-messages?perPage=100");
    assert.deepEqual(made.map(({ shortcut }) => shortcut).filter((it) => ["first", "second"].includes(it)), ["second"]);
    await desk.leave();
  });

  it("undoes nothing that somebody else has changed meanwhile", async () => {
    const quick = await at.company.data("POST", "/quick-messages", { shortcut: "before", message: "As it was." });
    const path = `/quick-messages/${quick.id}`;
    const desk = await at.open(path);
    await desk.fill({ Message: "As I want it." });
    await desk.turnTo("/");
    await at.company.data("PUT", path, { shortcut: "after" });
    await desk.turnTo(path);
    await desk.text("Unsaved changes restored.").waitFor();
    assert.deepEqual([await desk.field("Shortcut").inputValue(), await desk.field("Message").inputValue()], ["after", "As I want it."]);
    await desk.button("Save").click();
    await desk.notice("Saved.").waitFor();
    const { shortcut, message } = await at.company.data("GET", path);
    assert.deepEqual([shortcut, message], ["after", "As I want it."]);
    await desk.leave();
  });

  it("loses nothing of what is typed while it is saved", async () => {
    const quick = await at.company.data("POST", "/quick-messages", { shortcut: "slow", message: "As it was." });
    const path = `/quick-messages/${quick.id}`;
    const desk = await at.open(path);
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await desk.page.route(`**/panel/api/v1${path}`, async (route) => {
      if (route.request().method() === "PUT") await held;
      await route.continue();
    });
    await desk.fill({ Shortcut: "slower" });
    await desk.button("Save").click();
    await desk.page.locator("form[aria-busy=true]").waitFor();
    await desk.fill({ Message: "Typed meanwhile." });
    letGo();
    await desk.notice("Saved.").waitFor();
    await desk.heading("slower").waitFor();
    assert.equal(await desk.field("Message").inputValue(), "Typed meanwhile.");
    await desk.button("Save").click();
    await eventually("it is saved as well", async () => (await at.company.data("GET", path)).message === "Typed meanwhile.");
    assert.equal((await at.company.data("GET", path)).shortcut, "slower");
    await desk.leave();
  });

  it("stays with its company when another one is opened: what is typed", async () => {
    const [one, other] = await companies();
    const desk = await installer();
    await openCompany(desk, one);
    await desk.turnTo("/tags/new");
    await desk.fill({ Name: "Of the first company" });
    await leaveCompany(desk);
    await openCompany(desk, other);
    await desk.turnTo("/tags/new");
    assert.equal(await desk.field("Name").inputValue(), "");
    await leaveCompany(desk);
    await openCompany(desk, one);
    await desk.turnTo("/tags/new");
    assert.equal(await desk.field("Name").inputValue(), "Of the first company");
    await desk.leave();
  });

  it("stays with its company when another one is opened: an import, which ends with its page", async () => {
    const [one, other] = await companies();
    const desk = await installer();
    const sentTo = [];
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await desk.page.route("**/panel/api/v1/contacts/import", async (route) => {
      sentTo.push(Number(route.request().headers()["hotline-company"]));
      await held;
      await route.continue();
    });
    await openCompany(desk, one);
    await desk.turnTo("/contacts/import");
    const rows = Array.from({ length: 500 }, (_, at) => `Contact ${at},55119${String(10_000_000 + at)}`);
    await desk.page.locator("#file").setInputFiles({ name: "contacts.csv", mimeType: "text/csv", buffer: Buffer.from(["name,number", ...rows].join("\n")) });
    await desk.button("Import").click();
    await eventually("the first part is on its way", () => sentTo.length === 1);
    await leaveCompany(desk);
    await openCompany(desk, other);
    const answered = desk.page.waitForResponse("**/panel/api/v1/contacts/import");
    letGo();
    assert.equal((await answered).status(), 200);
    await desk.turnTo("/tags");
    assert.deepEqual(sentTo, [one.id]);
    const count = async (company) => {
      const { key } = await at.service.cli("token", "create", "count", "--company", String(company.id), "--all");
      return eventually("the token is known", async () => {
        const answer = await fetch(`${at.service.url}/api/v1/contacts?perPage=100`, { headers: { Authorization: `Bearer ${key}` } });
        return answer.ok && { contacts: (await answer.json()).data.length };
      });
    };
    assert.deepEqual(await count(other), { contacts: 0 });
    assert.deepEqual(await count(one), { contacts: 100 }, "a page of the 200 of the first part");
    await desk.leave();
  });

  it("stays with its company when another tab signs somebody of another one in", async () => {
    const other = await at.service.company(["https://shop.example"]);
    const stranger = await other.person("Administrator", { name: "Stranger" });
    const desk = await at.open("/tags/new");
    await desk.fill({ Name: "Of one company alone" });
    await desk.context.addCookies([(await signIn(at.service, stranger)).cookie]);
    await desk.button("Create").click();
    await desk.page.getByRole("alert").filter({ hasText: "This no longer exists." }).waitFor();
    for (const company of [at.company, other]) assert.deepEqual(await company.data("GET", "/tags?search=Of%20one%20company"), []);
    await desk.page.evaluate(() => dispatchEvent(new Event("focus")));
    await desk.heading("This page belongs to another company").waitFor();
    await desk.leave();
  });

  it("goes on after a second factor was set up that is required from now on", async () => {
    const company = await at.service.company(["https://shop.example"]);
    const person = await company.person("Administrator", { name: "Late" });
    const desk = await at.open("/quick-messages/new", { person });
    await desk.fill({ Shortcut: "late", Message: "All of this stays." });
    const keeper = await installer();
    const changed = await keeper.page.evaluate(async (id) => {
      const init = { method: "PUT", headers: { "Content-Type": "application/json" }, body: '{"secondFactorRequired":true}' };
      return (await fetch(`/panel/api/v1/companies/${id}`, init)).status;
    }, person.session.data.company.id);
    assert.equal(changed, 200);
    await keeper.leave();
    await desk.button("Create").click();
    await desk.heading("Two-step verification").waitFor();
    await desk.page.getByLabel("Current password").fill(person.password);
    await desk.button("Continue").click();
    const secret = await desk.page.locator("code").first().textContent();
    await desk.page.getByLabel("Six-digit code").fill(totp(secret));
    await desk.button("Confirm").click();
    await desk.dialog().getByRole("heading", { name: "Recovery codes" }).waitFor();
    await desk.button("Done").click();
    await desk.heading("New quick message").waitFor();
    assert.equal(await desk.field("Message").inputValue(), "All of this stays.");
    await desk.button("Create").click();
    await desk.notice("Created.").waitFor();
    await desk.leave();
  });

  it("keeps no password for who comes next", async () => {
    const desk = await at.open("/account", { person: await at.company.person("Agent", { name: "Typing" }) });
    await desk.fill({ "Current password": "half of a passw", "New password": "half of another" });
    await desk.turnTo("/");
    await desk.turnTo("/account");
    await desk.field("Current password").waitFor();
    assert.deepEqual([await desk.field("Current password").inputValue(), await desk.field("New password").inputValue()], ["", ""]);
    await desk.leave();
  });

  it("is forbidden in words for people", async () => {
    const desk = await at.open("/tags/new");
    for (const [code, told] of [
      ["ERR_API_FORBIDDEN_SCOPE", "You don't have access. Ask an administrator."],
      ["ERR_API_COMPANY_INACTIVE", "This company is inactive. Ask the administrator of the server."],
      ["ERR_API_FORBIDDEN_ORIGIN", "a header of the proxy is missing"],
    ]) {
      const json = { error: { code, message: "a header of the proxy is missing" } };
      await desk.page.unrouteAll();
      await desk.page.route("**/panel/api/v1/tags", (route) => (route.request().method() === "POST" ? route.fulfill({ status: 403, json }) : route.continue()));
      await desk.fill({ Name: code });
      await desk.button("Create").click();
      await desk.page.getByRole("alert").getByText(told, { exact: true }).waitFor();
    }
    await desk.leave();
  });

  it("is refused in the reader's language, with its reason", async () => {
    const desk = await at.open("/profiles", { locale: "pt-BR" });
    const administrator = (await at.company.data("GET", "/profiles")).find(({ name }) => name === "Administrator");
    await desk.turnTo(`/profiles/${administrator.id}`);
    await desk.button("Excluir").click();
    await desk.dialog().getByRole("button", { name: "Excluir" }).click();
    await desk.dialog().getByRole("alert").filter({ hasText: /ainda|Pelo menos/ }).waitFor();
    await desk.leave();
    const careless = await at.open("/account", { locale: "es-ES", person: await at.company.person("Agent", { name: "Careless" }) });
    await careless.page.getByLabel("Contraseña actual").fill("no es esta, de verdad");
    await careless.page.getByLabel("Nueva contraseña").fill("una contraseña bien larga");
    await careless.button("Cambiar contraseña").click();
    await careless.text("Contraseña incorrecta.").waitFor();
    await careless.leave();
  });
});
