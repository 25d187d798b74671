// Where things are: a link opens what it names, and what one has made is in sight.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";

import { withBrowser } from "../../support/browser.mjs";
import { address, Desk, panel } from "../../support/panel.mjs";
import { Service } from "../../support/service.mjs";
import { eventually } from "../../support/wait.mjs";

const pathOf = (desk) => new URL(desk.page.url()).pathname;

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
  const at = panel();

  it("names the company, and opens in any tab for an administrator of the installation", async () => {
    const person = await installer(at.service);
    const other = await at.service.company([]);
    const tag = await other.data("POST", "/tags", { name: "Of the other" });
    const companyId = other.id;
    const desk = await Desk.open(at, `/c/${companyId}/tags/${tag.id}`, { person });
    await desk.heading("Of the other").waitFor();
    await desk.page.locator("header .company").waitFor();
    // Another tab knows nothing of this one, and each keeps its company.
    const tab = new Desk(await desk.context.newPage(), at.service);
    await tab.go(`/c/${companyId}/tags`);
    await tab.row("Of the other").waitFor();
    await tab.go("/server/companies");
    await tab.heading("Companies").waitFor();
    assert.equal(await tab.page.locator("header .company").count(), 0);
    await desk.page.reload();
    await desk.heading("Of the other").waitFor();
    // Through pages of the installation and back.
    await desk.link("Companies").click();
    await desk.heading("Companies").waitFor();
    assert.equal(pathOf(desk), "/panel/server/companies");
    await desk.page.goBack();
    await desk.heading("Of the other").waitFor();
    assert.equal(pathOf(desk), `/panel/c/${companyId}/tags/${tag.id}`);
    for (const path of ["tags/999999", "contact-lists/999999", "queues/999999/users", "webhooks/999999/deliveries"]) {
      await desk.go(`/c/${companyId}/${path}`);
      await desk.heading("This no longer exists.").waitFor();
      assert.equal(await desk.button("Try again").count(), 0, path);
      await desk.page.locator("a.back").click();
      await eventually("it leads back to the list", () => pathOf(desk) === `/panel/c/${companyId}/${path.split("/")[0]}`);
    }
    await desk.go(`/c/${companyId}/tags/%E0`);
    await desk.heading("Page not found").waitFor();
    await desk.go("/c/999999/tags");
    await desk.heading("Page not found").waitFor();
    await desk.link("Go to home page").click();
    await desk.heading(`Hello, ${person.email}`).waitFor();
    await desk.leave();
  });

  it("without a company leads a user into theirs, and one of another company to nothing of it", async () => {
    const desk = await at.open("/tags");
    const own = at.company.id;
    assert.equal(pathOf(desk), `/panel/c/${own}/tags`);
    const other = await at.service.company([]);
    const asked = [];
    desk.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await desk.go(`/c/${other.id}/tags`);
    await desk.heading("This page belongs to another company").waitFor();
    assert.ok(!asked.includes("/panel/api/v1/tags"), "nothing is asked for in its name");
    await desk.link("Tags").click();
    await desk.heading("Tags").waitFor();
    assert.equal(pathOf(desk), `/panel/c/${own}/tags`);
    await desk.go("/server/companies");
    await desk.heading("This page belongs to another company").waitFor();
    await desk.leave();
  });

  it("says in which of several companies its reader signs in", async () => {
    const email = address("twice");
    const password = "a password of two companies";
    const companies = await Promise.all([at.service.company([]), at.service.company([])]);
    const ids = [];
    for (const company of companies) {
      await company.person("Administrator", { name: "Twice", email, password });
      const mark = await company.data("POST", "/tags", { name: `Mark ${randomUUID().slice(0, 8)}` });
      ids.push([company, mark]);
    }
    for (const [company, mark] of ids) {
      const desk = await Desk.open(at, `/c/${company.id}/tags/${mark.id}`);
      await desk.fill({ "E-mail": email, Password: password });
      await desk.button("Sign in").click();
      await desk.heading(mark.name).waitFor();
      await desk.leave();
    }
  });
});

describe("an installation with one company", () => {
  const at = {};
  withBrowser(at);
  before(async () => (at.service = await Service.start("serve")));
  after(() => at.service?.remove());

  it("opens it for its administrator, and its list of companies once there is another", async () => {
    const person = await installer(at.service);
    const empty = await Desk.open(at, "/", { person });
    assert.equal(pathOf(empty), "/panel/server/");
    await empty.leave();
    const company = await at.service.company([]);
    const { id, name } = company;
    const desk = await Desk.open(at, "/", { person });
    await desk.page.locator("header .company", { hasText: name }).waitFor();
    assert.equal(pathOf(desk), `/panel/c/${id}/`);
    await desk.go("/tags");
    assert.equal(pathOf(desk), `/panel/c/${id}/tags`);
    await desk.go("/server/");
    assert.equal(pathOf(desk), "/panel/server/", "who asks for the installation gets it");
    await at.service.company([]);
    await desk.go("/");
    assert.equal(pathOf(desk), "/panel/server/");
    await desk.leave();
  });
});

