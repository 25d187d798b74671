// A channel whose provider no longer takes its messages: what is said of it, and what mends it.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";

import { panelEnv } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";

const SECRET = "an-app-secret";
const NUMBER_ID = "106540352242922";
const BUSINESS = "551130000000";

/** The provider: it takes what comes with the right token, and nothing else. */
class Provider {
  static async start() {
    const provider = new Provider();
    provider.server = createServer((request, response) => {
      request.resume();
      const isRight = request.headers.authorization === "Bearer the-new-token";
      const isOfTemplates = request.url.includes("/message_templates");
      const refusal = { error: { message: "Session has expired", type: "OAuthException", code: 190 } };
      response.writeHead(isRight ? 200 : 401, { "Content-Type": "application/json" });
      const accepted = () => (isOfTemplates ? { data: provider.templates } : { messages: [{ id: `wamid.${(provider.taken += 1)}` }] });
      response.end(JSON.stringify(isRight ? accepted() : refusal));
    });
    provider.server.listen(0, "127.0.0.1");
    await once(provider.server, "listening");
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  taken = 0;
  templates = [];

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}

/** What the provider tells of one field. */
function told(field, value) {
  return JSON.stringify({ object: "whatsapp_business_account", entry: [{ id: "102290129340398", changes: [{ value, field }] }] });
}

/** What the provider tells when a contact has written. */
function written(from, text) {
  const value = {
    messaging_product: "whatsapp",
    metadata: { display_phone_number: BUSINESS, phone_number_id: NUMBER_ID },
    contacts: [{ profile: { name: "Maria Lima" }, wa_id: from }],
    messages: [{ from, id: `wamid.in.${from}`, timestamp: String(Math.floor(Date.now() / 1000)), type: "text", text: { body: text } }],
  };
  return told("messages", value);
}

/** The provider calls the hook with this body. */
async function call(env, hook, body) {
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  const answer = await eventually("the hook is served", async () => {
    const answer = await fetch(new URL(new URL(hook).pathname, env.service.url), { method: "POST", body, headers: { "Content-Type": "application/json", "X-Hub-Signature-256": `sha256=${signature}` } });
    return answer.ok && answer;
  });
  assert.equal(answer.status, 200);
}

describe("a channel", () => {
  const env = panelEnv();
  let provider;
  before(async () => (provider = await Provider.start()));
  after(() => provider.stop());

  it("says why its messages are not taken, and is well again with another access token", async () => {
    const panel = await env.open("/channels/new");
    await panel.field("Type").selectOption("whatsapp");
    await panel.fill({ Name: "Phone", "Phone number ID": NUMBER_ID, "Access token": "the-old-token", "App secret": SECRET, "Verify token": "ours" });
    await panel.page.getByLabel("Phone number", { exact: true }).fill(BUSINESS);
    await panel.button("Create").click();
    await panel.heading("Phone").waitFor();
    const hook = await panel.page.locator("main code").first().textContent();
    const path = panel.where();
    // A gateway instead of the usual provider is set by who runs the installation, with the token anew.
    await env.service.cli("channel", "update", path.match(/\d+$/)[0], "--provider-url", provider.url, "--access-token", "the-old-token");

    await call(env, hook, written("5511933332222", "Is anybody there?"));
    const ticket = await env.company.ticketOf("Is anybody there?");
    await env.company.say(ticket, "We are.");
    await panel.turnTo("/channels");
    await eventually("the list says so", async () => {
      await panel.go("/channels?status=error");
      return (await panel.row(/^Phone.*Error/s).count()) === 1;
    });
    const why = (await panel.row("Phone").getByRole("cell").last().textContent()).trim();
    assert.ok(why.length > 5, why);
    await panel.link("Phone").click();
    await panel.page.getByRole("alert").filter({ hasText: why }).waitFor();
    await panel.screenshot("panel-channel-error");

    await panel.fill({ "Access token": "the-new-token" });
    await panel.button("Save").click();
    await panel.notice("Saved.").waitFor();
    await panel.page.getByText("Connected", { exact: true }).waitFor();
    assert.equal(await panel.page.getByRole("alert").filter({ hasText: why }).count(), 0);
    await env.company.say(ticket, "Now we are.");
    await eventually("it is taken", () => provider.taken > 0);

    // What the provider says of the number and of its templates.
    await panel.page.getByText("Not reported yet").first().waitFor();
    provider.templates = ["APPROVED", "PAUSED"].map((status) => ({ name: status.toLowerCase(), language: "en", category: "MARKETING", status, components: [{ type: "BODY", text: "Hi" }] }));
    await call(env, hook, told("phone_number_quality_update", { display_phone_number: BUSINESS, event: "FLAGGED", current_limit: "TIER_1K" }));
    await panel.turnTo("/channels");
    await panel.turnTo(path);
    await panel.page.getByText("Low", { exact: true }).waitFor();
    await panel.page.getByText("TIER_1K", { exact: true }).waitFor();
    await panel.button("Show templates").click();
    await panel.row(/^approved.*Approved/s).waitFor();
    await panel.row(/^paused.*Paused/s).waitFor();
    await panel.screenshot("panel-channel-templates");
    await panel.leave();
  });
});
