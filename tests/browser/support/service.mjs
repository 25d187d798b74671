// The `hotline` binary as its users run it, and a company that speaks through its API.

import { execFile, spawn } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, open, readFile, rm } from "node:fs/promises";
import http from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { START_TIME_MAX_MS } from "./extent.mjs";
import { totp } from "./totp.mjs";
import { eventually } from "./wait.mjs";

const root = fileURLToPath(new URL("../../../", import.meta.url));
export const target = process.env.CARGO_TARGET_DIR || join(root, "target");
const binary = join(target, "debug/hotline");

const run = promisify(execFile);

const PASSWORD = "a long enough password";

/** An address nobody else has. */
const addressOf = (name) => `${name.toLowerCase().replaceAll(/\W/g, "-")}-${randomUUID().slice(0, 8)}@example.com`;

/** Options under which a test is never told to slow down: all its visitors have one address. */
const UNHURRIED = [
  ...["--rate-per-minute", "0", "--visitor-sessions-per-minute", "0"],
  ...["--visitor-messages-per-minute", "0", "--visitor-requests-per-minute", "0"],
];

/**
 * A port that nobody has. Connections are never given one of these, so that a service that is away for a while finds it again.
 */
export async function freePort() {
  for (;;) {
    const server = createServer().listen(randomInt(10_000, 30_000), "127.0.0.1");
    const isFree = await once(server, "listening").then(() => true, () => false);
    if (!isFree) continue;
    const { port } = server.address();
    server.close();
    await once(server, "close");
    return port;
  }
}

/** A process that serves, with data of its own. */
export class Service {
  /** `serve`, or `demo`. */
  static async start(command = "serve", { address = "127.0.0.1:0", options = [] } = {}) {
    const folder = await mkdtemp(join(tmpdir(), "hotline-browser-"));
    // The private PostgreSQL runs as another user when this is root.
    await chmod(folder, 0o711);
    const service = new Service(join(folder, "data"), null);
    Object.assign(service, { folder, command, options });
    await service.serve(address);
    return service;
  }

  /** The one that `run.mjs` has started. */
  static shared() {
    return new Service(process.env.HOTLINE_TEST_DATA_DIR, process.env.HOTLINE_TEST_URL);
  }

  constructor(dataDir, url) {
    this.dataDir = dataDir;
    this.url = url;
  }

  async serve(address) {
    const log = await open(join(this.folder, "service.log"), "a");
    const arguments_ = [this.command, "--listen", address, "--data-dir", this.dataDir, ...UNHURRIED, ...this.options];
    this.process = spawn(binary, arguments_, { stdio: ["ignore", "pipe", log.fd] });
    await log.close();
    const timer = setTimeout(() => this.process.kill("SIGKILL"), START_TIME_MAX_MS);
    this.printed = [];
    const lines = createInterface({ input: this.process.stdout });
    await new Promise((done) => {
      lines.on("line", (line) => {
        this.printed.push(line);
        const found = /^hotline is ready on (http:\S+)/.exec(line);
        if (!found) return;
        this.url = found[1];
        done();
      });
      lines.on("close", done);
    });
    clearTimeout(timer);
    if (this.process.exitCode !== null) throw new Error(`hotline does not start:\n${await this.log()}`);
  }

