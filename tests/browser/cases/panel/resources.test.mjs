// Every resource through its pages: made, found, changed, and deleted after it was said what goes with it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";

import { panelDocument } from "../../support/document.mjs";
import { panelEnv } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";

/** What is typed for a new one, what is changed of it, and where the API has it. */
const RESOURCES = [
  { path: "tags", make: "New tag", typed: { Name: "Important" }, changed: { Name: "Very important" }, name: "name" },
  { path: "queues", make: "New queue", typed: { Name: "Support" }, changed: { Name: "Help" }, name: "name" },
  { path: "wrapup-categories", make: "New category", typed: { Name: "Sales" }, changed: { Name: "Sales 2" }, name: "name" },
  { path: "quick-messages", make: "New quick message", typed: { Shortcut: "hello", Message: "Hello there" }, changed: { Shortcut: "hi" }, name: "shortcut" },
  { path: "global-variables", make: "New variable", typed: { Key: "address", Value: "Main street 1" }, changed: { Value: "Main street 2" }, name: "key" },
  { path: "products", make: "New product", typed: { Name: "Panel", SKU: "SP-1", Price: "19,90" }, changed: { Name: "Solar panel" }, name: "name" },
  { path: "product-categories", make: "New category", typed: { Name: "Energy" }, changed: { Name: "Power" }, name: "name" },
  { path: "crm/boards", make: "New board", typed: { Name: "Solar panels", "Monthly goal": "1500,5" }, changed: { Name: "Panels" }, name: "name" },
  { path: "users", make: "New user", typed: { Name: "Ana Souza", "E-mail": "ana.souza@example.com" }, changed: { Name: "Ana Lima" }, name: "name" },
  { path: "custom-fields", make: "New field", typed: { Name: "Plan" }, changed: { Name: "Tariff" }, name: "name" },
  { path: "contact-lists", make: "New list", typed: { Name: "Newsletter" }, changed: null, name: "name" },
];

