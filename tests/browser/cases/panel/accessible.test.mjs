// Every page, light and dark, on a phone and on a desktop, in three languages: axe-core, words that are not cut, and
// pictures for people to look at.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { checkLayout, checkPage } from "../../support/accessible.mjs";
import { DESKTOP, PHONE } from "../../support/browser.mjs";
import { address, panel, signIn } from "../../support/panel.mjs";

const LANGUAGES = ["en", "pt", "es"];

/** What a page may take on loopback, from its address to all that it shows. */
const TIME_MAX_MS = 1_000;

/** A company with one of each, and every page that shows them. */
async function pages(at) {
  const { company } = at;
  const make = (path, body) => company.data("POST", path, body);
  const queue = await make("/queues", { name: "Support", color: "#0f766e", greeting: "Hello {{firstName}}" });
  const tag = await make("/tags", { name: "VIP", color: "#b91c1c" });
  const category = await make("/wrapup-categories", { name: "Sales" });
  const type = await make("/wrapup-types", { name: "Sold", categoryId: category.id, queueIds: [queue.id] });
  const quick = await make("/quick-messages", { shortcut: "hello", message: "Hello {{firstName}}, how can we help?" });
  const variable = await make("/global-variables", { key: "address", value: "Main street 1" });
  const group = await make("/product-categories", { name: "Energy" });
  const product = await make("/products", { name: "Solar panel 400 W", sku: "SP-400", price: 1999.9, categoryId: group.id });
  const field = await make("/custom-fields", { name: "Plan", application: "contact", type: "select", options: ["Blue", "Red"] });
  const webhook = await make("/webhooks", { url: "https://example.com/hotline", description: "Shop" });
  const contact = await make("/contacts", { name: "Maria Lima", number: "5511999990000" });
  const list = await make("/contact-lists", { name: "Newsletter" });
  await make(`/contact-lists/${list.id}/contacts`, { contactIds: [contact.id] });
  const agent = await company.person("Agent", { name: "Ana Souza" });
  await company.data("PUT", `/queues/${queue.id}/users/${agent.id}`);
  const [profile] = await company.data("GET", "/profiles");
  const token = await newest(at, "/tokens");
  return [
    ...["/", "/account", "/company", "/audit-log", "/contacts/import", "/custom-fields/order"],
    ...["/tags", "/tags/new", `/tags/${tag.id}`, "/queues", "/queues/new", `/queues/${queue.id}`, `/queues/${queue.id}/users`],
    ...["/wrapup-types", `/wrapup-types/${type.id}`, "/wrapup-categories", "/quick-messages", `/quick-messages/${quick.id}`],
    ...["/global-variables", `/global-variables/${variable.id}`, "/products", `/products/${product.id}`, "/product-categories"],
    ...["/users", "/users/new", `/users/${agent.id}`, "/contact-lists", `/contact-lists/${list.id}/contacts`],
    ...["/custom-fields", `/custom-fields/${field.id}`, "/webhooks", "/webhooks/new", `/webhooks/${webhook.id}`, `/webhooks/${webhook.id}/deliveries`],
    ...["/tokens", "/tokens/new", `/tokens/${token.id}`, "/channels", "/channels/new", `/channels/${company.channel.id}`],
    ...["/profiles", "/profiles/new", `/profiles/${profile.id}`],
  ];
}

/** The first of a list that the panel alone has. */
async function newest(at, path) {
  at.administrator.session ??= await signIn(at.service, at.administrator);
  const { name, value } = at.administrator.session.cookie;
  const answer = await fetch(`${at.service.url}/panel/api/v1${path}`, { headers: { Cookie: `${name}=${value}` } });
  return (await answer.json()).data[0];
}

