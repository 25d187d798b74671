// Where things are: a link opens what it names, and what one has made is in sight.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";

import { withBrowser } from "../../support/browser.mjs";
import { address, Panel, panelEnv } from "../../support/panel.mjs";
import { Service } from "../../support/service.mjs";
import { eventually } from "../../support/wait.mjs";

const pathOf = (panel) => new URL(panel.page.url()).pathname;

/** An administrator of the installation. */
async function installer(service) {
  const email = address("installer");
  const { password } = await service.cli("admin", "create", email);
  return { email, password };
}

/** What is wider than the window, or than the box it stands in. */
const overflow = (page) =>
  page.evaluate(() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? [`the page: ${document.documentElement.scrollWidth} of ${innerWidth}`] : [];
    for (const cell of document.querySelectorAll("main th:not(.actions), main td:not(.actions), main h1, .chip")) {
      const text = document.createRange();
      text.selectNodeContents(cell);
      const [inside, box] = [text.getBoundingClientRect(), cell.getBoundingClientRect()];
      if (inside.width && (inside.right > box.right + 1 || inside.left < box.left - 1)) wide.push(`${cell.tagName} ${cell.textContent.slice(0, 40)}`);
    }
    return wide;
  });

describe("an address", () => {
  const env = panelEnv();

  it("names the company, and opens in any tab for an administrator of the installation", async () => {
    const person = await installer(env.service);
    const other = await env.service.company([]);
    const tag = await other.data("POST", "/tags", { name: "Of the other" });
    const companyId = other.id;
    const panel = await Panel.open(env, `/c/${companyId}/tags/${tag.id}`, { person });
    await panel.heading("Of the other").waitFor();
    await panel.page.locator("header .company").waitFor();
    // Another tab knows nothing of this one, and each keeps its company.
    const tab = new Panel(await panel.context.newPage(), env.service);
    await tab.go(`/c/${companyId}/tags`);
    await tab.row("Of the other").waitFor();
    await tab.go("/server/companies");
    await tab.heading("Companies").waitFor();
    assert.equal(await tab.page.locator("header .company").count(), 0);
    await panel.page.reload();
    await panel.heading("Of the other").waitFor();
    // Through pages of the installation and back.
    await panel.link("Companies").click();
    await panel.heading("Companies").waitFor();
    assert.equal(pathOf(panel), "/panel/server/companies");
    await panel.page.goBack();
    await panel.heading("Of the other").waitFor();
    assert.equal(pathOf(panel), `/panel/c/${companyId}/tags/${tag.id}`);
    for (const path of ["tags/999999", "contact-lists/999999", "queues/999999/users", "webhooks/999999/deliveries"]) {
      await panel.go(`/c/${companyId}/${path}`);
      await panel.heading("This no longer exists.").waitFor();
      assert.equal(await panel.button("Try again").count(), 0, path);
      await panel.page.locator("a.back").click();
      await eventually("it leads back to the list", () => pathOf(panel) === `/panel/c/${companyId}/${path.split("/")[0]}`);
    }
    await panel.go(`/c/${companyId}/tags/%E0`);
    await panel.heading("Page not found").waitFor();
    await panel.go("/c/999999/tags");
    await panel.heading("Page not found").waitFor();
    await panel.link("Go to home page").click();
    await panel.heading(`Hello, ${person.email}`).waitFor();
    await panel.leave();
  });

  it("without a company leads a user into theirs, and one of another company to nothing of it", async () => {
    const panel = await env.open("/tags");
    const own = env.company.id;
    assert.equal(pathOf(panel), `/panel/c/${own}/tags`);
    const other = await env.service.company([]);
    const asked = [];
    panel.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await panel.go(`/c/${other.id}/tags`);
    await panel.heading("This page belongs to another company").waitFor();
    assert.ok(!asked.includes("/panel/api/v1/tags"), "nothing is asked for in its name");
    await panel.link("Tags").click();
    await panel.heading("Tags").waitFor();
    assert.equal(pathOf(panel), `/panel/c/${own}/tags`);
    await panel.go("/server/companies");
    await panel.heading("This page belongs to another company").waitFor();
    await panel.leave();
  });

  it("says in which of several companies its reader signs in", async () => {
    const email = address("twice");
    const password = "a password of two companies";
    const companies = await Promise.all([env.service.company([]), env.service.company([])]);
    const ids = [];
    for (const company of companies) {
      await company.person("Administrator", { name: "Twice", email, password });
      const mark = await company.data("POST", "/tags", { name: `Mark ${randomUUID().slice(0, 8)}` });
      ids.push([company, mark]);
    }
    for (const [company, mark] of ids) {
      const panel = await Panel.open(env, `/c/${company.id}/tags/${mark.id}`);
      await panel.fill({ "E-mail": email, Password: password });
      await panel.button("Sign in").click();
      await panel.heading(mark.name).waitFor();
      await panel.leave();
    }
  });
});

