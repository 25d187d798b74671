// Links that come by mail, and who tries too often: against a service with a relay.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";

import { checkLayout, checkPage } from "../../support/accessible.mjs";
import { launch, PHONE } from "../../support/browser.mjs";
import { Desk } from "../../support/panel.mjs";
import { Relay } from "../../support/relay.mjs";
import { Service } from "../../support/service.mjs";
import { eventually } from "../../support/wait.mjs";

/** A port nobody has, so that the service can be told its own address before it has it. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

describe("with a relay of mail", () => {
  const at = {};
  let relay;
  before(async () => {
    relay = await Relay.start();
    const address = `127.0.0.1:${await freePort()}`;
    const options = ["--smtp-url", relay.url, "--mail-from", "Acme <desk@acme.example>", "--public-url", `http://${address}`];
    [at.browser, at.service] = await Promise.all([launch(), Service.start("serve", { address, options: [...options, "--require-admin-second-factor"] })]);
    at.company = await at.service.company(["https://shop.example"]);
    at.administrator = await at.company.person("Administrator");
    at.open = (path, options = {}) => Desk.open(at, path, options);
  });
  after(async () => {
    await at.browser?.close();
    await at.service?.remove();
    await relay?.stop();
  });

  const linkIn = ({ text }) => /^http:\S+\/panel(\/welcome#\S+)$/m.exec(text)[1];

  it("an invitation is sent, and leads in", async () => {
    const user = await at.company.data("POST", "/users", { name: "Ana Souza", email: "ana@example.com" });
    const desk = await at.open(`/users/${user.id}`, { person: at.administrator, locale: "pt-BR" });
    await desk.button("Link de convite").click();
    await desk.text("Um e-mail com o link está a caminho de ana@example.com.").waitFor();
    await desk.leave();
    const [letter] = relay.letters;
    assert.equal(letter.headers.to, "ana@example.com");
    assert.match(letter.text, /^Olá, Ana Souza!/);
    assert.match(letter.text, /escolha uma senha aqui, em até 7 dias:/);
    const invited = await at.open(linkIn(letter));
    await invited.fill({ Password: "ana has a long password" });
    await invited.button("Set the password").click();
    await invited.link("Sign in").click();
    await invited.fill({ "E-mail": "ana@example.com", Password: "ana has a long password" });
    await invited.button("Sign in").click();
    await invited.heading("Hello, Ana Souza").waitFor();
    await invited.leave();
  });

  for (const [locale, texts] of Object.entries({
    en: ["Forgot your password?", "Choose another password", "Send the link", "a letter is on its way"],
    pt: ["Esqueceu a senha?", "Escolher outra senha", "Enviar o link", "um e-mail está a caminho"],
    es: ["¿Olvidó la contraseña?", "Elegir otra contraseña", "Enviar el enlace", "un correo va en camino"],
  })) {
    it(`who has forgotten a password asks for a letter, and the page does not say whether there is an account: ${locale}`, async () => {
      const [forgot, title, send, sent] = texts;
      const person = await at.company.person("Agent", { name: `Forgetful ${locale}` });
      const before = relay.letters.length;
      const said = [];
      for (const email of [`nobody-${locale}@example.com`, person.email]) {
        const desk = await at.open("/", { locale, ...(locale === "pt" ? PHONE : {}), colorScheme: locale === "es" ? "dark" : "light" });
        await desk.button(forgot).click();
        await desk.heading(title).waitFor();
        await checkPage(desk.page, title);
        await checkLayout(desk.page, title);
        await desk.screenshot(`panel-forgotten-${locale}`);
        // No address, and the page says so.
        await desk.page.keyboard.press("Enter");
        await desk.page.getByRole("alert").first().waitFor();
        await desk.page.keyboard.type(email);
        await desk.button(send).click();
        await desk.text(sent).waitFor();
        said.push((await desk.page.locator("main").innerText()).replaceAll(email, "…"));
        await checkLayout(desk.page, sent);
        await desk.leave();
      }
      assert.equal(said[0], said[1]);
      await eventually("the letter", () => relay.letters.length > before);
      const letter = relay.letters.at(-1);
      assert.equal(letter.headers.to, person.email);
      const desk = await at.open(linkIn(letter), { locale });
      const password = "quite another long password";
      await desk.page.locator("input[type=password]").fill(password);
      await desk.page.keyboard.press("Enter");
      await desk.page.locator("a.button").click();
      await desk.page.locator("input[type=email]").fill(person.email);
      await desk.page.locator("input[type=password]").fill(password);
      await desk.page.keyboard.press("Enter");
      await desk.page.locator("header .account", { hasText: person.name }).waitFor();
      await desk.leave();
      assert.equal(relay.letters.length, before + 1, "nobody else was written to");
    });
  }

  it("an administrator of the installation sets up a second factor before anything else", async () => {
    const { email, password } = await at.service.cli("admin", "create", "root@example.com");
    const desk = await at.open("/companies");
    await desk.fill({ "E-mail": email, Password: password });
    await desk.button("Sign in").click();
    await desk.text("A second factor is required here.").waitFor();
    await desk.page.goto(`${at.service.url}/panel/companies`);
    await desk.text("A second factor is required here.").waitFor();
    await desk.leave();
  });

  it("twenty wrong tries slow down, alike and as long for everybody, and keep nobody out who has been in before", async () => {
    const off = await at.company.person("Agent", { name: "Switched off" });
    await at.company.data("PUT", `/users/${off.id}`, { active: false });
    const known = await at.open("/", {});
    const person = await at.company.person("Agent", { name: "Known" });
    await known.fill({ "E-mail": person.email, Password: person.password });
    await known.button("Sign in").click();
    await known.heading("Hello, Known").waitFor();
    await known.page.getByRole("button", { name: "Sign out" }).click();
    await known.heading("Sign in").waitFor();

    const stranger = await at.open("/", {});
    const attempt = (email, password) => stranger.page.evaluate(async ([who, what]) => {
      const began = performance.now();
      const answer = await fetch("/panel/api/v1/session", { method: "POST", body: JSON.stringify({ email: who, password: what }), headers: { "Content-Type": "application/json" } });
      const { error } = await answer.json();
      return { status: answer.status, error: JSON.stringify(error), took: performance.now() - began, wait: Number(answer.headers.get("Retry-After")) };
    }, [email, password]);
    // One after the other, so that none waits for another's turn.
    const kinds = { wrong: [person.email, "not the password"], unknown: ["nobody@example.com", person.password], off: [off.email, off.password] };
    const took = {};
    for (const [kind, given] of Object.entries(kinds)) {
      took[kind] = [];
      for (let tries = 0; tries < 3; tries++) {
        const answer = await attempt(...given);
        assert.equal(answer.status, 401, kind);
        assert.equal(answer.error, took.first ?? (took.first = answer.error), kind);
        took[kind].push(answer.took);
      }
    }
    const best = Object.keys(kinds).map((kind) => Math.min(...took[kind]));
    assert.ok(Math.max(...best) - Math.min(...best) < 150, `${best.map(Math.round)} ms`);
    assert.ok(Math.min(...best) >= 395, `${best.map(Math.round)} ms`);

    const answers = await Promise.all(Array.from({ length: 18 }, () => attempt(person.email, "not the password")));
    const slowed = answers.filter(({ status }) => status === 429);
    assert.ok(slowed.length >= 8, `${slowed.length} of 18`);
    assert.ok(slowed.every(({ wait }) => wait >= 1), "they are told how long");
    // The page says so, also to who knows the password; but not where they have been in.
    await stranger.fill({ "E-mail": person.email, Password: person.password });
    // Another try is allowed every few seconds; a slow machine has had some.
    await eventually("no try is left", async () => (await attempt(person.email, "not the password")).status === 429);
    await stranger.button("Sign in").click();
    await stranger.page.getByRole("alert").filter({ hasText: "Too many tries. Wait" }).waitFor();
    await stranger.leave();
    await known.fill({ "E-mail": person.email, Password: person.password });
    await known.button("Sign in").click();
    await known.heading("Hello, Known").waitFor();
    await known.leave();
  });
});
