// Servers under measurement: starts them, waits until they are ready, stops or kills them, and reads what they use from
// /proc. Whatever was started is stopped and its folders are removed, also when the run fails or is interrupted.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { chmod, mkdtemp } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** Clock ticks a second, in which /proc tells CPU time: 100 on every Linux, whatever the kernel's own clock. */
const TICKS_PER_S = 100;

/** How long a server may take to start or to stop. */
export const START_TIME_MAX_MS = 180_000;
const STOP_TIME_MAX_MS = 60_000;

const PROBE_INTERVAL_MS = 50;

const started = new Set();
const folders = new Set();

/** Runs a command that ends, and answers its output; fails with what it said. */
export async function command(program, words, options = {}) {
  try {
    return (await promisify(execFile)(program, words, { maxBuffer: 64 << 20, ...options })).stdout;
  } catch (error) {
    const said = `${error.stdout ?? ""}${error.stderr ?? ""}`.trim().split("\n").slice(-20).join("\n");
    throw new Error(`${program} ${words.join(" ")}: ${error.code ?? error.signal}\n${said}`);
  }
}

/** Waits until `probe` answers something true; an error of it counts as no, and is shown when time is up. */
export async function until(what, probe, timeMaxMs = START_TIME_MAX_MS) {
  const end = Date.now() + timeMaxMs;
  for (let last; ; await delay(PROBE_INTERVAL_MS)) {
    try {
      const found = await probe();
      if (found) return found;
    } catch (error) {
      if (error.isFinal) throw error;
      last = error;
    }
    if (Date.now() > end) throw new Error(`not within ${timeMaxMs / 1000} s: ${what}${last ? ` (${last.message})` : ""}`);
  }
}

/** Whether something listens there. */
export async function listens(port, host = "127.0.0.1") {
  const socket = connect(port, host);
  try {
    await once(socket, "connect");
    return true;
  } finally {
    socket.destroy();
  }
}

/** A port that nobody has at the moment, below those that the system gives to connections. */
export async function freePort() {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(() => true, () => false);
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

/** A folder under TMPDIR that is removed at the end; other users may pass through it, for servers that run as such. */
export async function temporaryFolder(name) {
  const folder = await mkdtemp(join(tmpdir(), `hotline-peers-${name}-`));
  await chmod(folder, 0o711);
  folders.add(folder);
  return folder;
}

export function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  folders.delete(folder);
}

/** A server process with its log. */
export class Server {
  /**
   * `roots` answers the ids of further processes that belong to the server although it is not their parent, such as its
   * PostgreSQL. `uid` and `gid` are those of the user that it runs as.
   */
  static start(name, program, words, { cwd, env, log, uid, gid, stdin = "ignore", roots = () => [] } = {}) {
    const file = log ? openSync(log, "a") : null;
    const output = file ?? "ignore";
    // A group of its own: Ctrl-C reaches this program alone, which then stops all servers in their order.
    const child = spawn(program, words, { cwd, env: { ...process.env, ...env }, uid, gid, detached: true, stdio: [stdin, output, output] });
    if (file !== null) closeSync(file);
    const server = new Server();
    Object.assign(server, { name, child, log, roots, error: null });
    child.on("error", (error) => (server.error = error));
    started.add(server);
    return server;
  }

  get pid() {
    return this.child.pid;
  }

  get isRunning() {
    return !this.error && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Waits until `probe` says that it serves; fails at once if it has ended. */
  async ready(probe, timeMaxMs = START_TIME_MAX_MS) {
    await until(`${this.name} is ready`, () => {
      if (this.isRunning) return probe();
      throw Object.assign(new Error(`${this.name} does not start: ${this.error?.message ?? ""}\n${this.tail()}`), { isFinal: true });
    }, timeMaxMs).catch((error) => {
      throw new Error(`${error.message}\n${this.tail()}`);
    });
    return this;
  }

  /** The end of its log. */
  tail(lines = 20) {
    return this.log ? readFileSync(this.log, "utf8").trim().split("\n").slice(-lines).join("\n") : "";
  }

  /** Stops it as its users do, with its roots; kills it if it takes too long. */
  async stop(signal = "SIGTERM") {
    if (this.isRunning && this.pid) {
      const ended = once(this.child, "exit");
      this.child.kill(signal);
      const timer = setTimeout(() => killGroup(this.pid), STOP_TIME_MAX_MS);
      await ended;
      clearTimeout(timer);
    }
    // What a killed one has left behind. SIGINT ends PostgreSQL without waiting for its clients.
    const left = treeOf(this.roots());
    for (const pid of left) signalled(pid, "SIGINT");
    if (left.length) await until(`all of ${this.name} has ended`, () => !treeOf(left).length, STOP_TIME_MAX_MS);
    started.delete(this);
  }

  /** `kill -9` of the server's own processes, as when it crashes; `roots`, such as a database, continue. */
  async kill() {
    if (!this.isRunning) throw new Error(`${this.name} had ended before it was killed:\n${this.tail()}`);
    const ended = once(this.child, "exit");
    killGroup(this.pid);
    await ended;
  }

  /** All its processes. */
  pids() {
    return treeOf([this.pid, ...this.roots()]);
  }

  /** CPU seconds and bytes of memory of all its processes, or of those below the given ones. */
  usage(pids = this.pids()) {
    return usageOf(pids);
  }
}

const killGroup = (pid) => signalled(-pid, "SIGKILL");

function signalled(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** `pid (name) state ppid …`; the name may hold anything, also parentheses. */
function statOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)\s/s, "").split(" ");
    const [own, waitedFor] = [+fields[11] + +fields[12], +fields[13] + +fields[14]];
    return { pid: +pid, parent: +fields[1], own, waitedFor };
  } catch {
    // Processes end while the folder is read.
    return null;
  }
}

/** These processes and all below them. */
export function treeOf(roots) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(statOf).filter(Boolean);
  const found = new Set(roots.filter((pid) => all.some((stat) => stat.pid === pid)));
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

/** What processes use: CPU also of children that have ended; `pssBytes` counts shared pages once. */
export function usageOf(pids) {
  const sum = { cpuS: 0, rssBytes: 0, pssBytes: 0 };
  for (const pid of pids) {
    const stat = statOf(pid);
    if (!stat) continue;
    sum.cpuS += (stat.own + stat.waitedFor) / TICKS_PER_S;
    sum.rssBytes += kib(`/proc/${pid}/status`, "VmRSS");
    sum.pssBytes += kib(`/proc/${pid}/smaps_rollup`, "Pss");
  }
  return sum;
}

/** A line `Name:   123 kB`, in bytes; 0 of a process that ends just now. */
function kib(file, name) {
  try {
    return +(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(file, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Runs `main`, and ends what it has started whatever comes of it. */
export async function guarded(main) {
  let isInterrupted = false;
  const clean = async () => {
    for (const server of [...started].reverse()) await server.stop().catch((error) => console.error(`${server.name}: ${error.message}`));
    for (const folder of [...folders]) removeFolder(folder);
  };
  for (const [signal, status] of [["SIGINT", 130], ["SIGTERM", 143]]) {
    process.on(signal, () => {
      if (isInterrupted) return;
      isInterrupted = true;
      console.error("interrupted: the servers are stopped");
      clean().finally(() => process.exit(status));
    });
  }
  try {
    await main();
  } catch (error) {
    if (!isInterrupted) console.error(error.stack ?? error);
    process.exitCode = 1;
  } finally {
    if (!isInterrupted) await clean();
  }
  if (!isInterrupted) process.exit();
}
