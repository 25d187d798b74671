// Webhooks in the panel: a server receives events, and failed deliveries are resent.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";

import { panelEnv } from "../../support/panel.mjs";
import { eventually } from "../../support/wait.mjs";

/** A server that receives webhook calls, and responds to each with `status`. */
class Receiver {
  static async start() {
    const receiver = new Receiver();
    receiver.server = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString();
      receiver.calls.push({ headers: request.headers, body, event: JSON.parse(body) });
      response.writeHead(receiver.status).end("<b>as you wish</b>");
    });
    receiver.server.listen(0, "127.0.0.1");
    await once(receiver.server, "listening");
    receiver.url = `http://127.0.0.1:${receiver.server.address().port}/events`;
    return receiver;
  }

  status = 200;
  calls = [];

  /** The received calls with events of this type. */
  of = (type) => this.calls.filter(({ event }) => event.type === type);

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}

/** Whether the call is signed with this secret, as Standard Webhooks specify. */
function isSigned({ headers, body }, secret) {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
  return headers["webhook-signature"].split(" ").includes(`v1,${createHmac("sha256", key).update(content).digest("base64")}`);
}

describe("webhooks", () => {
  const env = panelEnv();
  let receiver;
  before(async () => (receiver = await Receiver.start()));
  after(() => receiver.stop());

  it("are created with a secret that is shown once, tested, sent events, and resent failed ones", async () => {
    const panel = await env.open("/webhooks");
    await panel.link("New webhook").first().click();
    await panel.fill({ URL: "nowhere", Description: "Shop" });
    await panel.button("Create").click();
    await panel.page.locator(".wrong").waitFor();
    await panel.fill({ URL: receiver.url });
    for (const type of ["contact.created", "contact.deleted"]) await panel.page.getByRole("checkbox", { name: type, exact: true }).check();
    await panel.button("Create").click();
    const readSecret = async () => {
      await panel.dialog().getByRole("heading", { name: "Save this secret" }).waitFor();
      const secret = await panel.dialog().locator("code").textContent();
      await panel.button("Done").click();
      return secret;
    };
    const secret = await readSecret();
    assert.match(secret, /^whsec_/);
    await panel.heading("Shop").waitFor();
    await panel.page.reload();
    await panel.heading("Shop").waitFor();
    await panel.settled();
    assert.ok(!(await panel.page.content()).includes(secret), "the secret is not shown again");

    await panel.button("Send test event").click();
    await panel.notice(/^Your server responded with 200 in/).waitFor();
    const [test] = receiver.of("webhook.test");
    assert.ok(isSigned(test, secret));
    receiver.status = 500;
    await panel.button("Send test event").click();
    await panel.text(/^Delivery failed:/).waitFor();
    assert.equal(await panel.page.evaluate(() => document.querySelectorAll("#app b").length), 0, "the response is shown as text, not as HTML");

    // A failed delivery is pending until its next attempt, and can be resent at once.
    const contact = await env.company.data("POST", "/contacts", { name: "NewEvent", number: "5511944443333" });
    await eventually("the event is sent", () => receiver.of("contact.created").length > 0);
    await panel.link("Deliveries").click();
    await eventually("the delivery is pending", async () => {
      await panel.page.reload();
      await panel.settled();
      return (await panel.row(/contact\.created .*Pending.*next attempt/s).count()) === 1;
    });
    receiver.status = 200;
    await panel.page.getByRole("button", { name: /^Resend: contact\.created/ }).click();
    await panel.notice(/will be resent\.$/).waitFor();
    await eventually("the delivery succeeds", async () => {
      await panel.page.reload();
      await panel.settled();
      return (await panel.row(/contact\.created .*Delivered/s).count()) > 0;
    });
    const ids = new Set(receiver.of("contact.created").map(({ headers }) => headers["webhook-id"]));
    assert.equal(ids.size, 1, "every attempt has the same id");
    await panel.field("Status").selectOption("failed");
    await panel.text("No results.").waitFor();
    await panel.field("Status").selectOption("delivered");
    await panel.row(/contact\.created/).first().waitFor();
    await panel.button("Resend today's failures").click();
    await panel.dialog().getByRole("button", { name: "Resend" }).click();
    await panel.notice("0 deliveries will be resent.").waitFor();

    // After a rotation, calls are signed with both secrets.
    await panel.link("Shop").click();
    await panel.button("Rotate secret").click();
    await panel.dialog().getByRole("button", { name: "Rotate secret" }).click();
    const newSecret = await readSecret();
    assert.notEqual(newSecret, secret);
    await env.company.data("DELETE", `/contacts/${contact.id}`);
    const deleted = await eventually("the event of the deletion is sent", () => receiver.of("contact.deleted")[0]);
    assert.ok(isSigned(deleted, secret) && isSigned(deleted, newSecret));

    await panel.button("Delete").click();
    assert.match(await panel.dialog().textContent(), /Pending deliveries are canceled/);
    await panel.dialog().getByRole("button", { name: "Delete" }).click();
    await panel.text("Add your server's URL to receive events.").waitFor();
    await panel.leave();
  });
});
