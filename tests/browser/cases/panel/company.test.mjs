// From nothing to a first answered chat, by mouse and what is typed: company, user, queue, channel, embed line, token.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { visit } from "../../support/browser.mjs";
import { address, Desk, panel } from "../../support/panel.mjs";
import { Shop } from "../../support/shop.mjs";
import { eventually } from "../../support/wait.mjs";

const run = promisify(execFile);

describe("an installation", () => {
  const at = panel();

  it("has a new company whose agent answers a first chat", async () => {
    const shop = await Shop.start();
    const email = address("installer");
    const { password } = await at.service.cli("admin", "create", email);
    const desk = await Desk.open(at, "/");
    await desk.fill({ "E-mail": email, Password: password });
    await desk.button("Sign in").click();

    const name = `New ${randomUUID().slice(0, 8)}`;
    await desk.page.getByRole("link", { name: /^1?\s*Companies/ }).last().click();
    await desk.link("New company").first().click();
    await desk.fill({ Name: name });
    await desk.button("Create").click();
    await desk.heading(name).waitFor();
    await desk.page.getByRole("button", { name: `Go to company: ${name}` }).click();
    await desk.page.locator("header .company", { hasText: name }).waitFor();

    await desk.link("Queues").click();
    await desk.link("New queue").first().click();
    await desk.fill({ Name: "Support" });
    await desk.button("Create").click();
    await desk.heading("Support").waitFor();

    await desk.link("Users").click();
    await desk.link("New user").first().click();
    const agent = address("agent");
    await desk.fill({ Name: "Ana Souza", "E-mail": agent });
    const pick = async (label, option) => {
      await desk.page.getByRole("combobox", { name: label }).click();
      await desk.page.getByRole("option", { name: option, exact: true }).click();
    };
    await pick("Profile", "Administrator");
    await pick("Queues", "Support");
    await desk.button("Create").click();
    await desk.heading("Ana Souza").waitFor();
    await desk.button("Invitation link").click();
    const invitation = await desk.dialog().locator("code").textContent();
    await desk.button("Done").click();

    await desk.link("Channels").click();
    await desk.link("New channel").first().click();
    await desk.fill({ Name: "Website", "Allowed websites": shop.origin, Title: "Ask us" });
    await pick("Queue", "Support");
    const preview = desk.page.locator(".preview .frame > div");
    await eventually("the preview follows", () => preview.evaluate((host) => host.shadowRoot.querySelector("h2").textContent === "Ask us"));
    await desk.button("Create").click();
    await desk.heading("Website").waitFor();
    const line = await desk.dialog().or(desk.page.locator("main")).locator("code", { hasText: "<script" }).textContent();
    const widget = /src="([^"]+)"/.exec(line)[1];

    await desk.link("API tokens").click();
    await desk.link("New token").first().click();
    await desk.fill({ Name: "Shop" });
    for (const box of ["Conversations: Read", "Messages: Create", "Messages: Read"]) await desk.page.getByRole("checkbox", { name: box, exact: true }).check();
    await desk.button("Create").click();
    const key = await desk.dialog().locator("code").first().textContent();
    const curl = await desk.dialog().locator("code").nth(1).textContent();
    await desk.button("Done").click();
    const { stdout } = await run("sh", ["-c", `${curl.replace("curl ", "curl -sS ")}`]);
    assert.deepEqual(JSON.parse(stdout).data, []);

    // The invited one chooses a password, and is in.
    const { hash } = new URL(invitation);
    const invited = await Desk.open(at, `/welcome${hash}`);
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
    const used = await Desk.open(at, `/welcome${hash}`);
    await used.text("This link has been used").waitFor();
    await used.leave();

    // A visitor asks on the page with the line, and is answered by the token.
    const base = widget.replace("/widget.js", "").replace(new URL(widget).origin, at.service.url);
    const visitor = await visit(at.browser, shop.page({ door: base }));
    await visitor.open();
    await visitor.tell("Is anybody there?");
    const authorized = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const ticket = await eventually("a ticket", async () => {
      const { data } = await (await fetch(`${at.service.url}/api/v1/tickets`, { headers: authorized })).json();
      return data[0];
    });
    assert.equal(ticket.queue.name, "Support");
    const body = JSON.stringify({ ticketId: ticket.id, type: "text", body: "Yes, we are." });
    assert.equal((await fetch(`${at.service.url}/api/v1/messages`, { method: "POST", headers: authorized, body })).status, 202);
    await visitor.theirs("Yes, we are.").waitFor();
    await visitor.leave();
    await desk.leave();
    await shop.stop();
  });

  it("shows how it does, and who has done what", async () => {
    const email = address("watcher");
    const { password } = await at.service.cli("admin", "create", email);
    const desk = await at.open("/installation", { person: { email, password } });
    await desk.page.getByRole("figure", { name: "Requests", exact: true }).waitFor();
    const plots = desk.page.locator(".plot strong");
    assert.equal(await plots.count(), 12);
    await eventually("a second reading, from which a rate is known", async () => (await desk.page.locator(".plot polyline").count()) >= 9);
    assert.match(await desk.page.getByRole("figure", { name: "Memory", exact: true }).textContent(), /MiB/);
    await desk.screenshot("panel-installation");
    await desk.turnTo("/companies/new");
    await desk.fill({ Name: `Audited ${randomUUID().slice(0, 8)}`, "Time zone": "Nowhere/Land" });
    await desk.button("Create").click();
    await desk.page.locator(".wrong").waitFor();
    await desk.fill({ "Time zone": "America/Sao_Paulo", "API calls per minute": "90" });
    await desk.button("Create").click();
    await desk.notice("Created.").waitFor();
    await desk.page.getByRole("checkbox", { name: "Active" }).uncheck();
    await desk.button("Save").click();
    await desk.notice("Saved.").waitFor();
    await desk.turnTo("/audit-log");
    await desk.row(/Company created/).first().waitFor();
    const known = await desk.page.locator("header .account span").textContent();
    await desk.row(known).first().waitFor();
    await desk.leave();
  });
});

