// Markup in every text of every record, opened on every page that shows it, is text and nothing else.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { panel } from "../../support/panel.mjs";

const EVIL = `"><img src=x onerror="window.evil=1"><script>window.evil=1</script>{{7*7}}`;

describe("markup", () => {
  const at = panel();

  it("is shown as it was typed", async () => {
    const { company } = at;
    const make = (path, body) => company.data("POST", path, body);
    const queue = await make("/queues", { name: EVIL, greeting: EVIL });
    const tag = await make("/tags", { name: EVIL });
    const category = await make("/wrapup-categories", { name: EVIL });
    const type = await make("/wrapup-types", { name: EVIL, categoryId: category.id, queueIds: [queue.id] });
    const quick = await make("/quick-messages", { shortcut: `"><img/src=x/onerror=window.evil=1>`, message: EVIL });
    const variable = await make("/global-variables", { key: "evil", value: EVIL, description: EVIL });
    const group = await make("/product-categories", { name: EVIL, description: EVIL });
    const product = await make("/products", { name: EVIL, sku: EVIL, description: EVIL, categoryId: group.id });
    const field = await make("/custom-fields", { name: EVIL, application: "contact", type: "select", options: [EVIL] });
    const webhook = await make("/webhooks", { url: "https://example.com/?%3Cscript%3E", description: EVIL });
    const list = await make("/contact-lists", { name: EVIL });
    const contact = await make("/contacts", { name: EVIL, number: "5511977776666", email: "evil@example.com" });
    await make(`/contact-lists/${list.id}/contacts`, { contactIds: [contact.id] });
    const user = await make("/users", { name: EVIL, email: "evil-user@example.com", queueIds: [queue.id] });
    const person = await company.person("Administrator", { name: "Evil" });
    await company.data("PUT", `/users/${person.id}`, { name: EVIL });

    const desk = await at.open("/", { person });
    const pages = [
      ...["/", "/account", "/tags", `/tags/${tag.id}`, "/queues", `/queues/${queue.id}`, `/queues/${queue.id}/users`],
      ...["/wrapup-types", `/wrapup-types/${type.id}`, "/wrapup-categories", `/wrapup-categories/${category.id}`],
      ...["/quick-messages", `/quick-messages/${quick.id}`, "/global-variables", `/global-variables/${variable.id}`],
      ...["/products", `/products/${product.id}`, "/product-categories", `/product-categories/${group.id}`],
      ...["/users", `/users/${user.id}`, "/contact-lists", `/contact-lists/${list.id}/contacts`],
      ...["/custom-fields", `/custom-fields/${field.id}`, "/custom-fields/order", "/webhooks", `/webhooks/${webhook.id}`, `/webhooks/${webhook.id}/deliveries`],
    ];
    for (const path of pages) {
      await desk.turnTo(path);
      const values = await desk.page.evaluate(() => [document.body.innerText, document.title, ...[...document.querySelectorAll("input, textarea")].map(({ value }) => value)].join("\n"));
      // The person's own name is in the frame of every page; on most of them the record's is there besides.
      assert.ok(/<img[ /]src=x/.test(values), `${path} shows it as text`);
      assert.equal(await desk.page.evaluate(() => document.querySelectorAll("img, #app script").length), 0, path);
      assert.equal(await desk.page.evaluate(() => window.evil), undefined, path);
    }
    // What is searched for, what is imported, and what stands in the address.
    await desk.go(`/tags?search=${encodeURIComponent(EVIL)}`);
    assert.equal(await desk.field("Search").inputValue(), EVIL);
    await desk.go(`/products?categoryId=${encodeURIComponent(EVIL)}`);
    await desk.turnTo("/contacts/import");
    await desk.field("File").setInputFiles({ name: "<img src=x onerror=alert(1)>.csv", mimeType: "text/csv", buffer: Buffer.from(`name,${EVIL.replaceAll('"', '""')}\n${EVIL.replaceAll('"', '""')},1\n`) });
    await desk.page.getByRole("table").waitFor();
    await desk.go(`/${encodeURIComponent(EVIL)}`);
    await desk.heading("This page does not exist.").waitFor();
    assert.equal(await desk.page.evaluate(() => window.evil), undefined);
    await desk.leave();
  });
});
