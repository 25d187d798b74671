// What comes between: a session or a connection that ends, somebody else, another company, a rule that changes meanwhile.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { NAMED_HOST } from "../../support/browser.mjs";
import { address, Panel, panelEnv, signIn } from "../../support/panel.mjs";
import { Service } from "../../support/service.mjs";
import { totp } from "../../support/totp.mjs";
import { eventually } from "../../support/wait.mjs";

describe("what is interrupted", () => {
  const env = panelEnv();

  const signInHere = async (panel, { email, password }) => {
    await panel.fill({ "E-mail": email, Password: password });
    await panel.button("Sign in").click();
  };

  /** An administrator of the installation, in a company that is open. */
  const installer = async () => {
    const email = address("installer");
    const { password } = await env.service.cli("admin", "create", email);
    return env.open("/companies", { person: { email, password } });
  };
  const openCompany = async (panel, { name }) => {
    await panel.turnTo("/companies");
    await panel.field("Search").fill(name);
    await panel.page.getByRole("button", { name: `Go to company: ${name}` }).click();
    await panel.page.locator("header .company", { hasText: name }).waitFor();
  };
  const leaveCompany = async (panel) => {
    await panel.button("All companies").click();
    await panel.heading("Companies").waitFor();
  };
  const companies = () => Promise.all(["First", "Second"].map((name) => env.service.cli("company", "create", `${name} ${address("company")}`)));

  it("works over plain HTTP under a name, where browsers lend less", async () => {
    const named = new Service(env.service.dataDir, env.service.url.replace("127.0.0.1", NAMED_HOST));
    const panel = await Panel.open({ browser: env.browser, service: named }, "/tags/new");
    assert.equal(await panel.page.evaluate(() => isSecureContext), false);
    await signInHere(panel, env.administrator);
    await panel.heading("New tag").waitFor();
    await panel.fill({ Name: "Over plain HTTP" });
    await panel.button("Create").click();
    await panel.notice("Created.").waitFor();
    await panel.turnTo(`/channels/${env.company.channel.id}`);
    await panel.page.getByRole("button", { name: /^Copy: / }).first().click();
    await panel.notice(/Press Ctrl\+C to copy/).waitFor();
    assert.ok((await panel.page.evaluate(() => getSelection().toString())).length > 0);
    await panel.leave();
  });

  it("is not made twice when its answer was lost", async () => {
    const panel = await env.open("/contact-lists/new");
    let lost = 0;
    await panel.page.route("**/panel/api/v1/contact-lists", async (route) => {
      if (route.request().method() !== "POST" || lost > 0) return route.continue();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    await panel.fill({ Name: "Once alone" });
    await panel.button("Create").click();
    await panel.page.getByRole("alert").filter({ hasText: "Can't reach the server" }).waitFor();
    await panel.button("Create").click();
    await panel.notice("Created.").waitFor();
    assert.equal(lost, 1);
    assert.equal((await env.company.data("GET", "/contact-lists?search=Once%20alone")).length, 1);
    await panel.leave();
  });

  it("is not made twice when a proxy has lost its answer", async () => {
    const panel = await env.open("/contact-lists");
    const html = { status: 502, contentType: "text/html", body: "<html><h1>502 Bad Gateway</h1></html>" };
    const foreign = { status: 504, json: { error: "upstream timed out" } };
    for (const lost of [html, foreign]) {
      const name = `Once behind a proxy ${lost.status}`;
      const [keys, made] = [[], []];
      await panel.page.unrouteAll();
      await panel.page.route("**/panel/api/v1/contact-lists", async (route) => {
        if (route.request().method() !== "POST") return route.continue();
        keys.push(route.request().headers()["idempotency-key"]);
        if (keys.length > 1) return route.continue();
        made.push((await route.fetch()).status());
        await route.fulfill(lost);
      });
      await panel.turnTo("/contact-lists/new");
      await panel.fill({ Name: name });
      await panel.button("Create").click();
      await panel.page.getByRole("alert").filter({ hasText: "Can't reach the server" }).waitFor();
      await panel.button("Create").click();
      await panel.notice("Created.").waitFor();
      assert.deepEqual([made, keys.length, new Set(keys).size], [[201], 2, 1], name);
      assert.equal((await env.company.data("GET", `/contact-lists?search=${encodeURIComponent(name)}`)).length, 1);
    }
    await panel.leave();
  });

  it("is not made twice when a proxy has lost the answer to a part of an import", async () => {
    const panel = await env.open("/contacts/import");
    const keys = [];
    await panel.page.route("**/panel/api/v1/contacts/import", async (route) => {
      keys.push(route.request().headers()["idempotency-key"]);
      if (keys.length > 1) return route.continue();
      await route.fetch();
      await route.fulfill({ status: 503, contentType: "text/html", body: "<html><h1>503 Service Unavailable</h1></html>" });
    });
    const buffer = Buffer.from("name\nImported behind a proxy\n");
    await panel.page.locator("#file").setInputFiles({ name: "contacts.csv", mimeType: "text/csv", buffer });
    const answered = panel.page.waitForResponse((response) => response.url().endsWith("/contacts/import") && response.ok());
    await panel.button("Import").click();
    await answered;
    assert.deepEqual([keys.length, new Set(keys).size], [2, 1]);
    assert.equal((await env.company.data("GET", "/contacts?search=Imported%20behind")).length, 1);
    await panel.leave();
  });

  it("is made once more after another change was made there", async () => {
    const tag = await env.company.data("POST", "/tags", { name: "Zero" });
    const panel = await env.open(`/tags/${tag.id}`);
    const named = async (name) => {
      await panel.fill({ Name: name });
      await panel.button("Save").click();
    };
    let lost = 0;
    await panel.page.route(`**/panel/api/v1/tags/${tag.id}`, async (route) => {
      if (route.request().method() !== "PUT" || lost > 0) return route.continue();
      lost += 1;
      await route.fetch();
      await route.abort();
    });
    await named("One");
    await panel.page.getByRole("alert").filter({ hasText: "Can't reach the server" }).waitFor();
    await named("Two");
    await panel.heading("Two").waitFor();
    await named("One");
    await panel.heading("One").waitFor();
    assert.equal((await env.company.data("GET", `/tags/${tag.id}`)).name, "One");
    await panel.leave();
  });

  it("leaves nothing to somebody else, whose own session may end as well", async () => {
    const [first, second] = [await env.company.person("Administrator", { name: "First" }), await env.company.person("Administrator", { name: "Second" })];
    const panel = await env.open("/quick-messages/new", { person: first });
    await panel.fill({ Shortcut: "first", Message: "Of the first." });
    await panel.context.clearCookies();
    await panel.button("Create").click();
    await panel.dialog().getByText("Your session has ended").waitFor();
    await panel.dialog().getByRole("button", { name: "Use another account" }).click();
    await signInHere(panel, second);
    await panel.heading("New quick message").waitFor();
    assert.equal(await panel.field("Shortcut").inputValue(), "");
    await panel.fill({ Shortcut: "second", Message: "Of the second." });
    await panel.context.clearCookies();
    await panel.button("Create").click();
    await panel.dialog().getByText("Your session has ended").waitFor();
    await panel.dialog().getByLabel("Password").fill(second.password);
    await panel.page.keyboard.press("Enter");
    await panel.notice("Created.").waitFor();
    const made = await env.company.data("GET", "/quick-messages?perPage=100");
    assert.deepEqual(made.map(({ shortcut }) => shortcut).filter((it) => ["first", "second"].includes(it)), ["second"]);
    await panel.leave();
  });

  it("undoes nothing that somebody else has changed meanwhile", async () => {
    const quick = await env.company.data("POST", "/quick-messages", { shortcut: "before", message: "As it was." });
    const path = `/quick-messages/${quick.id}`;
    const panel = await env.open(path);
    await panel.fill({ Message: "As I want it." });
    await panel.turnTo("/");
    await env.company.data("PUT", path, { shortcut: "after" });
    await panel.turnTo(path);
    await panel.text("Unsaved changes restored.").waitFor();
    assert.deepEqual([await panel.field("Shortcut").inputValue(), await panel.field("Message").inputValue()], ["after", "As I want it."]);
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    const { shortcut, message } = await env.company.data("GET", path);
    assert.deepEqual([shortcut, message], ["after", "As I want it."]);
    await panel.leave();
  });

  it("loses nothing of what is typed while it is saved", async () => {
    const quick = await env.company.data("POST", "/quick-messages", { shortcut: "slow", message: "As it was." });
    const path = `/quick-messages/${quick.id}`;
    const panel = await env.open(path);
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await panel.page.route(`**/panel/api/v1${path}`, async (route) => {
      if (route.request().method() === "PUT") await held;
      await route.continue();
    });
    await panel.fill({ Shortcut: "slower" });
    await panel.button("Save").click();
    await panel.page.locator("form[aria-busy=true]").waitFor();
    await panel.fill({ Message: "Typed meanwhile." });
    letGo();
    await panel.notice("Saved.").waitFor();
    await panel.heading("slower").waitFor();
    assert.equal(await panel.field("Message").inputValue(), "Typed meanwhile.");
    await panel.button("Save").click();
    await eventually("it is saved as well", async () => (await env.company.data("GET", path)).message === "Typed meanwhile.");
    assert.equal((await env.company.data("GET", path)).shortcut, "slower");
    await panel.leave();
  });

  it("stays with its company when another one is opened: what is typed", async () => {
    const [one, other] = await companies();
    const panel = await installer();
    await openCompany(panel, one);
    await panel.turnTo("/tags/new");
    await panel.fill({ Name: "Of the first company" });
    await leaveCompany(panel);
    await openCompany(panel, other);
    await panel.turnTo("/tags/new");
    assert.equal(await panel.field("Name").inputValue(), "");
    await leaveCompany(panel);
    await openCompany(panel, one);
    await panel.turnTo("/tags/new");
    assert.equal(await panel.field("Name").inputValue(), "Of the first company");
    await panel.leave();
  });

  it("stays with its company when another one is opened: an import, which ends with its page", async () => {
    const [one, other] = await companies();
    const panel = await installer();
    const sentTo = [];
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await panel.page.route("**/panel/api/v1/contacts/import", async (route) => {
      sentTo.push(Number(route.request().headers()["hotline-company"]));
      await held;
      await route.continue();
    });
    await openCompany(panel, one);
    await panel.turnTo("/contacts/import");
    const rows = Array.from({ length: 500 }, (_, at) => `Contact ${at},55119${String(10_000_000 + at)}`);
    await panel.page.locator("#file").setInputFiles({ name: "contacts.csv", mimeType: "text/csv", buffer: Buffer.from(["name,number", ...rows].join("\n")) });
    await panel.button("Import").click();
    await eventually("the first part is on its way", () => sentTo.length === 1);
    await leaveCompany(panel);
    await openCompany(panel, other);
    const answered = panel.page.waitForResponse("**/panel/api/v1/contacts/import");
    letGo();
    assert.equal((await answered).status(), 200);
    await panel.turnTo("/tags");
    assert.deepEqual(sentTo, [one.id]);
    const count = async (company) => {
      const { key } = await env.service.cli("token", "create", "count", "--company", String(company.id), "--all");
      return eventually("the token is known", async () => {
        const answer = await fetch(`${env.service.url}/api/v1/contacts?perPage=100`, { headers: { Authorization: `Bearer ${key}` } });
        return answer.ok && { contacts: (await answer.json()).data.length };
      });
    };
    assert.deepEqual(await count(other), { contacts: 0 });
    assert.deepEqual(await count(one), { contacts: 100 }, "a page of the 200 of the first part");
    await panel.leave();
  });

  it("stays with its company when another tab signs somebody of another one in", async () => {
    const other = await env.service.company(["https://shop.example"]);
    const stranger = await other.person("Administrator", { name: "Stranger" });
    const panel = await env.open("/tags/new");
    await panel.fill({ Name: "Of one company alone" });
    await panel.context.addCookies([(await signIn(env.service, stranger)).cookie]);
    await panel.button("Create").click();
    await panel.page.getByRole("alert").filter({ hasText: "This no longer exists." }).waitFor();
    for (const company of [env.company, other]) assert.deepEqual(await company.data("GET", "/tags?search=Of%20one%20company"), []);
    await panel.page.evaluate(() => dispatchEvent(new Event("focus")));
    await panel.heading("This page belongs to another company").waitFor();
    await panel.leave();
  });

  it("goes on after a second factor was set up that is required from now on", async () => {
    const company = await env.service.company(["https://shop.example"]);
    const person = await company.person("Administrator", { name: "Late" });
    const panel = await env.open("/quick-messages/new", { person });
    await panel.fill({ Shortcut: "late", Message: "All of this stays." });
    const keeper = await installer();
    const changed = await keeper.page.evaluate(async (id) => {
      const init = { method: "PUT", headers: { "Content-Type": "application/json" }, body: '{"secondFactorRequired":true}' };
      return (await fetch(`/panel/api/v1/companies/${id}`, init)).status;
    }, person.session.data.company.id);
    assert.equal(changed, 200);
    await keeper.leave();
    await panel.button("Create").click();
    await panel.heading("Two-step verification").waitFor();
    await panel.page.getByLabel("Current password").fill(person.password);
    await panel.button("Continue").click();
    const secret = await panel.page.locator("code").first().textContent();
    await panel.page.getByLabel("Six-digit code").fill(totp(secret));
    await panel.button("Confirm").click();
    await panel.dialog().getByRole("heading", { name: "Recovery codes" }).waitFor();
    await panel.button("Done").click();
    await panel.heading("New quick message").waitFor();
    assert.equal(await panel.field("Message").inputValue(), "All of this stays.");
    await panel.button("Create").click();
    await panel.notice("Created.").waitFor();
    await panel.leave();
  });

  it("keeps no password for who comes next", async () => {
    const panel = await env.open("/account", { person: await env.company.person("Agent", { name: "Typing" }) });
    await panel.fill({ "Current password": "half of a passw", "New password": "half of another" });
    await panel.turnTo("/");
    await panel.turnTo("/account");
    await panel.field("Current password").waitFor();
    assert.deepEqual([await panel.field("Current password").inputValue(), await panel.field("New password").inputValue()], ["", ""]);
    await panel.leave();
  });

  it("is forbidden in words for people", async () => {
    const panel = await env.open("/tags/new");
    for (const [code, told] of [
      ["ERR_API_FORBIDDEN_SCOPE", "You don't have access. Ask an administrator."],
      ["ERR_API_COMPANY_INACTIVE", "This company is inactive. Ask the administrator of the server."],
      ["ERR_API_FORBIDDEN_ORIGIN", "a header of the proxy is missing"],
    ]) {
      const json = { error: { code, message: "a header of the proxy is missing" } };
      await panel.page.unrouteAll();
      await panel.page.route("**/panel/api/v1/tags", (route) => (route.request().method() === "POST" ? route.fulfill({ status: 403, json }) : route.continue()));
      await panel.fill({ Name: code });
      await panel.button("Create").click();
      await panel.page.getByRole("alert").getByText(told, { exact: true }).waitFor();
    }
    await panel.leave();
  });

  it("is refused in the reader's language, with its reason", async () => {
    const panel = await env.open("/profiles", { locale: "pt-BR" });
    const administrator = (await env.company.data("GET", "/profiles")).find(({ name }) => name === "Administrator");
    await panel.turnTo(`/profiles/${administrator.id}`);
    await panel.button("Excluir").click();
    await panel.dialog().getByRole("button", { name: "Excluir" }).click();
    await panel.dialog().getByRole("alert").filter({ hasText: /ainda|Pelo menos/ }).waitFor();
    await panel.leave();
    const careless = await env.open("/account", { locale: "es-ES", person: await env.company.person("Agent", { name: "Careless" }) });
    await careless.page.getByLabel("Contraseña actual").fill("no es esta, de verdad");
    await careless.page.getByLabel("Nueva contraseña").fill("una contraseña bien larga");
    await careless.button("Cambiar contraseña").click();
    await careless.text("Contraseña incorrecta.").waitFor();
    await careless.leave();
  });
});
