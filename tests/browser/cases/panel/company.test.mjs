// From nothing to a first answered chat, by mouse and what is typed: company, user, queue, channel, embed line, token.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { visit } from "../../support/browser.mjs";
import { address, Panel, panelEnv } from "../../support/panel.mjs";
import { Shop } from "../../support/shop.mjs";
import { eventually } from "../../support/wait.mjs";

const run = promisify(execFile);

describe("an installation", () => {
  const env = panelEnv();

  it("has a new company whose agent answers a first chat", async () => {
    const shop = await Shop.start();
    const email = address("installer");
    const { password } = await env.service.cli("admin", "create", email);
    const panel = await Panel.open(env, "/");
    await panel.fill({ "E-mail": email, Password: password });
    await panel.button("Sign in").click();

    const name = `New ${randomUUID().slice(0, 8)}`;
    await panel.page.getByRole("link", { name: /^1?\s*Companies/ }).last().click();
    await panel.link("New company").first().click();
    await panel.fill({ Name: name });
    await panel.button("Create").click();
    await panel.heading(name).waitFor();
    await panel.page.getByRole("button", { name: `Go to company: ${name}` }).click();
    await panel.page.locator("header .company", { hasText: name }).waitFor();

    await panel.link("Queues").click();
    await panel.link("New queue").first().click();
    await panel.fill({ Name: "Support" });
    await panel.button("Create").click();
    await panel.heading("Support").waitFor();

    await panel.link("Users").click();
    await panel.link("New user").first().click();
    const agent = address("agent");
    await panel.fill({ Name: "Ana Souza", "E-mail": agent });
    const pick = async (label, option) => {
      await panel.page.getByRole("combobox", { name: label }).click();
      await panel.page.getByRole("option", { name: option, exact: true }).click();
    };
    await pick("Profile", "Administrator");
    await pick("Queues", "Support");
    await panel.button("Create").click();
    await panel.heading("Ana Souza").waitFor();
    await panel.button("Invitation link").click();
    const invitation = await panel.dialog().locator("code").textContent();
    await panel.button("Done").click();

    await panel.link("Channels").click();
    await panel.link("New channel").first().click();
    await panel.fill({ Name: "Website", "Allowed websites": shop.origin, Title: "Ask us" });
    await pick("Queue", "Support");
    const preview = panel.page.locator(".preview .frame > div");
    await eventually("the preview follows", () => preview.evaluate((host) => host.shadowRoot.querySelector("h2").textContent === "Ask us"));
    await panel.button("Create").click();
    await panel.heading("Website").waitFor();
    const line = await panel.dialog().or(panel.page.locator("main")).locator("code", { hasText: "<script" }).textContent();
    const widget = /src="([^"]+)"/.exec(line)[1];

    await panel.link("API tokens").click();
    await panel.link("New token").first().click();
    await panel.fill({ Name: "Shop" });
    for (const box of ["Conversations: Read", "Messages: Create", "Messages: Read"]) await panel.page.getByRole("checkbox", { name: box, exact: true }).check();
    await panel.button("Create").click();
    const key = await panel.dialog().locator("code").first().textContent();
    const curl = await panel.dialog().locator("code").nth(1).textContent();
    await panel.button("Done").click();
    const { stdout } = await run("sh", ["-c", `${curl.replace("curl ", "curl -sS ")}`]);
    assert.deepEqual(JSON.parse(stdout).data, []);

    // The invited one chooses a password, and is in.
    const { hash } = new URL(invitation);
    const invited = await Panel.open(env, `/welcome${hash}`);
    await invited.text(`You will sign in to ${name} as ${agent}.`).waitFor();
    assert.equal(new URL(invited.page.url()).hash, "", "the token is not kept in the address");
    await invited.fill({ Password: "short" });
    await invited.button("Set password").click();
    await invited.page.locator(".wrong").waitFor();
    await invited.fill({ Password: "ana has a long password" });
    await invited.button("Set password").click();
    await invited.text("Your password is set.").waitFor();
    await invited.link("Sign in").click();
    await invited.fill({ "E-mail": agent, Password: "ana has a long password" });
    await invited.button("Sign in").click();
    await invited.heading("Hello, Ana Souza").waitFor();
    await invited.leave();
    const used = await Panel.open(env, `/welcome${hash}`);
    await used.text("This link has been used").waitFor();
    await used.leave();

    // A visitor asks on the page with the line, and is answered by the token.
    const base = widget.replace("/widget.js", "").replace(new URL(widget).origin, env.service.url);
    const visitor = await visit(env.browser, shop.page({ door: base }));
    await visitor.open();
    await visitor.tell("Is anybody there?");
    const authorized = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const ticket = await eventually("a ticket", async () => {
      const { data } = await (await fetch(`${env.service.url}/api/v1/tickets`, { headers: authorized })).json();
      return data[0];
    });
    assert.equal(ticket.queue.name, "Support");
    const body = JSON.stringify({ ticketId: ticket.id, type: "text", body: "Yes, we are." });
    assert.equal((await fetch(`${env.service.url}/api/v1/messages`, { method: "POST", headers: authorized, body })).status, 202);
    await visitor.theirs("Yes, we are.").waitFor();
    await visitor.leave();
    await panel.leave();
    await shop.stop();
  });

  it("shows how it does, and who has done what", async () => {
    const email = address("watcher");
    const { password } = await env.service.cli("admin", "create", email);
    const panel = await env.open("/installation", { person: { email, password } });
    await panel.page.getByRole("figure", { name: "Requests", exact: true }).waitFor();
    const plots = panel.page.locator(".plot strong");
    assert.equal(await plots.count(), 12);
    await eventually("a second reading, from which a rate is known", async () => (await panel.page.locator(".plot polyline").count()) >= 9);
    assert.match(await panel.page.getByRole("figure", { name: "Memory", exact: true }).textContent(), /MiB/);
    await panel.screenshot("panel-installation");
    await panel.turnTo("/companies/new");
    await panel.fill({ Name: `Audited ${randomUUID().slice(0, 8)}`, "Time zone": "Nowhere/Land" });
    await panel.button("Create").click();
    await panel.page.locator(".wrong").waitFor();
    await panel.fill({ "Time zone": "America/Sao_Paulo", "API calls per minute": "90" });
    await panel.button("Create").click();
    await panel.notice("Created.").waitFor();
    await panel.page.getByRole("checkbox", { name: "Active" }).uncheck();
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    await panel.turnTo("/audit-log");
    await panel.row(/Company created/).first().waitFor();
    const known = await panel.page.locator("header .account span").textContent();
    await panel.row(known).first().waitFor();
    await panel.leave();
  });
});