describe("a company", () => {
  const at = panel();

  it("sets up its channels, whose secrets are written and never read", async () => {
    const desk = await at.open("/channels/new");
    await desk.field("Type").selectOption("whatsapp");
    await desk.fill({ Name: "Phone", "Phone number ID": "106540352" });
    await desk.fill({ "Access token": "a-very-secret-token", "App secret": "an-app-secret", "Verify token": "a-word-of-ours" });
    await desk.page.getByLabel("Phone number", { exact: true }).fill("5511999990000");
    await desk.button("Create").click();
    await desk.heading("Phone").waitFor();
    assert.equal(await desk.page.getByText("Stored", { exact: true }).count(), 3);
    assert.match(await desk.page.locator("main code").first().textContent(), /\/hooks\/[\w-]+$/);
    assert.ok(!(await desk.page.content()).includes("a-very-secret-token"));
    await desk.turnTo("/channels");
    await desk.row("Phone").getByText("Connected").waitFor();
    const website = (await at.company.data("GET", "/channels")).find(({ type }) => type === "webchat");
    await desk.turnTo(`/channels/${website.id}`);
    await desk.fill({ Title: "Other title" });
    await desk.field("Corner").selectOption("left");
    await desk.button("Save").click();
    await desk.notice("Saved.").waitFor();
    await eventually("visitors see it", async () => {
      const { data } = await (await fetch(`${at.company.door}/config`, { headers: { Origin: "https://shop.example" } })).json();
      return data?.title === "Other title" && data.position === "left";
    });
    await desk.button("Create a secret").click();
    await desk.dialog().getByRole("button", { name: "Create" }).click();
    const secret = await desk.dialog().locator("code").textContent();
    assert.ok(secret.length >= 32);
    await desk.button("Done").click();
    await desk.text("Active secrets: 1").waitFor();
    await desk.leave();
  });

  it("gives its users profiles, and the settings it wants", async () => {
    const desk = await at.open("/profiles/new");
    await desk.fill({ Name: "Night shift" });
    await desk.page.getByRole("checkbox", { name: "Conversations: Read", exact: true }).check();
    await desk.page.getByRole("checkbox", { name: "Quick messages", exact: true }).check();
    await desk.button("Create").click();
    await desk.notice("Created.").waitFor();
    const made = (await at.company.data("GET", "/profiles")).find(({ name }) => name === "Night shift");
    assert.deepEqual(made.permissions, { tickets: ["GET"], quickMessages: ["DELETE", "GET", "POST", "PUT"] });
    const person = await at.company.person("Night shift");
    await desk.turnTo(`/profiles/${made.id}`);
    await desk.button("Delete").click();
    await desk.dialog().getByRole("button", { name: "Delete" }).click();
    await desk.dialog().getByRole("alert").waitFor();
    await desk.dialog().getByRole("button", { name: "Cancel" }).click();
    const other = await at.open("/", { person });
    const places = await other.page.locator("#menu a").allTextContents();
    assert.deepEqual(places, ["Quick messages"]);
    await other.leave();
    await desk.turnTo("/company");
    await desk.fill({ "Time zone": "America/Sao_Paulo" });
    await desk.button("Save").click();
    await desk.notice("Saved.").waitFor();
    await desk.turnTo("/audit-log");
    await desk.row(/Profile created/).first().waitFor();
    await desk.field("Action").selectOption("updateOwnCompany");
    await eventually("nothing else", async () => (await desk.row(/Profile created/).count()) === 0 && (await desk.row(/settings updated/).count()) > 0);
    // An hour from now nothing has been done yet; until then all of it.
    const local = (at) => new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    await desk.field("From").fill(local(Date.now() + 3_600_000));
    await desk.text("No results.").waitFor();
    await desk.field("From").fill(local(Date.now() - 3_600_000));
    await desk.field("Until").fill(local(Date.now() + 3_600_000));
    await desk.row(/settings updated/).first().waitFor();
    await desk.page.reload();
    await desk.row(/settings updated/).first().waitFor();
    assert.equal(await desk.row(/Profile created/).count(), 0, "the address keeps the filters");
    await desk.field("Action").selectOption("");
    await desk.row(/company/i).first().waitFor();
    await desk.field("Search").fill("night shift");
    await eventually("what was done to it alone", async () => (await desk.row(/settings updated/).count()) === 0 && (await desk.row(/Night shift/).count()) > 0);

    await desk.turnTo("/company");
    await desk.page.getByRole("checkbox", { name: "Require two-step verification for everyone" }).check();
    await desk.button("Save").click();
    // Who has none would lock themselves out.
    await desk.page.locator(".wrong").waitFor();
    const email = address("keeper");
    const { password } = await at.service.cli("admin", "create", email);
    const keeper = await at.open(`/companies/${at.administrator.session.data.company.id}`, { person: { email, password } });
    await keeper.page.getByRole("checkbox", { name: "Require two-step verification for everyone" }).check();
    await keeper.button("Save").click();
    await keeper.notice("Saved.").waitFor();
    await keeper.leave();
    const late = await Desk.open(at, "/");
    await late.fill({ "E-mail": person.email, Password: person.password });
    await late.button("Sign in").click();
    await late.heading("Two-step verification").waitFor();
    await late.text("Two-step verification is required here.").waitFor();
    await late.leave();
    await desk.leave();
  });
});
