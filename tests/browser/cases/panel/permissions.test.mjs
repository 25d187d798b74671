// What a person may not do is not shown to them, and no page lets another person do it for them.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";

import { panelEnv, signIn } from "../../support/panel.mjs";
import { Shop } from "../../support/shop.mjs";

/** Whose permissions a noun of the API, and a page, takes where they are not called alike. */
const MODULES = {
  "wrapup-types": "wrapupTypes", "wrapup-categories": "wrapupTypes", "quick-messages": "quickMessages", "contact-lists": "campaigns",
  "product-categories": "products", "crm/boards": "crm", "custom-fields": "customFields", "global-variables": "customFields", dashboards: "reports",
};

describe("what somebody may not do", () => {
  const env = panelEnv();

  it("is not offered, and an address that was guessed says so", async () => {
    const agent = await env.company.person("Agent", { name: "Plain Agent" });
    const panel = await env.open("/", { person: agent });
    const { data } = await panel.page.evaluate(() => fetch("/panel/api/v1/session").then((answer) => answer.json()));
    const places = await panel.page.locator("#menu a").evaluateAll((all) => all.map((it) => new URL(it.href).pathname.replace(/^\/panel\/(c\/\d+|server)\//, "")));
    const modules = {
      queues: "queues", users: "users", tags: "tags", products: "products", webhooks: "webhooks", "wrapup-types": "wrapupTypes",
      "quick-messages": "quickMessages", "contact-lists": "campaigns", "custom-fields": "customFields", "global-variables": "customFields",
      "crm/boards": "crm",
    };
    for (const [place, module] of Object.entries(modules)) {
      const mayRead = data.permissions[module]?.includes("GET") ?? false;
      assert.equal(places.includes(place), mayRead, place);
      await panel.turnTo(`/${place}`);
      const mayMake = data.permissions[module]?.includes("POST") ?? false;
      assert.equal(await panel.heading("You don't have access. Ask an administrator.").isVisible(), !mayRead, place);
      assert.equal((await panel.page.locator(`a[href$="/${place}/new"]`).count()) > 0, mayRead && mayMake, place);
    }
    for (const place of ["tokens", "channels", "profiles", "company", "audit-log", "companies", "installation"]) {
      assert.ok(!places.includes(place), place);
      await panel.turnTo(`/${place}`);
      await panel.heading("You don't have access. Ask an administrator.").waitFor();
    }
    await panel.leave();
  });

  it("is neither seen nor done, whichever module it is", async () => {
    const document = JSON.parse(await readFile(new URL("../../../../openapi.json", import.meta.url)));
    // What the table of permissions has: modules by their methods; and what each covers.
    const covered = {};
    for (const [path, operations] of Object.entries(document.paths)) {
      const noun = /^\/api\/v1\/([^/]+)/.exec(path)?.[1];
      if (!noun || path.includes("{")) continue;
      const calls = (covered[MODULES[noun] ?? noun] ??= []);
      for (const method of ["get", "post"]) if (operations[method]) calls.push([method.toUpperCase(), path.slice("/api/v1".length)]);
    }
    const modules = Object.keys(covered);
    assert.ok(modules.length >= 19, modules.join());
    const administrator = (await env.company.data("GET", "/profiles")).find(({ name }) => name === "Administrator");
    const all = administrator.permissions;
    assert.deepEqual(modules.filter((name) => !all[name]), []);
    const change = async (method, path, body) => {
      env.administrator.session ??= await signIn(env.service, env.administrator);
      const { name, value } = env.administrator.session.cookie;
      const headers = { Cookie: `${name}=${value}`, Origin: env.service.url, "Content-Type": "application/json" };
      const answer = await fetch(`${env.service.url}/panel/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
      assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
      return (await answer.json()).data;
    };
    const profile = await change("POST", "/profiles", { name: "All but one", permissions: all });
    const person = await env.company.person("All but one");
    const panel = await env.open("/", { person });
    const menu = () => panel.page.locator("#menu a").evaluateAll((links) => links.map((it) => new URL(it.href).pathname.replace(/^\/panel(\/c\/\d+|\/server)?/, "")));
    const every = await menu();
    let hidden = 0;
    for (const module of modules) {
      const { [module]: _, ...others } = all;
      await change("PUT", `/profiles/${profile.id}`, { permissions: others });
      await panel.go("/");
      const seen = await menu();
      for (const place of every.filter((it) => !seen.includes(it))) {
        const owner = place === "/contacts/import" ? "contacts" : (MODULES[place.slice(1)] ?? place.slice(1));
        assert.equal(owner, module, `${place} went with ${module}`);
        await panel.turnTo(place);
        await panel.heading("You don't have access. Ask an administrator.").waitFor();
        hidden += 1;
      }
      for (const place of seen) assert.notEqual(MODULES[place.slice(1)] ?? place.slice(1), module, `${place} is still there`);
      const answers = await panel.page.evaluate(
        (calls) => Promise.all(calls.map(async ([method, path]) => {
          const init = method === "GET" ? {} : { method, body: "{}", headers: { "Content-Type": "application/json" } };
          const answer = await fetch(`/panel/api/v1${path}`, init);
          return `${method} ${path}: ${answer.status} ${(await answer.json()).error?.code}`;
        })),
        covered[module],
      );
      for (const told of answers) assert.match(told, /: 403 ERR_API_FORBIDDEN_SCOPE$/, module);
      assert.ok(answers.length > 0, module);
    }
    assert.equal(hidden, every.length, "each place went with its module");
    await panel.leave();
  });

  it("is not done by another website of the same machine, which the cookie goes along to", async () => {
    const shop = await Shop.start();
    const panel = await env.open("/tags");
    const tag = await env.company.data("POST", "/tags", { name: "Kept" });
    const count = async () => (await env.company.data("GET", "/tags?perPage=100")).length;
    const before = await count();
    const target = `${env.service.url}/panel/api/v1`;
    const reached = [];
    const asked = [];
    panel.context.on("request", (request) => {
      if (!request.url().startsWith(target) || request.method() !== "POST") return;
      asked.push((async () => {
        const response = await request.response();
        reached.push([Boolean((await request.allHeaders()).cookie), response?.status()]);
      })());
    });
    // Ports make no difference to what browsers call a site: this page's requests carry the cookie.
    const other = await panel.context.newPage();
    await other.goto(`${shop.origin}/style.css`);
    const outcomes = await other.evaluate(async ([base, id]) => {
      const told = [];
      const tries = [
        ["/tags", { method: "POST", mode: "no-cors", body: '{"name":"By fetch"}', headers: { "Content-Type": "text/plain" } }],
        ["/tags", { method: "POST", mode: "no-cors", body: new URLSearchParams({ name: "By fetch" }) }],
        ["/tags", { method: "POST", body: '{"name":"By fetch"}', headers: { "Content-Type": "application/json" } }],
        [`/tags/${id}`, { method: "DELETE" }],
        ["/session", { method: "DELETE" }],
        ["/tags", {}],
      ];
      for (const [path, init] of tries) {
        told.push(await fetch(base + path, { credentials: "include", ...init }).then((answer) => `${answer.type}`, () => "refused"));
      }
      told.push(await new Promise((done) => {
        const stream = new EventSource(`${base}/events/stream`, { withCredentials: true });
        stream.onopen = () => done("open");
        stream.onerror = () => (stream.close(), done("refused"));
      }));
      told.push(await new Promise((done) => {
        const socket = new WebSocket(`${base.replace("http", "ws")}/events/stream`);
        socket.onopen = () => done("open");
        socket.onerror = () => done("refused");
      }));
      return told;
    }, [target, tag.id]);
    assert.deepEqual(outcomes, ["opaque", "opaque", "refused", "refused", "refused", "refused", "refused", "refused"]);
    await Promise.all(asked);
    for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      await other.goto(`${shop.origin}/style.css`);
      await Promise.all([
        other.waitForURL(`${target}/tags`),
        other.evaluate(([action, type]) => {
          const form = Object.assign(document.createElement("form"), { action, method: "post", enctype: type });
          form.append(Object.assign(document.createElement("input"), { name: '{"name":"By form","x":"', value: '"}' }));
          document.body.append(form);
          form.submit();
        }, [`${target}/tags`, enctype]),
      ]);
      await Promise.all(asked);
      assert.match(await other.textContent("body"), /ERR_API_FORBIDDEN_ORIGIN/, enctype);
    }
    await other.close();
    await shop.stop();
    // Three forms, of which the browser tells that the cookie went along; two fetches; and one that it did not let go.
    const statuses = reached.map(([, status]) => status ?? "not sent").sort();
    assert.deepEqual(statuses, [403, 403, 403, 403, 403, "not sent"], JSON.stringify(reached));
    assert.ok(reached.filter(([hasCookie]) => hasCookie).length >= 3, JSON.stringify(reached));
    assert.equal(await count(), before);
    await panel.page.reload();
    await panel.row("Kept").waitFor();
    await panel.leave();
  });

  it("is not done from another website, nor in its frame", async () => {
    const panel = await env.open("/tags");
    const answer = await panel.page.request.get(`${env.service.url}/panel/tags`);
    assert.match(answer.headers()["content-security-policy"], /default-src 'none'.*frame-ancestors 'none'/);
    assert.equal(answer.headers()["referrer-policy"], "no-referrer");
    const tag = await env.company.data("POST", "/tags", { name: "Stays" });
    // Another origin of the same browser, which has the cookie in its jar.
    const other = await panel.context.newPage();
    await other.goto(env.service.url.replace("127.0.0.1", "localhost") + "/health/live");
    const target = `${env.service.url}/panel/api/v1/tags/${tag.id}`;
    const tried = await other.evaluate(async (url) => {
      const outcomes = [];
      for (const init of [{ method: "DELETE", credentials: "include" }, { method: "POST", credentials: "include", mode: "no-cors", body: "name=x" }]) {
        outcomes.push(await fetch(url, init).then((answer) => `${answer.type} ${answer.status}`, () => "refused"));
      }
      return outcomes;
    }, target);
    assert.ok(!tried.some((outcome) => / 2\d\d$/.test(outcome)), tried.join());
    assert.equal((await env.company.data("GET", `/tags/${tag.id}`)).name, "Stays");
    await panel.leave();
  });
});
