// Synapse, the server of Matrix, as one process: a room is a conversation of an agent and a customer. It has no list of what is
// open: the nearest is the first page of the agent's rooms, the latest first, each with its last message, as the newer apps
// of Matrix ask for it.

import { createHmac, randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Server, command, freePort, temporaryFolder, treeOf, usageOf } from "../support/processes.mjs";
import { debian, python } from "./install.mjs";
import { ask, each } from "./load.mjs";
import { Postgres } from "../support/postgres.mjs";

const VERSION = "1.163.2";
const REQUIREMENTS = [`matrix-synapse[postgres]==${VERSION}`, "psycopg2==2.9.13"];
/** The allocator of its image and of its package. */
const ALLOCATOR = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/libjemalloc.so.2`;
const CUSTOMERS = 16;

export class Synapse {
  name = "Synapse";

  async install() {
    // psycopg2 is compiled against the client library of PostgreSQL.
    await debian(["libpq-dev", "gcc", "libc6-dev", "libjemalloc2"]);
    this.programs = await python("synapse", REQUIREMENTS);
    this.version = `Synapse ${VERSION} (one process)`;
  }

  async start() {
    this.postgres = await Postgres.start("synapse");
    const folder = await temporaryFolder("synapse-site");
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    const secret = randomBytes(32).toString("hex");
    // YAML includes JSON.
    writeFileSync(join(folder, "homeserver.yaml"), JSON.stringify(configuration({ folder, port, secret, socket: this.postgres.socket })));
    writeFileSync(join(folder, "log.yaml"), JSON.stringify(LOG));
    await command(join(this.programs, "generate_signing_key"), ["-o", join(folder, "signing.key")]);
    const words = ["-m", "synapse.app.homeserver", "--config-path", join(folder, "homeserver.yaml")];
    const env = existsSync(ALLOCATOR) ? { LD_PRELOAD: ALLOCATOR } : {};
    this.server = Server.start("Synapse", join(this.programs, "python"), words, { cwd: folder, env, log: join(folder, "synapse.log") });
    await this.server.ready(async () => (await fetch(`${this.url}/health`)).ok);
    this.agent = await this.register(secret, "agent");
    this.customers = await each(CUSTOMERS, (number) => this.register(secret, `customer${number}`), 2);
  }

  /** A user with a token. */
  async register(secret, username) {
    const path = "/_synapse/admin/v1/register";
    const { nonce } = await ask(this.url, { method: "GET", path });
    const password = randomBytes(16).toString("hex");
    const mac = createHmac("sha1", secret).update([nonce, username, password, "notadmin"].join("\0")).digest("hex");
    const made = await ask(this.url, { method: "POST", path, body: { nonce, username, password, admin: false, mac } });
    return { id: made.user_id, headers: { Authorization: `Bearer ${made.access_token}` } };
  }

  async prepare(count) {
    this.count = count;
    const customer = (number) => this.customers[number % CUSTOMERS];
    const rooms = await each(count, async (number) => {
      const body = { preset: "private_chat", name: `Question ${number}`, invite: [customer(number).id] };
      const { room_id: room } = await ask(this.url, { method: "POST", path: "/_matrix/client/v3/createRoom", headers: this.agent.headers, body });
      await ask(this.url, { method: "POST", path: `/_matrix/client/v3/rooms/${encodeURIComponent(room)}/join`, headers: customer(number).headers, body: {} });
      return encodeURIComponent(room);
    });
    const say = (user, number) => ({
      method: "PUT",
      path: `/_matrix/client/v3/rooms/${rooms[number]}/send/m.room.message/${crypto.randomUUID()}`,
      headers: user.headers,
      body: { msgtype: "m.text", body: this.text },
    });
    const list = { ranges: [[0, 99]], required_state: [["m.room.name", ""]], timeline_limit: 1 };
    // Each request opens a connection of its own: requests of one connection do not run at once.
    this.steps = {
      inbound: { name: "inbound", request: (number) => say(customer(number), number) },
      answer: { name: "answer", request: (number) => say(this.agent, number) },
      list: {
        name: "list",
        request: () => ({ method: "POST", path: "/_matrix/client/unstable/org.matrix.simplified_msc3575/sync", headers: this.agent.headers, body: { conn_id: crypto.randomUUID(), lists: { rooms: list } } }),
        entries: ({ rooms }) => Object.keys(rooms).length,
      },
    };
    await each(count, (number) => ask(this.url, say(customer(number), number)));
  }

  stored = async () => +(await this.postgres.sql("select count(*) from events where type = 'm.room.message'"));

  usage = () => ({ server: usageOf(treeOf([this.server.pid])), database: this.postgres.usage() });

  log = () => this.server.tail(10);
}

/** Synapse limits users by default; one machine is all of them here. */
const NONE = { per_second: 1_000_000, burst_count: 1_000_000 };

const configuration = ({ folder, port, secret, socket }) => ({
  server_name: "peers.example",
  report_stats: false,
  pid_file: join(folder, "synapse.pid"),
  signing_key_path: join(folder, "signing.key"),
  media_store_path: join(folder, "media"),
  log_config: join(folder, "log.yaml"),
  listeners: [{ port, type: "http", bind_addresses: ["127.0.0.1"], tls: false, resources: [{ names: ["client"], compress: false }] }],
  database: { name: "psycopg2", args: { user: "synapse", dbname: "synapse", host: socket, cp_min: 5, cp_max: 10 } },
  registration_shared_secret: secret,
  macaroon_secret_key: secret,
  form_secret: secret,
  federation_domain_whitelist: [],
  trusted_key_servers: [],
  rc_message: NONE,
  rc_registration: NONE,
  rc_room_creation: NONE,
  rc_joins_per_room: NONE,
  rc_login: { address: NONE, account: NONE, failed_attempts: NONE },
  rc_joins: { local: NONE, remote: NONE },
  rc_invites: { per_room: NONE, per_user: NONE, per_issuer: NONE },
});

const LOG = {
  version: 1,
  formatters: { plain: { format: "%(asctime)s %(levelname)s %(name)s %(message)s" } },
  handlers: { console: { class: "logging.StreamHandler", formatter: "plain" } },
  root: { level: "WARNING", handlers: ["console"] },
};
