// Hotline as its users run it: the binary with its private PostgreSQL (`fsync` and `synchronous_commit` on, as it sets them
// up), a company with a token, a queue, an agent and a webchat.
//
// HOTLINE_LOAD_BINARY names the binary; by default it is that of `make dist`.

import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";

import { Server, command, freePort, removeFolder, temporaryFolder, treeOf, until, usageOf } from "./processes.mjs";
import { target } from "./report.mjs";

/** Nothing is limited by address or by company: one machine is all clients. All else is as by default. */
export const UNLIMITED = [
  ...["--rate-per-minute=0", "--max-connections-per-address=0", "--visitor-sessions-per-minute=0"],
  ...["--visitor-messages-per-minute=0", "--visitor-requests-per-minute=0", "--visitor-sockets-per-address=0"],
];

/** A page that may show the webchat. */
export const ORIGIN = "https://shop.example";

export function binary() {
  const named = process.env.HOTLINE_LOAD_BINARY || join(target, "dist/hotline");
  const path = isAbsolute(named) ? named : resolve(named);
  if (!existsSync(path)) throw new Error(`${path} is not built: run \`make dist\`, or name a binary in HOTLINE_LOAD_BINARY`);
  return path;
}

/** Whether the binary is a release: HOTLINE_LOAD_DEBUG=1 says that the named one is not, where its folder does not. */
export const isRelease = () => !/(^|\/)debug\//.test(binary()) && process.env.HOTLINE_LOAD_DEBUG !== "1";

/** What the caller's shell says of Hotline is not what is measured. */
function environment() {
  const kept = Object.entries(process.env).filter(([name]) => name === "HOTLINE_PG_BIN" || !name.startsWith("HOTLINE_"));
  return Object.fromEntries(kept.filter(([name]) => name !== "RUST_LOG"));
}

export class Hotline {
  /** Starts, and returns when it is ready. */
  static async start({ options = [] } = {}) {
    const hotline = new Hotline();
    hotline.folder = await temporaryFolder("hotline");
    hotline.options = options;
    hotline.port = await freePort();
    await hotline.serve();
    return hotline;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async serve() {
    const words = ["serve", "--listen", `127.0.0.1:${this.port}`, "--data-dir", "data", ...UNLIMITED, ...this.options];
    const [log, cwd] = [join(this.folder, "service.log"), this.folder];
    this.server = Server.start("hotline", "/usr/bin/env", ["-i", ...envWords(), binary(), ...words], { cwd, log, roots: () => this.postgres() });
    await this.server.ready(async () => (await fetch(`${this.url}/health/ready`)).ok);
  }

  /** The process of its private PostgreSQL, which outlives a `kill -9` of Hotline; none before it has started. */
  postgres() {
    const file = join(this.folder, "data/postgres/postmaster.pid");
    return existsSync(file) ? [+readFileSync(file, "utf8").split("\n")[0]] : [];
  }

  /** What Hotline's own process and its PostgreSQL use; PostgreSQL's memory is `pssBytes`, since its processes share much. */
  usage() {
    const database = treeOf(this.postgres());
    return { hotline: usageOf(treeOf([this.server.pid]).filter((pid) => !database.includes(pid))), postgres: usageOf(database) };
  }

  kill = () => this.server.kill();

  /** Where it was, with the data it had. */
  again = () => this.serve();

  /** Stops it, which also stops its PostgreSQL, and takes its data away. */
  async remove() {
    await this.server.stop();
    removeFolder(this.folder);
  }

  /** A command beside the running service, and what it answers. */
  async cli(...words) {
    const said = await command(binary(), [...words, "--json", "--data-dir", "data"], { cwd: this.folder, env: environment() });
    return JSON.parse(said);
  }

  version = async () => (await command(binary(), ["--version"])).trim().replace(/^hotline/, "Hotline");

  /** The version of PostgreSQL that it found. */
  async postgresVersion() {
    const major = readFileSync(join(this.folder, "data/postgres/PG_VERSION"), "utf8").trim();
    const found = [process.env.HOTLINE_PG_BIN, `/usr/lib/postgresql/${major}/bin`].find((bin) => bin && existsSync(join(bin, "postgres")));
    const said = await command(found ? join(found, "postgres") : "postgres", ["--version"]);
    return /\d.*/.exec(said)[0];
  }

  /** A company with a token for everything, and a webchat whose tickets go to a queue with an agent. */
  async company(name = "Peers") {
    const { id } = await this.cli("company", "create", name);
    const { key } = await this.cli("token", "create", "peers", "--company", String(id), "--all");
    const api = new Api(this, key);
    await until("the new company is served", async () => (await api.ask("GET", "/queues")).ok, 10_000);
    const queue = await api.data("POST", "/queues", { name: "Support" });
    const user = await api.data("POST", "/users", { name: "Ana Souza", email: "ana@example.com", queueIds: [queue.id] });
    const webchat = await this.cli(
      ...["channel", "create", "Website", "--company", String(id), "--type", "webchat"],
      ...["--queue", String(queue.id), "--allow-origin", ORIGIN],
    );
    const door = `${this.url}/webchat/${webchat.publicKey}`;
    await until("the new webchat is served", async () => {
      const [config, channel] = await Promise.all([fetch(`${door}/config`), api.ask("GET", `/channels/${webchat.id}`)]);
      return config.ok && channel.ok;
    }, 10_000);
    return { id, key, api, queue, user, webchat, door };
  }
}

const envWords = () => Object.entries(environment()).map(([name, value]) => `${name}=${value}`);

/** Calls of the company's API. */
export class Api {
  constructor(hotline, key) {
    Object.assign(this, { hotline, key });
  }

  async ask(method, path, body, base = `${this.hotline.url}/api/v1`) {
    const headers = { Authorization: `Bearer ${this.key}`, ...(body && { "Content-Type": "application/json" }) };
    const answer = await fetch(base + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    return { ok: answer.ok, status: answer.status, ...(text && JSON.parse(text)) };
  }

  /** What was made, changed or read; fails if it was refused. */
  async data(method, path, body, base) {
    const { ok, status, data, error } = await this.ask(method, path, body, base);
    if (!ok) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(error)}`);
    return data;
  }
}