describe("a list", () => {
  const at = panel();

  it("has the newest first, what was just made in sight, and is turned round", async () => {
    for (let number = 1; number <= 60; number++) await at.company.data("POST", "/products", { name: `Old ${number}`, price: 1 });
    const desk = await at.open("/products?search=old&page=2");
    await desk.row("Old 35").waitFor();
    await desk.link("New product").first().click();
    await desk.focus("input[type=text]");
    await desk.page.keyboard.type("Just made");
    await desk.fill({ Price: "2" });
    await desk.page.keyboard.press("Enter");
    await desk.focus("tbody tr:first-child.fresh a", "Just made");
    assert.ok(await desk.row("Just made").isVisible());
    await desk.field("Order").selectOption("asc");
    await desk.row(/^Old 1\b/).waitFor();
    assert.match(desk.page.url(), /order=asc/);
    await desk.page.reload();
    await desk.row(/^Old 1\b/).waitFor();
    assert.equal(await desk.page.locator("tr.fresh").count(), 0);
    await desk.leave();
  });

  it("lets nothing out of its column, however long somebody's words are", async () => {
    const long = "x".repeat(60);
    await at.company.data("POST", "/users", { name: `Ana${"a".repeat(120)}`, email: `${long}@${"y".repeat(60)}.example` });
    await at.company.data("POST", "/products", { name: "P".repeat(200), sku: "S".repeat(90), price: 1_234_567_890 });
    await at.company.data("POST", "/tags", { name: "T".repeat(200), color: "#0f766e" });
    await at.company.data("POST", "/quick-messages", { shortcut: "q".repeat(40), message: "M".repeat(2_000) });
    await at.company.data("POST", "/global-variables", { key: `k${"k".repeat(40)}`, value: "V".repeat(1_000) });
    await at.company.data("POST", "/webhooks", { url: `https://example.com/${"w".repeat(300)}`, description: "D".repeat(100) });
    const lists = ["/users", "/products", "/tags", "/quick-messages", "/global-variables", "/webhooks", "/channels", "/queues"];
    for (const viewport of [{ width: 1400, height: 900 }, { width: 900, height: 900 }, { width: 390, height: 800 }, { width: 320, height: 700 }]) {
      const desk = await at.open("/", { viewport });
      for (const path of lists) {
        await desk.turnTo(path);
        assert.deepEqual(await overflow(desk.page), [], `${path} at ${viewport.width}`);
      }
      await desk.leave();
    }
  });

  it("shows words and numbers in the direction and the region of those who wrote and read them", async () => {
    const hebrew = "שלום עולם, 12.";
    await at.company.data("POST", "/tags", { name: hebrew, color: "#0f766e" });
    const desk = await at.open("/tags", { locale: "en-GB", timezoneId: "Europe/London" });
    const cell = desk.row(hebrew).getByRole("link", { name: hebrew });
    assert.equal(await cell.evaluate((link) => getComputedStyle(link.closest("bdi")).unicodeBidi), "isolate");
    assert.equal(await cell.evaluate((link) => getComputedStyle(link.closest("bdi")).direction), "rtl");
    await cell.click();
    await desk.heading(hebrew).waitFor();
    assert.equal(await desk.heading().evaluate((heading) => getComputedStyle(heading).direction), "rtl");
    assert.equal(await desk.field("Name").evaluate((field) => getComputedStyle(field).direction), "rtl");
    await desk.turnTo("/tokens");
    const moment = desk.page.locator("tbody time").first();
    await moment.waitFor();
    // The day comes before the month; and where the pointer rests, the zone is named.
    assert.match((await moment.textContent()).replaceAll("\u00a0", " "), /^\d{1,2} [A-Z][a-z]{2,3} \d{4}, \d{2}:\d{2}$/);
    assert.match(await moment.getAttribute("title"), /Greenwich|British/);
    await desk.leave();
  });
});

describe("the focus", () => {
  const at = panel();

  it("is where somebody types next", async () => {
    const desk = await at.open("/", { person: null });
    await desk.focus("input[type=email]");
    await desk.fill({ "E-mail": at.administrator.email, Password: "not the password" });
    await desk.button("Sign in").click();
    await desk.text("Wrong e-mail or password").waitFor();
    await desk.focus("input[type=password]");
    await desk.page.keyboard.type(at.administrator.password);
    await desk.page.keyboard.press("Enter");
    await desk.heading(`Hello, ${at.administrator.name}`).waitFor();

    await desk.turnTo("/tags/new");
    await desk.focus("input[type=text]");
    await desk.page.keyboard.type("Kept");
    await desk.context.clearCookies();
    await desk.page.keyboard.press("Enter");
    await desk.dialog().getByText("Your session has ended").waitFor();
    await desk.focus("input[type=password]");
    await desk.page.keyboard.type(at.administrator.password);
    await desk.page.keyboard.press("Enter");
    await desk.focus("tbody a", "Kept");
    await desk.leave();
  });
});