describe("a company", () => {
  const env = panelEnv();

  it("sets up its channels, whose secrets are written and never read", async () => {
    const panel = await env.open("/channels/new");
    await panel.field("Type").selectOption("whatsapp");
    await panel.fill({ Name: "Phone", "Phone number ID": "106540352" });
    await panel.fill({ "Access token": "a-very-secret-token", "App secret": "an-app-secret", "Verify token": "a-word-of-ours" });
    await panel.page.getByLabel("Phone number", { exact: true }).fill("5511999990000");
    await panel.button("Create").click();
    await panel.heading("Phone").waitFor();
    assert.equal(await panel.page.getByText("Stored", { exact: true }).count(), 3);
    assert.match(await panel.page.locator("main code").first().textContent(), /\/hooks\/[\w-]+$/);
    assert.ok(!(await panel.page.content()).includes("a-very-secret-token"));
    await panel.turnTo("/channels");
    await panel.row("Phone").getByText("Connected").waitFor();
    const website = (await env.company.data("GET", "/channels")).find(({ type }) => type === "webchat");
    await panel.turnTo(`/channels/${website.id}`);
    await panel.fill({ Title: "Other title" });
    await panel.field("Corner").selectOption("left");
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    await eventually("visitors see it", async () => {
      const { data } = await (await fetch(`${env.company.door}/config`, { headers: { Origin: "https://shop.example" } })).json();
      return data?.title === "Other title" && data.position === "left";
    });
    await panel.button("Create a secret").click();
    await panel.dialog().getByRole("button", { name: "Create" }).click();
    const secret = await panel.dialog().locator("code").textContent();
    assert.ok(secret.length >= 32);
    await panel.button("Done").click();
    await panel.text("Active secrets: 1").waitFor();
    await panel.leave();
  });

  it("gives its users profiles, and the settings it wants", async () => {
    const panel = await env.open("/profiles/new");
    await panel.fill({ Name: "Night shift" });
    await panel.page.getByRole("checkbox", { name: "Conversations: Read", exact: true }).check();
    await panel.page.getByRole("checkbox", { name: "Quick messages", exact: true }).check();
    await panel.button("Create").click();
    await panel.notice("Created.").waitFor();
    const made = (await env.company.data("GET", "/profiles")).find(({ name }) => name === "Night shift");
    assert.deepEqual(made.permissions, { tickets: ["GET"], quickMessages: ["DELETE", "GET", "POST", "PUT"] });
    const person = await env.company.person("Night shift");
    await panel.turnTo(`/profiles/${made.id}`);
    await panel.button("Delete").click();
    await panel.dialog().getByRole("button", { name: "Delete" }).click();
    await panel.dialog().getByRole("alert").waitFor();
    await panel.dialog().getByRole("button", { name: "Cancel" }).click();
    const other = await env.open("/", { person });
    const places = await other.page.locator("#menu a").allTextContents();
    assert.deepEqual(places, ["Quick messages"]);
    await other.leave();
    await panel.turnTo("/company");
    await panel.fill({ "Time zone": "America/Sao_Paulo" });
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    await panel.turnTo("/audit-log");
    await panel.row(/Profile created/).first().waitFor();
    await panel.field("Action").selectOption("updateOwnCompany");
    await eventually("nothing else", async () => (await panel.row(/Profile created/).count()) === 0 && (await panel.row(/settings updated/).count()) > 0);
    // An hour from now nothing has been done yet; until then all of it.
    const local = (at) => new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    await panel.field("From").fill(local(Date.now() + 3_600_000));
    await panel.text("No results.").waitFor();
    await panel.field("From").fill(local(Date.now() - 3_600_000));
    await panel.field("Until").fill(local(Date.now() + 3_600_000));
    await panel.row(/settings updated/).first().waitFor();
    await panel.page.reload();
    await panel.row(/settings updated/).first().waitFor();
    assert.equal(await panel.row(/Profile created/).count(), 0, "the address keeps the filters");
    await panel.field("Action").selectOption("");
    await panel.row(/company/i).first().waitFor();
    await panel.field("Search").fill("night shift");
    await eventually("what was done to it alone", async () => (await panel.row(/settings updated/).count()) === 0 && (await panel.row(/Night shift/).count()) > 0);

    await panel.turnTo("/company");
    await panel.page.getByRole("checkbox", { name: "Require two-step verification for everyone" }).check();
    await panel.button("Save").click();
    // Who has none would lock themselves out.
    await panel.page.locator(".wrong").waitFor();
    const email = address("keeper");
    const { password } = await env.service.cli("admin", "create", email);
    const keeper = await env.open(`/companies/${env.administrator.session.data.company.id}`, { person: { email, password } });
    await keeper.page.getByRole("checkbox", { name: "Require two-step verification for everyone" }).check();
    await keeper.button("Save").click();
    await keeper.notice("Saved.").waitFor();
    await keeper.leave();
    const late = await Panel.open(env, "/");
    await late.fill({ "E-mail": person.email, Password: person.password });
    await late.button("Sign in").click();
    await late.heading("Two-step verification").waitFor();
    await late.text("Two-step verification is required here.").waitFor();
    await late.leave();
    await panel.leave();
  });
});
