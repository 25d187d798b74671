// Hotline at the desk: visitors of a webchat, and people on a phone number, in a company of its own so that the list of the
// webchat's company has as many open conversations as that of the peers.

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Hotline, ORIGIN } from "../support/hotline.mjs";
import { command, until } from "../support/processes.mjs";
import { ask, each } from "./load.mjs";
import { programs } from "../support/postgres.mjs";

const PHONE = { id: "106540352242922", number: "5511999990000", secret: "the-secret-of-the-app" };

export class HotlineDesk {
  name = "Hotline";

  async start() {
    // Sessions outlast the run: a visitor of each would be present.
    this.hotline = await Hotline.start({ options: ["--session-idle-after=24h"] });
    this.url = this.hotline.url;
    this.version = await this.hotline.version();
    this.company = await this.hotline.company();
    this.door = new URL(this.company.door).pathname;
    await this.startPhone();
  }

  /** A phone number of another company. No provider is there: nothing is sent on it. */
  async startPhone() {
    const other = await this.hotline.company("Phone");
    const words = ["--company", String(other.id), "--type", "whatsapp", "--queue", String(other.queue.id)];
    const known = ["--number", PHONE.number, "--phone-number-id", PHONE.id, "--app-secret", PHONE.secret];
    const secrets = ["--access-token", "unused", "--verify-token", "unused", "--provider-url", "http://127.0.0.1:9"];
    const channel = await this.hotline.cli("channel", "create", "Phone", ...words, ...known, ...secrets);
    this.hook = `/hooks/${channel.publicKey}`;
    await until("the new phone number is served", async () => (await other.api.ask("GET", `/channels/${channel.id}`)).ok, 10_000);
  }

  async prepare(count) {
    this.count = count;
    const visitors = await each(count, async () => {
      const { data: session } = await ask(this.url, { method: "POST", path: `${this.door}/sessions`, headers: { Origin: ORIGIN }, body: {} });
      const headers = { Origin: ORIGIN, Authorization: `Bearer ${session.token}` };
      const body = { body: "Is anybody there?", clientId: crypto.randomUUID() };
      await ask(this.url, { method: "POST", path: `${this.door}/messages`, headers, body });
      return headers;
    });
    const tickets = [];
    for (let page = 1; tickets.length < count; page++) {
      const { data } = await this.company.api.ask("GET", `/tickets?status=open&perPage=100&page=${page}`);
      if (!data.length) throw new Error(`Hotline has ${tickets.length} open tickets, not ${count}`);
      tickets.push(...data);
    }
    await each(count, (number) => ask(this.url, this.call(number, "Is anybody there?")));
    const authorization = { Authorization: `Bearer ${this.company.key}` };
    this.steps = {
      inbound: { name: "inbound", request: (number) => ({ method: "POST", path: `${this.door}/messages`, headers: visitors[number], body: { body: this.text, clientId: crypto.randomUUID() } }) },
      call: { name: "inbound by a signed call", request: (number) => this.call(number, this.text) },
      answer: { name: "answer", request: (number) => ({ method: "POST", path: "/api/v1/messages", headers: authorization, body: { ticketId: tickets[number].id, type: "text", body: this.text } }) },
      list: {
        name: "list",
        request: () => ({ method: "GET", path: "/api/v1/tickets?status=open&perPage=100&sort=activity", headers: authorization }),
        entries: ({ data }) => data.length,
      },
    };
  }

  /** What WhatsApp's servers send for a message of one person. */
  call(number, text) {
    const from = `55219${String(number).padStart(8, "0")}`;
    const message = { id: `wamid.${crypto.randomUUID()}`, from, timestamp: String(Math.floor(Date.now() / 1000)), type: "text", text: { body: text } };
    const value = {
      messaging_product: "whatsapp",
      metadata: { display_phone_number: PHONE.number, phone_number_id: PHONE.id },
      contacts: [{ profile: { name: `Maria Lima ${number}` }, wa_id: from }],
      messages: [message],
    };
    const body = JSON.stringify({ object: "whatsapp_business_account", entry: [{ id: "102290129340398", changes: [{ value, field: "messages" }] }] });
    const signature = createHmac("sha256", PHONE.secret).update(body).digest("hex");
    return { method: "POST", path: this.hook, headers: { "X-Hub-Signature-256": `sha256=${signature}` }, body };
  }

  /** Messages of both companies in its PostgreSQL, which gets them after they are acknowledged. */
  async stored() {
    const socket = join(this.hotline.folder, "data/postgres/socket");
    return +(await command(join(programs(), "psql"), ["-h", socket, "-U", "hotline", "-d", "hotline", "-XAtq", "-c", "select count(*) from messages"]));
  }

  usage() {
    const { hotline, postgres } = this.hotline.usage();
    return { server: hotline, database: postgres };
  }

  log = () => readFileSync(join(this.hotline.folder, "service.log"), "utf8").trim().split("\n").slice(-10).join("\n");
}
