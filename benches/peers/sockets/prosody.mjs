// Prosody of Debian, with the modules of its packaged configuration, and archive (`mam`) and WebSocket enabled. It stores
// in files, as by default. Its limit of rates (`limits`) is off.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Server, freePort, listens, removeFolder, temporaryFolder } from "../support/processes.mjs";
import { packageVersion } from "./ejabberd.mjs";
import { HOST, SENDERS, nameOf, storedKeys } from "./xmpp.mjs";

export { Client } from "./xmpp.mjs";

export const name = "Prosody";

/** Of its default way to store passwords. One salt for all accounts: clients then derive the key only once. */
const [SALT, ITERATIONS] = ["aG90bGluZS1wZWVycy1zYWx0", 10_000];

const configuration = (folder, port) => `
plugin_paths = {}
modules_enabled = {
  "disco"; "roster"; "saslauth"; "blocklist"; "bookmarks"; "carbons"; "pep"; "private"; "smacks"; "vcard4"; "vcard_legacy";
  "csi_simple"; "ping"; "time"; "uptime"; "version"; "mam"; "websocket";
}
modules_disabled = { "s2s"; "tls" }
run_as_root = true
data_path = "${folder}/data"
pidfile = "${folder}/prosody.pid"
authentication = "internal_hashed"
storage = "internal"
archive_expires_after = "1w"
consider_websocket_secure = true
c2s_ports = {}
http_ports = { ${port} }
http_interfaces = { "127.0.0.1" }
https_ports = {}
http_default_host = "${HOST}"
log = { info = "${folder}/prosody.log" }
VirtualHost "${HOST}"
`;

/** An account as Prosody stores it: half a million rounds of hashing would measure nothing here. */
async function writeAccounts(folder, users) {
  const { storedKey, serverKey } = await storedKeys(Buffer.from(SALT).toString("base64"), ITERATIONS);
  const fields = `["salt"]="${SALT}";["iteration_count"]=${ITERATIONS};["stored_key"]="${storedKey.toString("hex")}";["server_key"]="${serverKey.toString("hex")}";`;
  const accounts = join(folder, "data", HOST, "accounts");
  mkdirSync(accounts, { recursive: true });
  for (const user of users) writeFileSync(join(accounts, `${nameOf(user)}.dat`), `return {${fields}};\n`);
}

export async function start({ users }) {
  const folder = await temporaryFolder("prosody");
  const port = await freePort();
  const config = join(folder, "prosody.cfg.lua");
  writeFileSync(config, configuration(folder, port));
  await writeAccounts(folder, [...SENDERS, ...Array.from({ length: users }, (_, user) => user)]);
  let server;
  const serve = async () => {
    server = Server.start(name, "prosody", ["--config", config, "-F"], { cwd: folder, log: join(folder, "out.log") });
    await server.ready(() => listens(port)).catch((error) => {
      throw new Error(`${error.message}\n${readFileSync(join(folder, "prosody.log"), "utf8").slice(-2000)}`);
    });
  };
  await serve();
  return {
    version: `Prosody ${await packageVersion("prosody")}`,
    target: { url: `ws://127.0.0.1:${port}/xmpp-websocket` },
    pids: () => server.pids(),
    kill: () => server.kill(),
    again: serve,
    remove: async () => {
      await server.stop();
      removeFolder(folder);
    },
  };
}
