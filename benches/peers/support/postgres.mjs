// A private PostgreSQL for one peer, in a temporary folder, with the settings that Hotline gives its own: `fsync` and
// `synchronous_commit` are on. It listens on a socket in that folder. Each peer has its own, as Hotline has, so that
// CPU time and memory are those of one peer.

import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";

import { Server, command, temporaryFolder, treeOf, usageOf } from "./processes.mjs";

/** As Hotline's own (persistence/postgres/src/postmaster.rs); all others are the defaults of the version. */
const SETTINGS = {
  ...{ fsync: "on", synchronous_commit: "on", full_page_writes: "on", wal_compression: "on", jit: "off" },
  shared_buffers: `${Math.max(16, Math.min(1024, Math.floor(totalmem() / 2 ** 20 / 4)))}MB`,
  ...{ maintenance_work_mem: "64MB", max_wal_size: "4096MB", autovacuum_naptime: "5s" },
};

/** The user that a server runs as if root runs the comparison; other users keep their own. */
export function systemUser(name) {
  if (process.getuid() !== 0) return {};
  const line = readFileSync("/etc/passwd", "utf8").split("\n").find((line) => line.startsWith(`${name}:`));
  if (!line) throw new Error(`there is no user ${name}: install Debian's package that creates it`);
  const [, , uid, gid] = line.split(":");
  return { uid: +uid, gid: +gid };
}

/** Where the programs of PostgreSQL are. */
export function programs() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((one, other) => other - one) : [];
  const folders = [process.env.HOTLINE_PG_BIN, ...versions.map((version) => join(debian, version, "bin"))];
  const found = folders.find((folder) => folder && existsSync(join(folder, "initdb")));
  if (!found) throw new Error("PostgreSQL is not found: install it, or name the folder of its programs in HOTLINE_PG_BIN");
  return found;
}

export class Postgres {
  /** Starts one with a database and a role, both named like the peer. With a port, it also listens there. */
  static async start(name, port = 5432) {
    const postgres = new Postgres();
    const folder = await temporaryFolder(name);
    const user = systemUser("postgres");
    Object.assign(postgres, { name, folder, port, socket: join(folder, "socket") });
    for (const [path, mode] of [[postgres.socket, 0o755], [join(folder, "data"), 0o700]]) {
      mkdirSync(path);
      if (user.uid) chownSync(path, user.uid, user.gid);
      chmodSync(path, mode);
    }
    // Synapse requires the order of characters of the locale C, and the others do without another one.
    const words = ["-D", join(folder, "data"), "-U", "postgres", "-A", "trust", "--encoding=UTF8", "--locale=C"];
    await command(join(programs(), "initdb"), words, { ...user, cwd: "/" });
    postgres.server = Server.start(
      ...[`PostgreSQL of ${name}`, join(programs(), "postgres")],
      ["-D", join(folder, "data"), ...settings({ ...SETTINGS, listen_addresses: port === 5432 ? "" : "127.0.0.1", port, unix_socket_directories: postgres.socket })],
      { ...user, cwd: "/", log: join(folder, "postgres.log") },
    );
    // SIGTERM would wait for clients.
    postgres.server.stop = () => Server.prototype.stop.call(postgres.server, "SIGINT");
    await postgres.server.ready(() => postgres.sql("select 1", "postgres"));
    await postgres.sql(`create role "${name}" superuser login`, "postgres");
    await postgres.sql(`create database "${name}" owner "${name}"`, "postgres");
    return postgres;
  }

  /** Runs a statement, and answers its rows as text. */
  async sql(statement, database = this.name) {
    const words = ["-h", this.socket, "-p", String(this.port), "-U", "postgres", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement];
    return (await command(join(programs(), "psql"), words)).trim();
  }

  usage = () => usageOf(treeOf([this.server.pid]));
}

const settings = (values) => Object.entries(values).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