describe("a channel that was just made", () => {
  const at = panel();

  for (const viewport of [{ width: 1400, height: 900 }, { width: 390, height: 844 }]) {
    it(`shows the code to embed at ${viewport.width} x ${viewport.height}, without scrolling`, async () => {
      const desk = await at.open("/channels/new", { viewport });
      await desk.fill({ Name: "Site", "Allowed websites": "https://shop.example" });
      await desk.button("Create").click();
      const code = desk.page.locator("main code", { hasText: "<script" });
      await code.waitFor();
      await eventually("it is in the window", () =>
        code.evaluate((element) => {
          const { top, bottom } = element.getBoundingClientRect();
          return top >= 0 && bottom <= innerHeight;
        }),
      );
      await desk.leave();
    });
  }
});

describe("what is counted", () => {
  const at = panel();

  it("is said as what it is: in use, in the way of another change, or as many as there may be", async () => {
    const desk = await at.open("/", { locale: "en-US" });
    const queue = await at.company.data("POST", "/queues", { name: "In the way", color: "#0f766e" });
    const told = async (method, path, reason, by) => {
      await desk.page.unrouteAll();
      const json = { error: { code: "ERR_API_CONFLICT", message: "no", details: { state: "no", reason, by } } };
      await desk.page.route(`**/panel/api/v1${path}`, (route) => (route.request().method() === method ? route.fulfill({ status: 409, json }) : route.fallback()));
    };
    const deleted = async (by, reason, text) => {
      await told("DELETE", `/queues/${queue.id}`, reason, by);
      await desk.go(`/queues/${queue.id}`);
      await desk.button("Delete").click();
      await desk.dialog().getByRole("button", { name: "Delete" }).click();
      await desk.dialog().getByText(text, { exact: true }).waitFor();
    };
    await deleted([{ type: "ticket", count: 2 }, { type: "channel", count: 0 }], "open_tickets", "Can't delete: in use by 2 open conversations.");
    await deleted([{ type: "ticket", count: 1 }, { type: "webchatSession", count: 2 }], "open_ticket", "Can't delete: in use by 1 open conversation and 2 active visitor sessions.");
    await deleted([{ type: "ticket", count: 3 }], "in_use", "Can't delete: in use by 3 conversations.");
    await deleted([{ type: "something new", count: 1 }], "in_use", "Can't delete: in use by 1 record.");
    const changed = async (path, type, reason, text) => {
      await told("POST", path, reason, [{ type, count: 1_000 }]);
      await desk.go(`${path}/new`);
      await desk.button("Create").click();
      await desk.page.getByRole("alert").getByText(text, { exact: true }).waitFor();
    };
    await changed("/webhooks", "webhook", "limit", "You already have the maximum of 1,000 webhooks.");
    await changed("/wrapup-types", "wrap-up type", "limit", "You already have the maximum of 1,000 wrap-up types.");
    await changed("/tags", "contact", "has_values", "Can't change the type: the field has values in 1,000 contacts.");
    await changed("/tags", "card", "options_in_use", "Can't remove options that are in use in 1,000 cards.");
    await desk.leave();
  });

  it("is inflected as each language does", async () => {
    const queue = await at.company.data("POST", "/queues", { name: "Counted", color: "#0f766e" });
    const desk = await at.open("/");
    const told = (count) =>
      desk.page.route(`**/panel/api/v1/queues/${queue.id}`, (route) =>
        route.request().method() === "DELETE"
          ? route.fulfill({ status: 409, json: { error: { code: "ERR_API_CONFLICT", message: "no", details: { by: [{ type: "channel", count }] } } } })
          : route.fallback(),
      );
    for (const [language, one, two] of [["en", "1 channel.", "2 channels."], ["pt", "1 canal.", "2 canais."], ["es", "1 canal.", "2 canales."]]) {
      await desk.page.evaluate((name) => localStorage.setItem("hotline-panel-language", name), language);
      for (const [count, text] of [[1, one], [2, two]]) {
        await desk.page.unrouteAll();
        await told(count);
        await desk.go(`/queues/${queue.id}`);
        await desk.page.locator(".button.danger").first().click();
        await desk.dialog().locator(".button.danger").click();
        await desk.dialog().getByText(text).waitFor();
      }
    }
    await desk.leave();
  });
});