describe("resources", () => {
  const env = panelEnv();

  it("are made, changed and deleted", async (test) => {
    const panel = await env.open("/");
    for (const { path, make, typed, changed, name } of RESOURCES) {
      await test.test(path, async () => {
        await panel.go(`/${path}`);
        await panel.link(make).first().click();
        await panel.heading(make).waitFor();
        // The API names every field that is missing: each is told where it stands.
        await panel.button("Create").click();
        await panel.page.locator(".wrong").first().waitFor();
        await panel.page.waitForFunction(() => document.activeElement.getAttribute("aria-invalid") === "true");
        await panel.fill(typed);
        await panel.button("Create").click();
        await panel.notice("Created.").waitFor();
        const first = Object.values(typed)[0];
        const all = await env.company.data("GET", `/${path}?perPage=100`);
        const made = all.find((it) => it[name] === first);
        assert.ok(made, `${first} is there`);

        await panel.turnTo(`/${path}/${made.id}`);
        if (changed) {
          await panel.button("Save").click();
          await panel.notice("Nothing was changed.").waitFor();
          await panel.fill(changed);
          await panel.button("Save").click();
          await panel.notice("Saved.").waitFor();
          const [key, value] = Object.entries(changed)[0];
          const now = (await env.company.data("GET", `/${path}?perPage=100`)).find(({ id }) => id === made.id);
          assert.equal(now[key === "Value" ? "value" : name], value);
        }
        await panel.button("Delete").click();
        await panel.dialog().getByText(/./).first().waitFor();
        const told = await panel.dialog().textContent();
        assert.ok(told.length > 60, `it says what goes with it: ${told}`);
        await panel.dialog().getByRole("button", { name: "Cancel" }).click();
        await panel.button("Delete").click();
        await panel.dialog().getByRole("button", { name: "Delete" }).click();
        await panel.notice("Deleted.").waitFor();
        const left = await env.company.data("GET", `/${path}?perPage=100`);
        assert.ok(!left.some(({ id }) => id === made.id));
      });
    }
    await panel.leave();
  });

  it("are searched, filtered and paged, and the address keeps how", async () => {
    for (let number = 1; number <= 30; number++) {
      const padded = String(number).padStart(2, "0");
      await env.company.data("POST", "/products", { name: `Paged ${padded}`, price: number, active: number % 2 === 0 });
    }
    const panel = await env.open("/products");
    assert.equal(await panel.page.getByRole("row").count(), 26);
    await panel.button("Next").click();
    await panel.text("Page 2").waitFor();
    await panel.row("Paged 01").waitFor();
    await panel.page.reload();
    await panel.row("Paged 01").waitFor();
    await panel.field("Search").fill("paged 07");
    await panel.row("Paged 07").waitFor();
    await eventually("one row is left", async () => (await panel.page.getByRole("row").count()) === 2);
    assert.match(panel.page.url(), /search=paged/);
    await panel.field("Status").selectOption("true");
    await panel.text("No results.").waitFor();
    await panel.button("Clear filters").click();
    await panel.row("Paged 30").waitFor();
    assert.equal(new URL(panel.page.url()).search, "");
    // As after the last record of a page was deleted.
    await panel.go("/products?page=9");
    await panel.text("Nothing on this page.").waitFor();
    assert.equal(await panel.button("Clear filters").count(), 0);
    await panel.button("Go to first page").click();
    await panel.row("Paged 30").waitFor();
    await panel.leave();
  });

  it("say what stands in the way of a deletion, and what a value is taken by", async () => {
    const category = await env.company.data("POST", "/wrapup-categories", { name: "In use" });
    await env.company.data("POST", "/wrapup-types", { name: "Using it", categoryId: category.id });
    const panel = await env.open(`/wrapup-categories/${category.id}`);
    await panel.button("Delete").click();
    await panel.dialog().getByRole("button", { name: "Delete" }).click();
    await panel.dialog().getByRole("alert").waitFor();
    assert.match(await panel.dialog().getByRole("alert").textContent(), /1 wrap-up type\./);
    await panel.dialog().getByRole("button", { name: "Cancel" }).click();
    await panel.turnTo("/wrapup-categories/new");
    await panel.fill({ Name: "In use" });
    await panel.button("Create").click();
    await panel.page.locator(".wrong", { hasText: "Already in use" }).waitFor();
    await panel.leave();
  });

  it("choose other records by name, also by keyboard", async () => {
    const queue = await env.company.data("POST", "/queues", { name: "Chosen queue" });
    await env.company.data("POST", "/queues", { name: "Other queue" });
    const category = await env.company.data("POST", "/wrapup-categories", { name: "Chosen category" });
    const panel = await env.open("/wrapup-types/new");
    await panel.fill({ Name: "Solved" });
    const { keyboard } = panel.page;
    await panel.page.getByRole("combobox", { name: "Category" }).focus();
    await keyboard.type("chosen");
    await panel.page.getByRole("option", { name: "Chosen category" }).waitFor();
    await keyboard.press("Enter");
    await panel.page.getByRole("combobox", { name: "Queues" }).focus();
    await keyboard.press("ArrowDown");
    await panel.page.getByRole("option", { name: "Chosen queue" }).waitFor();
    await keyboard.type("chosen q");
    await eventually("only it is offered", async () => (await panel.page.getByRole("option").count()) === 1);
    await keyboard.press("Enter");
    await panel.page.locator(".chip", { hasText: "Chosen queue" }).waitFor();
    await keyboard.press("Escape");
    await panel.button("Create").click();
    await panel.notice("Created.").waitFor();
    const made = (await env.company.data("GET", "/wrapup-types")).find(({ name }) => name === "Solved");
    assert.equal(made.categoryId, category.id);
    assert.deepEqual(made.queues.map(({ id }) => id), [queue.id]);
    await panel.turnTo(`/wrapup-types/${made.id}`);
    await eventually("the category has its name", async () => (await panel.page.getByRole("combobox", { name: "Category" }).inputValue()) === "Chosen category");
    await panel.leave();
  });

  it("join agents to a queue, and contacts to a list", async () => {
    const queue = await env.company.data("POST", "/queues", { name: "Joined" });
    const agent = await env.company.person("Agent", { name: "Joining Agent" });
    const contact = await env.company.data("POST", "/contacts", { name: "Listed Person", number: "5511988887777" });
    const list = await env.company.data("POST", "/contact-lists", { name: "People" });
    const panel = await env.open(`/queues/${queue.id}/users`);
    const add = async (label, typed) => {
      await panel.page.getByRole("combobox", { name: label }).fill(typed);
      await panel.page.getByRole("option", { name: typed }).click();
      await panel.button("Add").click();
      await panel.row(typed).waitFor();
    };
    await add("Users to add", "Joining Agent");
    assert.deepEqual((await env.company.data("GET", `/queues/${queue.id}/users`)).map(({ id }) => id), [agent.id]);
    await panel.page.getByRole("button", { name: "Remove: Joining Agent" }).click();
    await panel.dialog().getByRole("button", { name: "Remove" }).click();
    await panel.text("No agents in this queue yet.").waitFor();
    assert.deepEqual(await env.company.data("GET", `/queues/${queue.id}/users`), []);
    await panel.turnTo(`/contact-lists/${list.id}/contacts`);
    await add("Contacts to add", "Listed Person");
    assert.deepEqual((await env.company.data("GET", `/contact-lists/${list.id}/contacts`)).map(({ id }) => id), [contact.id]);
    const tag = await env.company.data("POST", "/tags", { name: "Regulars" });
    const other = await env.company.data("POST", "/contacts", { name: "Tagged Person", number: "5511988886666", tagIds: [tag.id] });
    await panel.page.getByRole("combobox", { name: "All contacts with the tag" }).fill("Regulars");
    await panel.page.getByRole("option", { name: "Regulars" }).click();
    await panel.button("Add: All contacts with the tag").click();
    await panel.notice("Added: 1. Already in the list: 0.").waitFor();
    await panel.row("Tagged Person").waitFor();
    await panel.field("Search").fill("tagged");
    await eventually("one is found", async () => (await panel.row("Listed Person").count()) === 0);
    await panel.row("Tagged Person").waitFor();
    assert.deepEqual((await env.company.data("GET", `/contact-lists/${list.id}/contacts`)).map(({ id }) => id), [contact.id, other.id]);
    await panel.leave();
  });

  it("say whose a board is, and find channels and webhooks among others", async () => {
    const queue = await env.company.data("POST", "/queues", { name: "Sellers" });
    const seller = await env.company.person("Agent", { name: "Seller" });
    await env.company.data("PUT", `/queues/${queue.id}/users/${seller.id}`);
    const panel = await env.open("/crm/boards/new");
    await panel.fill({ Name: "Ours" });
    await panel.page.getByRole("combobox", { name: "Queues" }).fill("Sellers");
    await panel.page.getByRole("option", { name: "Sellers" }).click();
    await panel.button("Create").click();
    await panel.row(/^Ours Sellers/).waitFor();
    await env.company.data("POST", "/crm/boards", { name: "Theirs" });
    const own = await env.open("/crm/boards", { person: seller });
    await own.row("Ours").waitFor();
    assert.equal(await own.row("Theirs").count(), 0, "what none of their queues has, they do not see");
    await own.leave();
    await panel.turnTo("/crm/boards");
    await panel.link("Ours").click();
    await panel.page.getByRole("checkbox", { name: "Archived" }).check();
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    await panel.turnTo("/crm/boards");
    await panel.row("Theirs").waitFor();
    assert.equal(await panel.row("Ours").count(), 0);
    await panel.field("Status").selectOption("true");
    await panel.row("Ours").waitFor();

    await env.company.data("POST", "/webhooks", { url: "https://example.com/one", description: "Shop" });
    await env.company.data("POST", "/webhooks", { url: "https://example.com/two", description: "Warehouse" });
    await panel.turnTo("/webhooks");
    await panel.field("Search").fill("ware");
    await eventually("one webhook", async () => (await panel.row("/one").count()) === 0);
    await panel.row("/two").waitFor();
    await panel.turnTo("/channels");
    await panel.row("Website").waitFor();
    await panel.field("Type").selectOption("whatsapp");
    await panel.text("No results.").waitFor();
    await panel.field("Type").selectOption("webchat");
    await panel.row("Website").waitFor();
    await panel.field("Search").fill("nowhere");
    await panel.text("No results.").waitFor();
    await panel.leave();
  });

  it("order custom fields by dragging and by the arrow keys", async () => {
    const names = ["First", "Second", "Third"];
    for (const name of names) await env.company.data("POST", "/custom-fields", { name, application: "card", type: "text" });
    const order = async () => (await env.company.data("GET", "/custom-fields?application=card")).map(({ name }) => name);
    const panel = await env.open("/custom-fields/order?application=card");
    const grip = (name) => panel.page.getByRole("button", { name: new RegExp(`^${name}, position`) });
    await grip("First").focus();
    await panel.page.keyboard.press("ArrowDown");
    await eventually("it is saved", async () => (await order()).join() === "Second,First,Third");
    await panel.page.getByRole("status").filter({ hasText: "First is now at position 2 of 3" }).waitFor();
    const [from, to] = [await grip("Third").boundingBox(), await grip("Second").boundingBox()];
    const { mouse } = panel.page;
    await mouse.move(from.x + 8, from.y + 8);
    await mouse.down();
    await mouse.move(to.x + 8, to.y + 20, { steps: 8 });
    await mouse.move(to.x + 8, to.y + 8, { steps: 2 });
    await mouse.up();
    await eventually("the dragged one is first", async () => (await order()).join() === "Third,Second,First");
    await panel.leave();
  });

  it("import contacts from a file, and say which rows were refused", async () => {
    await env.company.data("POST", "/custom-fields", { name: "Cidade", application: "contact", type: "text" });
    const tag = await env.company.data("POST", "/tags", { name: "Imported" });
    const rows = ["Nome;Telefone;E-mail;Cidade;Sobra"];
    for (let number = 0; number < 450; number++) rows.push(`"Pessoa ""${number}""";55119${String(10_000_000 + number)};p${number}@example.com;São Paulo;x`);
    // A spreadsheet counts blank rows as well.
    rows.push("", ";;;;", "Torta;123;;;");
    const panel = await env.open("/contacts/import");
    await panel.field("File").setInputFiles({ name: "contatos.csv", mimeType: "text/csv", buffer: Buffer.from(`\uFEFF${rows.join("\r\n")}\r\n`) });
    await panel.text("451 rows.").waitFor();
    assert.equal(await panel.field("Field: Telefone").inputValue(), "number");
    assert.equal(await panel.field("Field: Cidade").inputValue(), "custom:cidade");
    assert.equal(await panel.field("Field: Sobra").inputValue(), "");
    await panel.page.getByRole("combobox", { name: "Tags for all contacts" }).fill("Imported");
    await panel.page.getByRole("option", { name: "Imported" }).click();
    await panel.button("Import").click();
    await panel.text("Created: 450. Updated: 0. Skipped: 0. Rejected: 1.").waitFor();
    await panel.row("454").waitFor();
    const [one] = await env.company.data("GET", `/contacts?number=5511910000007`);
    assert.equal(one.name, 'Pessoa "7"');
    assert.deepEqual(one.tags.map(({ id }) => id), [tag.id]);
    assert.deepEqual(one.customFields.map(({ key, value }) => [key, value]), [["cidade", "São Paulo"]]);
    await panel.leave();
  });

  for (const [rows, promise] of [
    ["name,email\nOne,one@example.com\n", "Contacts with a phone number, an e-mail or a code are not created twice if you import the file again."],
    ["name\nOne\n", "If you import the file again, these contacts are created twice."],
  ]) {
    it(`say of an import that was stopped what another one does: ${rows.split("\n")[0]}`, async () => {
      const panel = await env.open("/contacts/import");
      let letGo;
      const held = new Promise((done) => (letGo = done));
      await panel.page.route("**/panel/api/v1/contacts/import", async (route) => {
        await held;
        await route.continue();
      });
      await panel.field("File").setInputFiles({ name: "contacts.csv", mimeType: "text/csv", buffer: Buffer.from(rows) });
      await panel.button("Import").click();
      await panel.button("Stop").click();
      letGo();
      await panel.text(promise).waitFor();
      await panel.leave();
    });
  }

  it("are chosen by Enter only from what was found for the letters of now", async () => {
    for (const name of ["Alpha", "Beta"]) await env.company.data("POST", "/queues", { name, color: "#0f766e" });
    const panel = await env.open("/users/new");
    const queues = panel.page.getByRole("combobox", { name: "Queues" });
    await queues.fill("Alpha");
    await panel.page.locator("li.at", { hasText: "Alpha" }).waitFor();
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await panel.page.route(/\/panel\/api\/v1\/queues\?/, async (route) => {
      await held;
      await route.continue();
    });
    await queues.fill("Beta");
    await queues.press("Enter");
    letGo();
    await panel.page.locator("li.at", { hasText: "Beta" }).waitFor();
    await queues.press("Enter");
    await panel.page.locator(".chip", { hasText: "Beta" }).waitFor();
    assert.equal(await panel.page.locator(".chip").count(), 1);
    await panel.leave();
  });

  it("are deleted on the way, and nothing of another question is answered by it", async () => {
    const [one, other] = await Promise.all(["One of two", "Other of two"].map((name) => env.company.data("POST", "/tags", { name })));
    const panel = await env.open(`/tags/${one.id}`);
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await panel.page.route(`**/panel/api/v1/tags/${one.id}`, async (route) => {
      if (route.request().method() === "DELETE") await held;
      await route.continue();
    });
    await panel.button("Delete").click();
    await panel.dialog().getByRole("button", { name: "Delete" }).click();
    await panel.page.keyboard.press("Escape");
    await panel.dialog().waitFor({ state: "detached" });
    await panel.turnTo(`/tags/${other.id}`);
    await panel.button("Delete").click();
    await panel.dialog().getByText("Delete “Other of two”?").waitFor();
    letGo();
    await panel.notice("Deleted.").waitFor({ state: "attached" });
    assert.equal(await panel.dialog().count(), 1);
    assert.equal(panel.where(), `/tags/${other.id}`);
    await panel.dialog().getByRole("button", { name: "Cancel" }).click();
    await panel.leave();
  });

  it("know the modules and the events that the API has", async () => {
    const document = JSON.parse(await readFile(new URL("../../../../openapi.json", import.meta.url)));
    const nouns = {
      "wrapup-types": "wrapupTypes", "wrapup-categories": "wrapupTypes", "quick-messages": "quickMessages", "contact-lists": "campaigns",
      "product-categories": "products", "custom-fields": "customFields", "global-variables": "customFields", dashboards: "reports",
    };
    const expected = {};
    for (const [path, operations] of Object.entries(document.paths)) {
      const noun = /^\/api\/v1\/([^/]+)/.exec(path)?.[1];
      if (!noun) continue;
      const methods = (expected[nouns[noun] ?? noun] ??= new Set());
      for (const method of Object.keys(operations)) if (/^(get|post|put|delete)$/.test(method)) methods.add(method.toUpperCase());
    }
    const panel = await env.open("/tokens/new");
    const shown = {};
    for (const label of await panel.page.locator(".matrix tbody input[aria-label]").evaluateAll((all) => all.map((it) => it.getAttribute("aria-label")))) {
      const [module, method] = label.split(": ");
      (shown[module] ??= []).push({ Read: "GET", Create: "POST", Edit: "PUT", Delete: "DELETE" }[method]);
    }
    const plain = (table) => Object.values(table).map((methods) => [...methods].sort().join()).sort();
    assert.deepEqual(plain(shown), plain(expected));
    await panel.turnTo("/audit-log");
    const kept = ["account", "channels", "companies", "company", "installation", "profiles", "tokens", "users", "webhooks"];
    const ofPanel = await panelDocument();
    const acts = Object.entries(ofPanel.paths).flatMap(([path, operations]) => {
      const isKept = kept.includes(/^\/panel\/api\/v1\/([^/]+)/.exec(path)?.[1]);
      const named = Object.entries(operations).filter(([method, operation]) => {
        if (method === "get") return JSON.stringify(operation.responses).includes("text/csv");
        return isKept && /^(post|put|delete)$/.test(method);
      });
      return named.map(([, operation]) => operation.operationId);
    });
    const offered = await panel.field("Action").locator("option").evaluateAll((all) => all.map(({ value }) => value).filter(Boolean));
    const ofCommandLine = ["createAdmin", "resetAdmin", "deleteAdmin", "rotateSecretKey", "resealSecrets", "forgetSecretKey", "setRetention", "endRetention"];
    const beside = ["addQueueUser", "removeQueueUser", "deleteContact", "signIn", "giveSecondFactor", "signOut", "requestReset", "useLink", "unknown"];
    assert.deepEqual(offered.sort(), [...acts, ...beside, ...ofCommandLine].sort());
    await panel.turnTo("/webhooks/new");
    const events = await panel.page.locator(".checks label").allTextContents();
    assert.deepEqual(events, document.components.schemas.WebhookCreate.properties.types.items.enum);
    await panel.leave();
  });
});