describe("an installation with one company", () => {
  const env = {};
  withBrowser(env);
  before(async () => (env.service = await Service.start("serve")));
  after(() => env.service?.remove());

  it("opens it for its administrator, and its list of companies once there is another", async () => {
    const person = await installer(env.service);
    const empty = await Panel.open(env, "/", { person });
    assert.equal(pathOf(empty), "/panel/server/");
    await empty.leave();
    const company = await env.service.company([]);
    const { id, name } = company;
    const panel = await Panel.open(env, "/", { person });
    await panel.page.locator("header .company", { hasText: name }).waitFor();
    assert.equal(pathOf(panel), `/panel/c/${id}/`);
    await panel.go("/tags");
    assert.equal(pathOf(panel), `/panel/c/${id}/tags`);
    await panel.go("/server/");
    assert.equal(pathOf(panel), "/panel/server/", "who asks for the installation gets it");
    await env.service.company([]);
    await panel.go("/");
    assert.equal(pathOf(panel), "/panel/server/");
    await panel.leave();
  });
});

describe("a list", () => {
  const env = panelEnv();

  it("has the newest first, what was just made in sight, and is turned round", async () => {
    for (let number = 1; number <= 60; number++) await env.company.data("POST", "/products", { name: `Old ${number}`, price: 1 });
    const panel = await env.open("/products?search=old&page=2");
    await panel.row("Old 35").waitFor();
    await panel.link("New product").first().click();
    await panel.focus("input[type=text]");
    await panel.page.keyboard.type("Just made");
    await panel.fill({ Price: "2" });
    await panel.page.keyboard.press("Enter");
    await panel.focus("tbody tr:first-child.fresh a", "Just made");
    assert.ok(await panel.row("Just made").isVisible());
    await panel.field("Order").selectOption("asc");
    await panel.row(/^Old 1\b/).waitFor();
    assert.match(panel.page.url(), /order=asc/);
    await panel.page.reload();
    await panel.row(/^Old 1\b/).waitFor();
    assert.equal(await panel.page.locator("tr.fresh").count(), 0);
    await panel.leave();
  });

  it("lets nothing out of its column, however long somebody's words are", async () => {
    const long = "x".repeat(60);
    await env.company.data("POST", "/users", { name: `Ana${"a".repeat(120)}`, email: `${long}@${"y".repeat(60)}.example` });
    await env.company.data("POST", "/products", { name: "P".repeat(200), sku: "S".repeat(90), price: 1_234_567_890 });
    await env.company.data("POST", "/tags", { name: "T".repeat(200), color: "#0f766e" });
    await env.company.data("POST", "/quick-messages", { shortcut: "q".repeat(40), message: "M".repeat(2_000) });
    await env.company.data("POST", "/global-variables", { key: `k${"k".repeat(40)}`, value: "V".repeat(1_000) });
    await env.company.data("POST", "/webhooks", { url: `https://example.com/${"w".repeat(300)}`, description: "D".repeat(100) });
    const lists = ["/users", "/products", "/tags", "/quick-messages", "/global-variables", "/webhooks", "/channels", "/queues"];
    for (const viewport of [{ width: 1400, height: 900 }, { width: 900, height: 900 }, { width: 390, height: 800 }, { width: 320, height: 700 }]) {
      const panel = await env.open("/", { viewport });
      for (const path of lists) {
        await panel.turnTo(path);
        assert.deepEqual(await overflow(panel.page), [], `${path} at ${viewport.width}`);
      }
      await panel.leave();
    }
  });

  it("shows words and numbers in the direction and the region of those who wrote and read them", async () => {
    const hebrew = "שלום עולם, 12.";
    await env.company.data("POST", "/tags", { name: hebrew, color: "#0f766e" });
    const panel = await env.open("/tags", { locale: "en-GB", timezoneId: "Europe/London" });
    const cell = panel.row(hebrew).getByRole("link", { name: hebrew });
    assert.equal(await cell.evaluate((link) => getComputedStyle(link.closest("bdi")).unicodeBidi), "isolate");
    assert.equal(await cell.evaluate((link) => getComputedStyle(link.closest("bdi")).direction), "rtl");
    await cell.click();
    await panel.heading(hebrew).waitFor();
    assert.equal(await panel.heading().evaluate((heading) => getComputedStyle(heading).direction), "rtl");
    assert.equal(await panel.field("Name").evaluate((field) => getComputedStyle(field).direction), "rtl");
    await panel.turnTo("/tokens");
    const moment = panel.page.locator("tbody time").first();
    await moment.waitFor();
    // The day comes before the month; and where the pointer rests, the zone is named.
    assert.match((await moment.textContent()).replaceAll("\u00a0", " "), /^\d{1,2} [A-Z][a-z]{2,3} \d{4}, \d{2}:\d{2}$/);
    assert.match(await moment.getAttribute("title"), /Greenwich|British/);
    await panel.leave();
  });
});

