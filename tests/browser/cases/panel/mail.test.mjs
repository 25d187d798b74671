// Links that come by mail, and who tries too often: against a service with a relay.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { checkLayout, checkPage } from "../../support/accessible.mjs";
import { PHONE, withBrowser } from "../../support/browser.mjs";
import { chosen, measures } from "../../support/extent.mjs";
import { Panel, fromElsewhere } from "../../support/panel.mjs";
import { Relay } from "../../support/relay.mjs";
import { freePort, Service } from "../../support/service.mjs";
import { eventually } from "../../support/wait.mjs";

/** What the service waits for before it refuses a try, but for what browsers round off. */
const FAILS_AFTER_MS = 395;

describe("with a relay of mail", () => {
  const env = {};
  let relay;
  withBrowser(env);
  before(async () => {
    relay = await Relay.start();
    // The service has to know its own address before it has it.
    const address = `127.0.0.1:${await freePort()}`;
    const options = ["--smtp-url", relay.url, "--mail-from", "Acme <desk@acme.example>", "--public-url", `http://${address}`];
    env.service = await Service.start("serve", { address, options: [...options, "--require-admin-second-factor"] });
    env.company = await env.service.company(["https://shop.example"]);
    env.administrator = await env.company.person("Administrator");
    env.open = (path, options = {}) => Panel.open(env, path, options);
  });
  after(async () => {
    await env.service?.remove();
    await relay?.stop();
  });

  const linkIn = ({ text }) => /^http:\S+\/panel(\/welcome#\S+)$/m.exec(text)[1];

  it("an invitation is sent, and leads in", async () => {
    const user = await env.company.data("POST", "/users", { name: "Ana Souza", email: "ana@example.com" });
    const panel = await env.open(`/users/${user.id}`, { person: env.administrator, locale: "pt-BR" });
    await panel.button("Link de convite").click();
    await panel.notice("O link foi enviado para ana@example.com.").waitFor();
    await panel.leave();
    const letter = await eventually("the letter", () => relay.letters[0]);
    assert.equal(letter.headers.to, "ana@example.com");
    assert.match(letter.text, /^Olá, Ana Souza,/);
    assert.match(letter.text, /Escolha sua senha para .* em até 7 dias:/);
    const invited = await env.open(linkIn(letter));
    await invited.fill({ Password: "ana has a long password" });
    await invited.button("Set password").click();
    await invited.link("Sign in").click();
    await invited.fill({ "E-mail": "ana@example.com", Password: "ana has a long password" });
    await invited.button("Sign in").click();
    await invited.heading("Hello, Ana Souza").waitFor();
    await invited.leave();
  });

  it("an inactive user is offered no link", async () => {
    const user = await env.company.data("POST", "/users", { name: "Ben Lima", email: "ben@example.com", active: false });
    const panel = await env.open(`/users/${user.id}`, { person: env.administrator });
    for (const name of ["Invitation link", "Reset password"]) {
      await panel.button(name).waitFor();
      assert.equal(await panel.button(name).isDisabled(), true, name);
      assert.equal(await panel.button(name).getAttribute("title"), "This person is inactive. Activate them first.");
    }
    await panel.page.getByRole("checkbox", { name: "Active" }).check();
    await panel.button("Save").click();
    await eventually("the links are offered", () => panel.button("Invitation link").isEnabled());
    await panel.leave();
  });

  for (const [locale, texts] of chosen([
    ["es", ["¿Olvidó la contraseña?", "Restablecer su contraseña", "Enviar enlace", "le hemos enviado un enlace"]],
    ["en", ["Forgot your password?", "Reset your password", "Send link", "we've sent it a link"]],
    ["pt", ["Esqueceu a senha?", "Redefinir sua senha", "Enviar link", "enviamos um link"]],
  ])) {
    it(`who has forgotten a password asks for a letter, and the page does not say whether there is an account: ${locale}`, async () => {
      const [forgot, title, send, sent] = texts;
      const person = await env.company.person("Agent", { name: `Forgetful ${locale}` });
      const before = relay.letters.length;
      const said = [];
      for (const email of [`nobody-${locale}@example.com`, person.email]) {
        const panel = await env.open("/", { locale, ...(locale === "pt" ? PHONE : {}), colorScheme: locale === "es" ? "dark" : "light" });
        await panel.button(forgot).click();
        await panel.heading(title).waitFor();
        await checkPage(panel.page, title);
        await checkLayout(panel.page, title);
        await panel.screenshot(`panel-forgotten-${locale}`);
        // No address, and the page says so.
        await panel.focus("input[type=email]");
        await panel.page.keyboard.press("Enter");
        await panel.page.getByRole("alert").first().waitFor();
        await panel.page.keyboard.type(email);
        await panel.button(send).click();
        await panel.text(sent).waitFor();
        said.push((await panel.page.locator("main").innerText()).replaceAll(email, "…"));
        await checkLayout(panel.page, sent);
        await panel.leave();
      }
      assert.equal(said[0], said[1]);
      await eventually("the letter", () => relay.letters.length > before);
      const letter = relay.letters.at(-1);
      assert.equal(letter.headers.to, person.email);
      const panel = await env.open(linkIn(letter), { locale });
      const password = "quite another long password";
      await panel.page.locator("input[type=password]").fill(password);
      await panel.page.keyboard.press("Enter");
      await panel.page.locator("a.button").click();
      await panel.page.locator("input[type=email]").fill(person.email);
      await panel.page.locator("input[type=password]").fill(password);
      await panel.page.keyboard.press("Enter");
      await panel.page.locator("header .account", { hasText: person.name }).waitFor();
      await panel.leave();
      assert.equal(relay.letters.length, before + 1, "nobody else was written to");
    });
  }

  it("an administrator of the installation sets up a second factor before anything else", async () => {
    const { email, password } = await env.service.cli("admin", "create", "root@example.com");
    const panel = await env.open("/companies");
    await panel.fill({ "E-mail": email, Password: password });
    await panel.button("Sign in").click();
    await panel.text("Two-step verification is required here.").waitFor();
    await panel.page.goto(`${env.service.url}/panel/companies`);
    await panel.text("Two-step verification is required here.").waitFor();
    await panel.leave();
  });

  /** A page somewhere else, from where nobody has tried anything yet. */
  const elsewhere = async () => Panel.open({ ...env, service: await fromElsewhere(env.service) }, "/");

  /** Tries to sign in within this page; answers how that was refused, and after how long. */
  const attempt = (panel, email, password) =>
    panel.page.evaluate(async ([who, what]) => {
      const began = performance.now();
      const answer = await fetch("/panel/api/v1/session", { method: "POST", body: JSON.stringify({ email: who, password: what }), headers: { "Content-Type": "application/json" } });
      const { error } = await answer.json();
      return { status: answer.status, error: JSON.stringify(error), took: performance.now() - began, wait: Number(answer.headers.get("Retry-After")) };
    }, [email, password]);

  /** Tries that fail, each for another reason, each so many times: one after the other, so that none waits for another's turn. */
  const failures = async (panel, name, times) => {
    const [person, off] = [await env.company.person("Agent", { name }), await env.company.person("Agent", { name: `${name} off` })];
    await env.company.data("PUT", `/users/${off.id}`, { active: false });
    const kinds = { wrong: [person.email, "not the password"], unknown: ["nobody@example.com", person.password], off: [off.email, off.password] };
    const answers = {};
    for (const [kind, given] of Object.entries(kinds)) {
      answers[kind] = [];
      for (let tries = 0; tries < times; tries++) answers[kind].push(await attempt(panel, ...given));
    }
    return answers;
  };

  it("a try that fails is answered alike for everybody, and not before its time", async () => {
    const panel = await elsewhere();
    const answers = Object.values(await failures(panel, "Mistaken", 1)).flat();
    for (const { status, error, took } of answers) {
      assert.deepEqual([status, error], [401, answers[0].error]);
      assert.ok(took >= FAILS_AFTER_MS, `${Math.round(took)} ms`);
    }
    await panel.leave();
  });

  it("a try that fails takes as long for everybody", measures, async () => {
    const panel = await elsewhere();
    const answers = await failures(panel, "Measured", 3);
    const best = Object.values(answers).map((all) => Math.min(...all.map(({ took }) => took)));
    assert.ok(Math.max(...best) - Math.min(...best) < 150, `${best.map(Math.round)} ms`);
    await panel.leave();
  });

  it("wrong tries slow down, and keep nobody out who has been in before", async () => {
    const person = await env.company.person("Agent", { name: "Known" });
    const signIn = async (panel) => {
      await panel.fill({ "E-mail": person.email, Password: person.password });
      await panel.button("Sign in").click();
    };
    const known = await env.open("/");
    await signIn(known);
    await known.heading("Hello, Known").waitFor();
    await known.page.getByRole("button", { name: "Sign out" }).click();
    await known.heading("Sign in").waitFor();

    const stranger = await env.open("/");
    const wrong = () => attempt(stranger, person.email, "not the password");
    // Ten are allowed, and one more every few seconds: a slow machine may need another round.
    const slowed = await eventually("many are too many", async () => {
      const answers = await Promise.all(Array.from({ length: 18 }, wrong));
      const refused = answers.filter(({ status }) => status === 429);
      return refused.length >= 8 && refused;
    });
    assert.ok(slowed.every(({ wait }) => wait >= 1), "they are told how long");
    // The page says so, also to who knows the password.
    const refusal = stranger.page.getByRole("alert").filter({ hasText: "Too many attempts. Wait" });
    await eventually("who knows the password is told to wait", async () => {
      await eventually("no try is left", async () => (await wrong()).status === 429);
      await signIn(stranger);
      await refusal.or(stranger.heading("Hello, Known")).waitFor();
      if (await refusal.isVisible()) return true;
      // The next try had just become theirs. Now they have been in, which is forgotten.
      await stranger.context.clearCookies();
      await stranger.go("/");
      return false;
    });
    await stranger.leave();
    // But not where they have been in.
    await signIn(known);
    await known.heading("Hello, Known").waitFor();
    await known.leave();
  });
});