  /** As when the machine loses power, but for what the disk has. */
  async kill() {
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  /** Where it was, with the data it had. */
  again() {
    return this.serve(new URL(this.url).host);
  }

  log = () => readFile(join(this.folder, "service.log"), "utf8").then((text) => text.split("\n").slice(-60).join("\n"));

  /** Stops it, and takes its data away. */
  async remove() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill("SIGTERM");
      await once(this.process, "exit");
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  /** A command beside the running service, and what it answers. */
  async cli(...words) {
    const { stdout } = await run(binary, [...words, "--json", "--data-dir", this.dataDir]);
    return JSON.parse(stdout);
  }

  /** A call of an administrator of the installation, who works in this company. */
  async asRoot(company, method, path, body) {
    this.root ??= this.signedInRoot();
    return (await this.ask(method, path, body, { Cookie: await this.root, "Hotline-Company": company })).data;
  }

  async signedInRoot() {
    const email = addressOf("root");
    const { password } = await this.cli("admin", "create", email);
    const { data, cookies } = await this.ask("POST", "/session", { email, password }, {});
    const cookie = cookies[0].split(";")[0];
    if (data.state === "enrol") await this.enrol(cookie, password);
    return cookie;
  }

  /** Where a second factor is required, nothing else can be done before it is set up. */
  async enrol(cookie, password) {
    const { data } = await this.ask("POST", "/account/second-factor", { password }, { Cookie: cookie });
    await this.ask("POST", "/account/second-factor/confirm", { code: totp(data.secret) }, { Cookie: cookie });
  }

  /** A request of the panel's API. Tries to sign in are counted by address: each service's root has one. */
  async ask(method, path, body, more) {
    this.localAddress ??= `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 254)}`;
    const headers = { "Content-Type": "application/json", Origin: this.url, ...more };
    const request = http.request(`${this.url}/panel/api/v1${path}`, { method, headers, localAddress: this.localAddress });
    request.end(JSON.stringify(body));
    const [answer] = await once(request, "response");
    const said = await text(answer);
    const { data, error } = said ? JSON.parse(said) : {};
    if (error) throw new Error(`${method} ${path}: ${JSON.stringify(error)}`);
    return { data, cookies: answer.headers["set-cookie"] };
  }

  /** A company with a webchat that these origins may show. */
  async company(origins, ...look) {
    const company = await this.cli("company", "create", `Acme ${randomUUID()}`);
    const id = String(company.id);
    const { key } = await this.cli("token", "create", "tests", "--company", id, "--all");
    const allowed = origins.flatMap((origin) => ["--allow-origin", origin]);
    const kind = ["--type", "webchat"];
    const channel = await this.cli("channel", "create", "Website", "--company", id, ...kind, ...allowed, ...look);
    const made = Object.assign(new Company(this, key, channel, company.id), { name: company.name });
    await eventually("the new company is served", async () => {
      const [answer, list] = await Promise.all([fetch(`${made.door}/config`), made.call("GET", "/channels")]);
      return answer.ok && list.ok;
    });
    return made;
  }
}

/** A company and its webchat. */
export class Company {
  constructor(service, key, channel, id) {
    Object.assign(this, { service, key, channel, id });
  }

  get door() {
    return `${this.service.url}/webchat/${this.channel.publicKey}`;
  }

  /** A call of the API. */
  async call(method, path, body, base = `${this.service.url}/api/v1`) {
    const headers = { Authorization: `Bearer ${this.key}` };
    const isForm = body instanceof FormData;
    if (body && !isForm) headers["Content-Type"] = "application/json";
    const answer = await fetch(base + path, { method, headers, body: isForm ? body : body && JSON.stringify(body) });
    const text = await answer.text();
    const read = text ? JSON.parse(text) : {};
    return { ok: answer.ok, status: answer.status, data: read.data, error: read.error };
  }

  async data(...request) {
    const { ok, data, error } = await this.call(...request);
    if (!ok) throw new Error(`${request.slice(0, 2).join(" ")}: ${JSON.stringify(error)}`);
    return data;
  }

  /** The ticket of the visitor who said this last. */
  ticketOf(body) {
    return eventually(`a ticket in which ${JSON.stringify(body)} was said last`, async () => {
      const open = await this.data("GET", "/tickets?status=open");
      return open.find(({ lastMessage }) => lastMessage && lastMessage.body === body);
    });
  }

  /** A user with this profile, and a password for the panel. */
  async person(profile, { name = profile, password = PASSWORD, email = addressOf(name) } = {}) {
    const [{ id: profileId }] = (await this.data("GET", "/profiles")).filter((known) => known.name === profile);
    const body = { name, email, password, profileId };
    // A token makes nobody an administrator: who administers the installation does.
    const { id } = await (profile === "Administrator" ? this.service.asRoot(this.id, "POST", "/users", body) : this.data("POST", "/users", body));
    return { id, name, email, password };
  }

  messages = (ticket) => this.data("GET", `/tickets/${ticket.id}/messages`);

  say = (ticket, body) => this.data("POST", "/messages", { ticketId: ticket.id, type: "text", body });

  typing = (ticket, typing, userId) =>
    this.data("POST", `/tickets/${ticket.id}/typing`, { typing, userId }, this.door);

  doing = (ticket) => this.data("GET", `/tickets/${ticket.id}/typing`, null, this.door);

  interactive = (ticket, interactive) =>
    this.data("POST", "/messages", { ticketId: ticket.id, type: "interactive", interactive });

  /** Sends a file, with words if there are any. */
  media(ticket, { name, mimeType, content }, body) {
    const form = new FormData();
    form.append("ticketId", ticket.id);
    form.append("type", "media");
    if (body) form.append("body", body);
    form.append("medias", new Blob([content], { type: mimeType }), name);
    return this.data("POST", "/messages", form);
  }
}
