// ejabberd of Debian, with the modules of its example configuration that concern one-to-one messages, and the archive
// (`mod_mam`). It stores in a PostgreSQL of its own, as its documentation recommends: with its default storage, Mnesia, each
// message takes longer than the one before, since all those of one sender are one key. Limits of rates are off. Erlang is
// started with the options that `ejabberdctl` gives it, without `epmd`.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Postgres, programs } from "../support/postgres.mjs";
import { Server, command, freePort, removeFolder, temporaryFolder, treeOf } from "../support/processes.mjs";
import { HOST, PASSWORD, SENDERS, nameOf } from "./xmpp.mjs";

export { Client } from "./xmpp.mjs";

export const name = "ejabberd";

/** Accounts created at once. */
const AT_ONCE = 16;

const configuration = (port, postgres) => `
loglevel: info
hosts: [${HOST}]
auth_method: sql
auth_password_format: scram
default_db: sql
sql_type: pgsql
sql_server: "127.0.0.1"
sql_port: ${postgres.port}
sql_database: ${postgres.name}
sql_username: ${postgres.name}
listen:
  - port: ${port}
    ip: "127.0.0.1"
    module: ejabberd_http
    request_handlers:
      /api: mod_http_api
      /ws: ejabberd_http_ws
acl:
  loopback: {ip: [127.0.0.0/8]}
api_permissions:
  local: {who: [{acl: loopback}], what: [register, status]}
shaper_rules:
  max_user_sessions: 10
  max_user_offline_messages: 5000
  c2s_shaper: none
modules:
  mod_adhoc: {}
  mod_admin_extra: {}
  mod_blocking: {}
  mod_caps: {}
  mod_carboncopy: {}
  mod_client_state: {}
  mod_disco: {}
  mod_http_api: {}
  mod_last: {}
  mod_mam: {default: always}
  mod_offline: {access_max_user_messages: max_user_offline_messages}
  mod_ping: {}
  mod_privacy: {}
  mod_private: {}
  mod_pubsub: {plugins: [flat, pep]}
  mod_roster: {versioning: true}
  mod_stream_mgmt: {resend_on_timeout: if_offline}
  mod_vcard: {search: false}
  mod_vcard_xupdate: {}
  mod_version: {}
`;

export async function start({ users }) {
  const folder = await temporaryFolder("ejabberd");
  const [port, nodePort] = [await freePort(), await freePort()];
  const [config, log, spool] = ["ejabberd.yml", "ejabberd.log", "spool"].map((file) => join(folder, file));
  const postgres = await Postgres.start("ejabberd", await freePort());
  const schema = ["-h", postgres.socket, "-p", String(postgres.port), "-U", postgres.name, "-d", postgres.name, "-qX", "-v", "ON_ERROR_STOP=1"];
  await command(join(programs(), "psql"), [...schema, "-f", "/usr/share/ejabberd/sql/pg.sql"]);
  writeFileSync(config, configuration(port, postgres));
  mkdirSync(spool);
  // As the package's file, but without asking a name server: the only host is this one.
  const hosts = join(folder, "inetrc");
  writeFileSync(hosts, '{lookup, [file]}.\n{host, {127,0,0,1}, ["localhost"]}.\n');
  const env = {
    ...{ EJABBERD_CONFIG_PATH: config, EJABBERD_LOG_PATH: log, HOME: folder, ERL_INETRC: hosts, ERL_CRASH_DUMP_BYTES: "0" },
    ...{ ERL_MAX_PORTS: "32000", ERL_MAX_ETS_TABLES: "1400", ERL_LIBS: await libraries(), ERL_DIST_PORT: String(nodePort) },
  };
  const node = ["-sname", "ejabberd@localhost", "-erl_epmd_port", String(nodePort), "-start_epmd", "false"];
  const kernel = ["-kernel", "inet_dist_use_interface", "{127,0,0,1}"];
  const words = [...node, ...kernel, "+K", "true", "+P", "250000", "-noinput", "-mnesia", "dir", JSON.stringify(spool), "-s", "ejabberd"];
  let server;
  const url = `http://127.0.0.1:${port}`;
  const serve = async () => {
    server = Server.start(name, "erl", words, { cwd: spool, env, log: join(folder, "out.log"), roots: () => [postgres.server.pid] });
    await server.ready(async () => (await fetch(`${url}/api/status`, { method: "POST", body: "{}" })).ok);
  };
  await serve();
  await register(url, [...SENDERS, ...Array.from({ length: users }, (_, user) => user)]);
  return {
    version: `ejabberd ${await packageVersion("ejabberd")}`,
    target: { url: `ws://127.0.0.1:${port}/ws` },
    pids: () => server.pids(),
    /** Without PostgreSQL. */
    ownPids: () => treeOf([server.pid]),
    kill: () => server.kill(),
    again: serve,
    remove: async () => {
      await server.stop();
      await postgres.server.stop();
      for (const used of [folder, postgres.folder]) removeFolder(used);
    },
  };
}

/** Where Debian puts Erlang's libraries that belong to an architecture. */
const libraries = async () => `/usr/lib/${(await command("dpkg-architecture", ["-qDEB_HOST_MULTIARCH"]).catch(() => "x86_64-linux-gnu")).trim()}`;

export const packageVersion = async (name) => (await command("dpkg-query", ["-W", "-f", "${Version}", name])).replace(/-[^-]*$/, "");

async function register(url, users) {
  const left = [...users];
  const worker = async () => {
    for (let user; (user = left.pop()) !== undefined; ) {
      const body = JSON.stringify({ user: nameOf(user), host: HOST, password: PASSWORD });
      const answer = await fetch(`${url}/api/register`, { method: "POST", body });
      if (!answer.ok) throw new Error(`ejabberd does not register ${nameOf(user)}: ${answer.status} ${await answer.text()}`);
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