describe("the focus", () => {
  const env = panelEnv();

  it("is where somebody types next", async () => {
    const panel = await env.open("/", { person: null });
    await panel.focus("input[type=email]");
    await panel.fill({ "E-mail": env.administrator.email, Password: "not the password" });
    await panel.button("Sign in").click();
    await panel.text("Wrong e-mail or password").waitFor();
    await panel.focus("input[type=password]");
    await panel.page.keyboard.type(env.administrator.password);
    await panel.page.keyboard.press("Enter");
    await panel.heading(`Hello, ${env.administrator.name}`).waitFor();

    await panel.turnTo("/tags/new");
    await panel.focus("input[type=text]");
    await panel.page.keyboard.type("Kept");
    await panel.context.clearCookies();
    await panel.page.keyboard.press("Enter");
    await panel.dialog().getByText("Your session has ended").waitFor();
    await panel.focus("input[type=password]");
    await panel.page.keyboard.type(env.administrator.password);
    await panel.page.keyboard.press("Enter");
    await panel.focus("tbody a", "Kept");
    await panel.leave();
  });
});

describe("a channel that was just made", () => {
  const env = panelEnv();

  for (const viewport of [{ width: 1400, height: 900 }, { width: 390, height: 844 }]) {
    it(`shows the code to embed at ${viewport.width} x ${viewport.height}, without scrolling`, async () => {
      const panel = await env.open("/channels/new", { viewport });
      await panel.fill({ Name: "Site", "Allowed websites": "https://shop.example" });
      await panel.button("Create").click();
      const code = panel.page.locator("main code", { hasText: "<script" });
      await code.waitFor();
      await eventually("it is in the window", () =>
        code.evaluate((element) => {
          const { top, bottom } = element.getBoundingClientRect();
          return top >= 0 && bottom <= innerHeight;
        }),
      );
      await panel.leave();
    });
  }
});

describe("what is counted", () => {
  const env = panelEnv();

  it("is said as what it is: in use, in the way of another change, or as many as there may be", async () => {
    const panel = await env.open("/", { locale: "en-US" });
    const queue = await env.company.data("POST", "/queues", { name: "In the way", color: "#0f766e" });
    const told = async (method, path, reason, by) => {
      await panel.page.unrouteAll();
      const json = { error: { code: "ERR_API_CONFLICT", message: "no", details: { state: "no", reason, by } } };
      await panel.page.route(`**/panel/api/v1${path}`, (route) => (route.request().method() === method ? route.fulfill({ status: 409, json }) : route.fallback()));
    };
    const deleted = async (by, reason, text) => {
      await told("DELETE", `/queues/${queue.id}`, reason, by);
      await panel.go(`/queues/${queue.id}`);
      await panel.button("Delete").click();
      await panel.dialog().getByRole("button", { name: "Delete" }).click();
      await panel.dialog().getByText(text, { exact: true }).waitFor();
    };
    await deleted([{ type: "ticket", count: 2 }, { type: "channel", count: 0 }], "open_tickets", "Can't delete: in use by 2 open conversations.");
    await deleted([{ type: "ticket", count: 1 }, { type: "webchatSession", count: 2 }], "open_ticket", "Can't delete: in use by 1 open conversation and 2 active visitor sessions.");
    await deleted([{ type: "ticket", count: 3 }], "in_use", "Can't delete: in use by 3 conversations.");
    await deleted([{ type: "something new", count: 1 }], "in_use", "Can't delete: in use by 1 record.");
    const changed = async (path, type, reason, text) => {
      await told("POST", path, reason, [{ type, count: 1_000 }]);
      await panel.go(`${path}/new`);
      await panel.button("Create").click();
      await panel.page.getByRole("alert").getByText(text, { exact: true }).waitFor();
    };
    await changed("/webhooks", "webhook", "limit", "You already have the maximum of 1,000 webhooks.");
    await changed("/wrapup-types", "wrap-up type", "limit", "You already have the maximum of 1,000 wrap-up types.");
    await changed("/tags", "contact", "has_values", "Can't change the type: the field has values in 1,000 contacts.");
    await changed("/tags", "card", "options_in_use", "Can't remove options that are in use in 1,000 cards.");
    await panel.leave();
  });

  it("is inflected as each language does", async () => {
    const queue = await env.company.data("POST", "/queues", { name: "Counted", color: "#0f766e" });
    const panel = await env.open("/");
    const told = (count) =>
      panel.page.route(`**/panel/api/v1/queues/${queue.id}`, (route) =>
        route.request().method() === "DELETE"
          ? route.fulfill({ status: 409, json: { error: { code: "ERR_API_CONFLICT", message: "no", details: { by: [{ type: "channel", count }] } } } })
          : route.fallback(),
      );
    for (const [language, one, two] of [["en", "1 channel.", "2 channels."], ["pt", "1 canal.", "2 canais."], ["es", "1 canal.", "2 canales."]]) {
      await panel.page.evaluate((name) => localStorage.setItem("hotline-panel-language", name), language);
      for (const [count, text] of [[1, one], [2, two]]) {
        await panel.page.unrouteAll();
        await told(count);
        await panel.go(`/queues/${queue.id}`);
        await panel.page.locator(".button.danger").first().click();
        await panel.dialog().locator(".button.danger").click();
        await panel.dialog().getByText(text).waitFor();
      }
    }
    await panel.leave();
  });
});
