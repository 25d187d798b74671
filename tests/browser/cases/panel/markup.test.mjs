// Markup in every text of every record, opened on every page that shows it, is text and nothing else.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { address, panelEnv } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";

const EVIL = `"><img src=x onerror="window.evil=1"><script>window.evil=1</script>{{7*7}}`;

/** The same where no space is taken. */
const EVIL_WORD = `"><img/src=x/onerror=window.evil=1>`;

describe("markup", () => {
  const env = panelEnv();

  it("is shown as it was typed", async () => {
    const { company } = env;
    const make = (path, body) => company.data("POST", path, body);
    const queue = await make("/queues", { name: EVIL, greeting: EVIL });
    const tag = await make("/tags", { name: EVIL });
    const category = await make("/wrapup-categories", { name: EVIL });
    const type = await make("/wrapup-types", { name: EVIL, categoryId: category.id, queueIds: [queue.id] });
    const quick = await make("/quick-messages", { shortcut: EVIL_WORD, message: EVIL });
    const variable = await make("/global-variables", { key: "evil", value: EVIL, description: EVIL });
    const group = await make("/product-categories", { name: EVIL, description: EVIL });
    const product = await make("/products", { name: EVIL, sku: EVIL, description: EVIL, categoryId: group.id });
    const field = await make("/custom-fields", { name: EVIL, application: "contact", type: "select", options: [EVIL] });
    const webhook = await make("/webhooks", { url: "https://example.com/?%3Cscript%3E", description: EVIL });
    const list = await make("/contact-lists", { name: EVIL });
    const board = await make("/crm/boards", { name: EVIL, description: EVIL, crmBoardQueues: [{ queueId: queue.id }] });
    const contact = await make("/contacts", { name: EVIL, number: "5511977776666", email: "evil@example.com" });
    await make(`/contact-lists/${list.id}/contacts`, { contactIds: [contact.id] });
    const user = await make("/users", { name: EVIL, email: "evil-user@example.com", queueIds: [queue.id] });
    const person = await company.person("Administrator", { name: "Evil" });
    await company.data("PUT", `/users/${person.id}`, { name: EVIL });

    // What the panel alone makes, and what it keeps of who did it: also of the browser they did it with.
    const userAgent = `Mozilla ${EVIL}`;
    const panel = await env.open("/account", { person: null, userAgent });
    await panel.fill({ "E-mail": person.email, Password: person.password });
    await panel.button("Sign in").click();
    await panel.heading("Your account").waitFor();
    const own = (method, path, body) => panel.page.evaluate(async (asked) => {
      const [how, where, what] = asked;
      const answer = await fetch(`/panel/api/v1${where}`, { method: how, body: JSON.stringify(what), headers: { "Content-Type": "application/json" } });
      const { data, error } = await answer.json();
      if (!answer.ok) throw new Error(`${how} ${where}: ${JSON.stringify(error)}`);
      return data;
    }, [method, path, body]);
    const profile = await own("POST", "/profiles", { name: EVIL, permissions: { tags: ["GET"] } });
    const { token } = await own("POST", "/tokens", { name: EVIL, permissions: { tags: ["GET"] } });
    const chat = await own("POST", "/channels", { type: "webchat", name: EVIL, title: EVIL, greeting: EVIL, queueId: queue.id });
    const phone = await own("POST", "/channels", { type: "whatsapp", name: EVIL, phoneNumberId: "106", accessToken: EVIL_WORD });
    const member = await make("/users", { name: EVIL, email: "evil-member@example.com", profileId: profile.id });
    const { id: companyId } = await own("PUT", "/company", { name: EVIL, stopWords: [EVIL.slice(0, 40)] });
    const pages = [
      ...["/tokens", `/tokens/${token.id}`, "/channels", `/channels/${chat.id}`, `/channels/${phone.id}`, "/profiles", `/profiles/${profile.id}`],
      ...["/company", "/audit-log", `/users/${member.id}`, `/tokens?search=${encodeURIComponent(EVIL)}`],
      ...["/", "/account", "/tags", `/tags/${tag.id}`, "/queues", `/queues/${queue.id}`, `/queues/${queue.id}/users`],
      ...["/wrapup-types", `/wrapup-types/${type.id}`, "/wrapup-categories", `/wrapup-categories/${category.id}`],
      ...["/quick-messages", `/quick-messages/${quick.id}`, "/global-variables", `/global-variables/${variable.id}`],
      ...["/products", `/products/${product.id}`, "/product-categories", `/product-categories/${group.id}`],
      ...["/crm/boards", `/crm/boards/${board.id}`],
      ...["/users", `/users/${user.id}`, "/contact-lists", `/contact-lists/${list.id}/contacts`],
      ...["/custom-fields", `/custom-fields/${field.id}`, "/custom-fields/order", "/webhooks", `/webhooks/${webhook.id}`, `/webhooks/${webhook.id}/deliveries`],
    ];
    for (const path of pages) {
      await panel.turnTo(path);
      // Beside the frame, which has the person's own name on every page.
      const values = await panel.page.evaluate(() => {
        const main = document.getElementById("main");
        return [main.innerText, ...[...main.querySelectorAll("input, textarea")].map(({ value }) => value)].join("\n");
      });
      assert.ok(/<img[ /]src=x/.test(values), `${path} shows it as text`);
      assert.equal(await panel.page.evaluate(() => document.querySelectorAll("img, #app script").length), 0, path);
      assert.equal(await panel.page.evaluate(() => window.evil), undefined, path);
    }
    // The look of a webchat is made of elements too.
    await panel.turnTo(`/channels/${chat.id}`);
    const preview = panel.page.locator(".preview .frame > div");
    await eventually("the preview", () => preview.evaluate((host) => host.shadowRoot.textContent.includes("<img src=x")));
    assert.equal(await preview.evaluate((host) => host.shadowRoot.querySelectorAll("img, script").length), 0);
    await panel.turnTo("/account");
    assert.ok((await panel.page.evaluate(() => document.body.innerText)).includes("<img src=x"), "the sessions");
    // Questions, and who administers the installation.
    await panel.turnTo(`/profiles/${profile.id}`);
    await panel.button("Delete").click();
    await panel.dialog().waitFor();
    assert.equal(await panel.page.evaluate(() => document.querySelectorAll("img, #app script").length), 0);
    await panel.page.keyboard.press("Escape");
    const email = address("evil");
    const { password } = await env.service.cli("admin", "create", email);
    const admin = await env.open("/account", { person: { email, password } });
    await admin.fill({ Name: EVIL });
    await admin.button("Save").click();
    await admin.notice("Saved.").waitFor();
    for (const path of ["/", "/companies?search=onerror", `/companies/${companyId}`, "/audit-log"]) {
      await admin.turnTo(path);
      assert.ok(/<img[ /]src=x/.test(await admin.page.evaluate(() => [document.body.innerText, ...[...document.querySelectorAll("input")].map(({ value }) => value)].join())), path);
      assert.equal(await admin.page.evaluate(() => [window.evil, document.querySelectorAll("img, #app script").length].join()), ",0", path);
    }
    await admin.leave();
    // What is searched for, what is imported, and what stands in the address.
    await panel.go(`/tags?search=${encodeURIComponent(EVIL)}`);
    assert.equal(await panel.field("Search").inputValue(), EVIL);
    await panel.go(`/products?categoryId=${encodeURIComponent(EVIL)}`);
    await panel.turnTo("/contacts/import");
    await panel.field("File").setInputFiles({ name: "<img src=x onerror=alert(1)>.csv", mimeType: "text/csv", buffer: Buffer.from(`name,${EVIL.replaceAll('"', '""')}\n${EVIL.replaceAll('"', '""')},1\n`) });
    await panel.page.getByRole("table").waitFor();
    await panel.go(`/${encodeURIComponent(EVIL)}`);
    await panel.heading("Page not found").waitFor();
    assert.equal(await panel.page.evaluate(() => window.evil), undefined);
    await panel.leave();
  });
});
