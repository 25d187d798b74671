// Whoever may not do something does not see it either; and the pages let nobody else do it for them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { panel } from "../../support/panel.mjs";

describe("what somebody may not do", () => {
  const at = panel();

  it("is not offered, and an address that was guessed says so", async () => {
    const agent = await at.company.person("Agent", { name: "Plain Agent" });
    const desk = await at.open("/", { person: agent });
    const { data } = await desk.page.evaluate(() => fetch("/panel/api/v1/session").then((answer) => answer.json()));
    const places = await desk.page.locator("#menu a").evaluateAll((all) => all.map((it) => new URL(it.href).pathname.replace("/panel/", "")));
    const modules = {
      queues: "queues", users: "users", tags: "tags", products: "products", webhooks: "webhooks", "wrapup-types": "wrapupTypes",
      "quick-messages": "quickMessages", "contact-lists": "campaigns", "custom-fields": "customFields", "global-variables": "customFields",
    };
    for (const [place, module] of Object.entries(modules)) {
      const mayRead = data.permissions[module]?.includes("GET") ?? false;
      assert.equal(places.includes(place), mayRead, place);
      await desk.turnTo(`/${place}`);
      const mayMake = data.permissions[module]?.includes("POST") ?? false;
      assert.equal(await desk.heading("You may not do this.").isVisible(), !mayRead, place);
      assert.equal((await desk.page.locator(`a[href="/panel/${place}/new"]`).count()) > 0, mayRead && mayMake, place);
    }
    for (const place of ["tokens", "channels", "profiles", "company", "audit-log", "companies", "installation"]) {
      assert.ok(!places.includes(place), place);
      await desk.turnTo(`/${place}`);
      await desk.heading("You may not do this.").waitFor();
    }
    await desk.leave();
  });

  it("is not done from another website, nor in its frame", async () => {
    const desk = await at.open("/tags");
    const answer = await desk.page.request.get(`${at.service.url}/panel/tags`);
    assert.match(answer.headers()["content-security-policy"], /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(answer.headers()["referrer-policy"], "no-referrer");
    const tag = await at.company.data("POST", "/tags", { name: "Stays" });
    // Another origin of the same browser, which has the cookie in its jar.
    const other = await desk.context.newPage();
    await other.goto(at.service.url.replace("127.0.0.1", "localhost") + "/health/live");
    const target = `${at.service.url}/panel/api/v1/tags/${tag.id}`;
    const tried = await other.evaluate(async (url) => {
      const outcomes = [];
      for (const init of [{ method: "DELETE", credentials: "include" }, { method: "POST", credentials: "include", mode: "no-cors", body: "name=x" }]) {
        outcomes.push(await fetch(url, init).then((answer) => `${answer.type} ${answer.status}`, () => "refused"));
      }
      return outcomes;
    }, target);
    assert.ok(!tried.some((outcome) => / 2\d\d$/.test(outcome)), tried.join());
    assert.equal((await at.company.data("GET", `/tags/${tag.id}`)).name, "Stays");
    await desk.leave();
  });
});
