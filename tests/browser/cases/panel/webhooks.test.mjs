// Webhooks in the panel: a server receives events, and failed deliveries are resent.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";

import { panel } from "../../support/panel.mjs";
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
  const at = panel();
  let receiver;
  before(async () => (receiver = await Receiver.start()));
  after(() => receiver.stop());

  it("are created with a secret that is shown once, tested, sent events, and resent failed ones", async () => {
    const desk = await at.open("/webhooks");
    await desk.link("New webhook").first().click();
    await desk.fill({ URL: "nowhere", Description: "Shop" });
    await desk.button("Create").click();
    await desk.page.locator(".wrong").waitFor();
    await desk.fill({ URL: receiver.url });
    for (const type of ["contact.created", "contact.deleted"]) await desk.page.getByRole("checkbox", { name: type, exact: true }).check();
    await desk.button("Create").click();
    const readSecret = async () => {
      await desk.dialog().getByRole("heading", { name: "Save this secret" }).waitFor();
      const secret = await desk.dialog().locator("code").textContent();
      await desk.button("Done").click();
      return secret;
    };
    const secret = await readSecret();
    assert.match(secret, /^whsec_/);
    await desk.heading("Shop").waitFor();
    await desk.page.reload();
    await desk.heading("Shop").waitFor();
    await desk.settled();
    assert.ok(!(await desk.page.content()).includes(secret), "the secret is not shown again");

    await desk.button("Send test event").click();
    await desk.text(/^Your server responded with 200 in/).waitFor();
    const [test] = receiver.of("webhook.test");
    assert.ok(isSigned(test, secret));
    receiver.status = 500;
    await desk.button("Send test event").click();
    await desk.text(/^Delivery failed:/).waitFor();
    assert.equal(await desk.page.evaluate(() => document.querySelectorAll("#app b").length), 0, "the response is shown as text, not as HTML");

    // A failed delivery is pending until its next attempt, and can be resent at once.
    const contact = await at.company.data("POST", "/contacts", { name: "NewEvent", number: "5511944443333" });
    await eventually("the event is sent", () => receiver.of("contact.created").length > 0);
    await desk.link("Deliveries").click();
    await eventually("the delivery is pending", async () => {
      await desk.page.reload();
      await desk.settled();
      return (await desk.row(/contact\.created .*Pending.*next attempt/s).count()) === 1;
    });
    receiver.status = 200;
    await desk.page.getByRole("button", { name: /^Resend: contact\.created/ }).click();
    await desk.text("will be resent.").waitFor();
    await eventually("the delivery succeeds", async () => {
      await desk.page.reload();
      await desk.settled();
      return (await desk.row(/contact\.created .*Delivered/s).count()) > 0;
    });
    const ids = new Set(receiver.of("contact.created").map(({ headers }) => headers["webhook-id"]));
    assert.equal(ids.size, 1, "every attempt has the same id");
    await desk.field("Status").selectOption("failed");
    await desk.text("No results.").waitFor();
    await desk.field("Status").selectOption("delivered");
    await desk.row(/contact\.created/).first().waitFor();
    await desk.button("Resend today's failures").click();
    await desk.dialog().getByRole("button", { name: "Resend" }).click();
    await desk.text("0 deliveries will be resent.").waitFor();

    // After a rotation, calls are signed with both secrets.
    await desk.link("Shop").click();
    await desk.button("Rotate secret").click();
    await desk.dialog().getByRole("button", { name: "Rotate secret" }).click();
    const newSecret = await readSecret();
    assert.notEqual(newSecret, secret);
    await at.company.data("DELETE", `/contacts/${contact.id}`);
    const deleted = await eventually("the event of the deletion is sent", () => receiver.of("contact.deleted")[0]);
    assert.ok(isSigned(deleted, secret) && isSigned(deleted, newSecret));

    await desk.button("Delete").click();
    assert.match(await desk.dialog().textContent(), /Pending deliveries are canceled/);
    await desk.dialog().getByRole("button", { name: "Delete" }).click();
    await desk.text("Add your server's URL to receive events.").waitFor();
    await desk.leave();
  });
});
