// Servers under measurement: starts them, waits until they are ready, stops or kills them, and reads their CPU time and
// memory from /proc. All are stopped and their folders are removed, also when the run fails or is interrupted.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { chmod, mkdtemp } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** The unit of CPU time in /proc is 1/100 s, independent of the kernel's own clock rate. */
const TICKS_PER_S = 100;

/** How long a server may take to start or to stop. */
export const START_TIME_MAX_MS = 180_000;
const STOP_TIME_MAX_MS = 60_000;

const PROBE_INTERVAL_MS = 50;
const PORT_ATTEMPTS_MAX = 1000;

const started = new Set();
const folders = new Set();

/** Runs a command to its end and returns its output. The error of a failed one has the last lines of its output. */
export async function command(program, args, options = {}) {
  try {
    return (await promisify(execFile)(program, args, { maxBuffer: 64 << 20, ...options })).stdout;
  } catch (error) {
    const output = `${error.stdout ?? ""}${error.stderr ?? ""}`.trim().split("\n").slice(-20).join("\n");
    throw new Error(`${program} ${args.join(" ")}: ${error.code ?? error.signal}\n${output}`);
  }
}

/**
 * Waits until `probe` returns a true value, and returns it. An error of `probe` only means `not yet`, unless it has
 * `isFinal`; the last one is reported when the time is over.
 */
export async function until(what, probe, timeMaxMs = START_TIME_MAX_MS) {
  const end = Date.now() + timeMaxMs;
  for (let lastError; ; await delay(PROBE_INTERVAL_MS)) {
    try {
      const found = await probe();
      if (found) return found;
    } catch (error) {
      if (error.isFinal) throw error;
      lastError = error;
    }
    if (Date.now() > end) throw new Error(`not within ${timeMaxMs / 1000} s: ${what}${lastError ? ` (${lastError.message})` : ""}`);
  }
}

/** True if a connection to this port is accepted; otherwise throws, as a probe of `until` may. */
export async function listens(port, host = "127.0.0.1") {
  const socket = connect(port, host);
  try {
    await once(socket, "connect");
    return true;
  } finally {
    socket.destroy();
  }
}

/** A port that is free now, below those that the system assigns to outgoing connections. */
export async function freePort() {
  for (let attempt = 0; attempt < PORT_ATTEMPTS_MAX; attempt++) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(() => true, () => false);
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
  throw new Error(`no free port after ${PORT_ATTEMPTS_MAX} attempts`);
}

/** A folder under TMPDIR that is removed at the end. Servers that run as another user can reach files in it. */
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
   * `roots` returns the ids of further processes that belong to the server but are not its children, such as its
   * PostgreSQL. `uid` and `gid` are those of the user as whom it runs.
   */
  static start(name, program, args, { cwd, env, log, uid, gid, stdin = "ignore", roots = () => [] } = {}) {
    const file = log ? openSync(log, "a") : null;
    const output = file ?? "ignore";
    // In a process group of its own: Ctrl-C reaches only this program, which then stops the servers, the last first.
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, uid, gid, detached: true, stdio: [stdin, output, output] });
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

  /** Waits until `probe` returns true; fails at once if the process has ended. */
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

  /** Stops the server and its `roots`; kills the server if it takes too long. */
  async stop(signal = "SIGTERM") {
    if (this.isRunning && this.pid) {
      const ended = once(this.child, "exit");
      this.child.kill(signal);
      const timer = setTimeout(() => killGroup(this.pid), STOP_TIME_MAX_MS);
      await ended;
      clearTimeout(timer);
    }
    // A server that was killed leaves its roots. SIGINT ends PostgreSQL without waiting for its clients.
    const remaining = treeOf(this.roots());
    for (const pid of remaining) sendSignal(pid, "SIGINT");
    if (remaining.length) await until(`all of ${this.name} has ended`, () => !treeOf(remaining).length, STOP_TIME_MAX_MS);
    started.delete(this);
  }

  /** `kill -9` of the server's own processes, as when it crashes; `roots`, such as a database, continue. */
  async kill() {
    if (!this.isRunning) throw new Error(`${this.name} had ended before it was killed:\n${this.tail()}`);
    const ended = once(this.child, "exit");
    killGroup(this.pid);
    await ended;
  }

  /** The ids of all its processes. */
  pids() {
    return treeOf([this.pid, ...this.roots()]);
  }

  /** CPU seconds and bytes of memory of all its processes, or of the given ones. */
  usage(pids = this.pids()) {
    return usageOf(pids);
  }
}

const killGroup = (pid) => sendSignal(-pid, "SIGKILL");

/** Sends a signal, unless the process has ended. */
function sendSignal(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Reads `pid (name) state ppid …`; the name may contain any characters, also parentheses. */
function statOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)\s/s, "").split(" ");
    const [ownTicks, childTicks] = [+fields[11] + +fields[12], +fields[13] + +fields[14]];
    return { pid: +pid, parent: +fields[1], ownTicks, childTicks };
  } catch {
    // The process has ended meanwhile.
    return null;
  }
}

/** These processes and all their descendants. */
export function treeOf(roots) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(statOf).filter(Boolean);
  const found = new Set(roots.filter((pid) => all.some((stat) => stat.pid === pid)));
  for (let sizeBefore = -1; sizeBefore !== found.size; ) {
    sizeBefore = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

/** CPU time, also of children that have ended, and memory of processes; `pssBytes` counts shared pages once. */
export function usageOf(pids) {
  const sum = { cpuS: 0, rssBytes: 0, pssBytes: 0 };
  for (const pid of pids) {
    const stat = statOf(pid);
    if (!stat) continue;
    sum.cpuS += (stat.ownTicks + stat.childTicks) / TICKS_PER_S;
    sum.rssBytes += memoryBytes(`/proc/${pid}/status`, "VmRSS");
    sum.pssBytes += memoryBytes(`/proc/${pid}/smaps_rollup`, "Pss");
  }
  return sum;
}

/** The number of a line `Name:   123 kB`, in bytes; 0 if the process has ended meanwhile. */
function memoryBytes(file, name) {
  try {
    return +(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(file, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Runs `main`. Then stops all servers and removes all folders, also after an error or an interruption. */
export async function guarded(main) {
  let isInterrupted = false;
  const cleanUp = async () => {
    for (const server of [...started].reverse()) await server.stop().catch((error) => console.error(`${server.name}: ${error.message}`));
    for (const folder of [...folders]) removeFolder(folder);
  };
  for (const [signal, status] of [["SIGINT", 130], ["SIGTERM", 143]]) {
    process.on(signal, () => {
      if (isInterrupted) return;
      isInterrupted = true;
      console.error("interrupted: stopping the servers");
      cleanUp().finally(() => process.exit(status));
    });
  }
  try {
    await main();
  } catch (error) {
    if (!isInterrupted) console.error(error.stack ?? error);
    process.exitCode = 1;
  } finally {
    if (!isInterrupted) await cleanUp();
  }
  if (!isInterrupted) process.exit();
}