describe("the pages", () => {
  const at = panel();
  let known;

  for (const [device, size] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    for (const colorScheme of ["light", "dark"]) {
      it(`are accessible and whole on a ${device}, ${colorScheme}`, async () => {
        known ??= pages(at);
        const all = await known;
        const desk = await at.open("/", { ...size, colorScheme });
        const wrong = [];
        const tried = async (check) => check.catch((error) => wrong.push(`${error.message}\n${JSON.stringify(error.actual)}`));
        for (const [number, language] of LANGUAGES.entries()) {
          await desk.page.evaluate((name) => localStorage.setItem("hotline-panel-language", name), language);
          await desk.go("/");
          assert.equal(await desk.page.evaluate(() => document.documentElement.lang), language);
          for (const [place, path] of all.entries()) {
            // Words take the same place in the dark, where each page is looked at in one language.
            if (colorScheme === "dark" && place % LANGUAGES.length !== number && process.env.SCREENSHOTS !== "all") continue;
            await desk.turnTo(path);
            const what = `${path}, ${device}, ${colorScheme}, ${language}`;
            await tried(checkLayout(desk.page, what));
            const picture = () => desk.screenshot(`panel-${device}-${colorScheme}${path.replaceAll("/", "-").replace(/-$/, "-home")}-${language}`);
            if (process.env.SCREENSHOTS === "all" && place % LANGUAGES.length !== number) await picture();
            // Colours and roles are the same in every language; each page is looked at in one of them.
            if (place % LANGUAGES.length !== number) continue;
            await tried(checkPage(desk.page, what));
            await picture();
          }
        }
        assert.deepEqual(wrong, []);
        await desk.leave();
      });
    }
  }

  it("are accessible before anybody is in, in questions and with errors", async () => {
    for (const [name, options] of Object.entries({ desktop: { colorScheme: "light" }, phone: { ...PHONE, colorScheme: "dark" } })) {
      const gate = await at.open("/", { person: null, ...options });
      await checkPage(gate.page, "signing in");
      await checkLayout(gate.page, "signing in");
      await gate.screenshot(`panel-${name}-sign-in`);
      await gate.leave();
      const desk = await at.open("/tags/new", options);
      await desk.button("Create").click();
      await desk.page.locator(".wrong").waitFor();
      await checkPage(desk.page, "a form with errors");
      await desk.screenshot(`panel-${name}-errors`);
      const [tag] = await at.company.data("GET", "/tags");
      await desk.turnTo(`/tags/${tag.id}`);
      await desk.button("Delete").click();
      await desk.dialog().waitFor();
      await checkPage(desk.page, "a question");
      await desk.screenshot(`panel-${name}-question`);
      await desk.page.keyboard.press("Escape");
      await desk.dialog().waitFor({ state: "detached" });
      await desk.page.waitForFunction(() => document.activeElement.textContent === "Delete");
      await desk.turnTo("/channels/new");
      const isWhole = await desk.page.locator(".preview .frame").evaluate((frame) => {
        const [around, panel] = [frame, frame.firstElementChild.shadowRoot.querySelector(".panel")].map((it) => it.getBoundingClientRect());
        return panel.height >= 300 && panel.top >= around.top - 1 && panel.bottom <= around.bottom + 1 && panel.left >= around.left - 1 && panel.right <= around.right + 1;
      });
      assert.ok(isWhole, `the preview of a webchat stands in its frame: ${name}`);
      if (name === "phone") {
        await desk.button("Menu").click();
        await checkPage(desk.page, "the menu");
        await desk.screenshot("panel-phone-menu");
      }
      await desk.leave();
    }
  });

  it("of the installation are accessible too", async () => {
    const email = address("reader");
    const { password } = await at.service.cli("admin", "create", email);
    for (const [name, options] of Object.entries({ desktop: { colorScheme: "dark" }, phone: { ...PHONE, colorScheme: "light" } })) {
      const desk = await at.open("/", { person: { email, password }, ...options });
      for (const path of ["/", "/companies", "/companies/new", "/installation", "/audit-log", "/account"]) {
        await desk.turnTo(path);
        await checkPage(desk.page, path);
        await checkLayout(desk.page, path);
        await desk.screenshot(`panel-${name}-admin${path.replaceAll("/", "-").replace(/-$/, "-home")}`);
      }
      await desk.leave();
    }
  });

  it("are used by keyboard alone", async () => {
    const desk = await at.open("/", { person: null });
    const { keyboard } = desk.page;
    await keyboard.type(at.administrator.email);
    await keyboard.press("Tab");
    await keyboard.type(at.administrator.password);
    await keyboard.press("Enter");
    await desk.heading(`Hello, ${at.administrator.name}`).waitFor();
    const focused = () => desk.page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.id);
    const reach = async (name) => {
      for (let presses = 0; presses < 60; presses++) {
        if ((await focused()) === name) return;
        await keyboard.press("Tab");
      }
      assert.fail(`${name} is not reached`);
    };
    await reach("Tags");
    await keyboard.press("Enter");
    await desk.heading("Tags").waitFor();
    assert.equal(await focused(), "Tags", "whoever listens hears where they are");
    await reach("New tag");
    await keyboard.press("Enter");
    await desk.heading("New tag").waitFor();
    await keyboard.press("Tab");
    await keyboard.type("By keyboard");
    await keyboard.press("Enter");
    await desk.text("Created.").waitFor();
    await desk.row("By keyboard").waitFor();
    await desk.leave();
  });

  it("are reached by keyboard, each thing on each of them, and show where one is", async () => {
    known ??= pages(at);
    const desk = await at.open("/");
    const { keyboard } = desk.page;
    const lost = [];
    for (const path of await known) {
      await desk.turnTo(path);
      // What is pressed or typed into, from the content on: the menu before it is the same everywhere.
      const things = await desk.page.evaluate(() => {
        const all = [...document.querySelectorAll("#main :is(a[href], button, input, select, textarea, [tabindex='0'])")];
        window.things = all.filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.disabled && it.tabIndex >= 0 && !it.closest("[inert]") && it.type !== "radio");
        window.met = new Set();
        window.unmarked = [];
        document.getElementById("main").focus();
        return window.things.length;
      });
      for (let presses = 0; presses < things + 12; presses++) {
        await keyboard.press("Tab");
        const isOver = await desk.page.evaluate(() => {
          const now = document.activeElement.shadowRoot?.activeElement ?? document.activeElement;
          if (!document.activeElement.closest("#main")) return true;
          if (!window.met.has(now)) {
            const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(now);
            if ((outlineStyle === "none" || outlineWidth === "0px") && boxShadow === "none") window.unmarked.push(now.outerHTML.slice(0, 120));
          }
          window.met.add(now);
          return false;
        });
        if (isOver) break;
      }
      const missed = await desk.page.evaluate(() => [...window.things.filter((it) => !window.met.has(it)), ...window.unmarked].map((it) => it.outerHTML?.slice(0, 120) ?? it));
      if (missed.length) lost.push(`${path}: ${missed.join(" | ")}`);
    }
    assert.deepEqual(lost, []);
    await desk.leave();
  });

  it("are there within a second, each of them", async (test) => {
    known ??= pages(at);
    const desk = await at.open("/");
    const took = [];
    for (const path of await known) {
      let best = Infinity;
      // What else this machine does is no page's fault: the best of three counts, and most need one.
      for (let tries = 0; tries < 3 && best >= TIME_MAX_MS; tries++) {
        const began = performance.now();
        await desk.go(path);
        best = Math.min(best, performance.now() - began);
      }
      took.push([Math.round(best), path]);
    }
    took.sort(([one], [other]) => other - one);
    test.diagnostic(`loaded anew, the slowest of ${took.length}: ${took.slice(0, 3).map(([ms, path]) => `${path} ${ms} ms`).join(", ")}; median ${took[took.length >> 1][0]} ms`);
    assert.ok(took[0][0] < TIME_MAX_MS, JSON.stringify(took.slice(0, 3)));
    await desk.leave();
  });
});
