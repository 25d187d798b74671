// The clients of a server, as the run sees them: a process of its own (`client_process.mjs`), which gets its
// calls from the run.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export class Clients {
  static async of(name, target) {
    const clients = new Clients();
    const path = fileURLToPath(new URL("client_process.mjs", import.meta.url));
    const child = fork(path, { execArgv: ["--max-semi-space-size=32"] });
    Object.assign(clients, { child, calls: new Map(), next: 0, events: new Map() });
    child.on("message", ({ id, answer, error, event }) => {
      if (event) return void clients.events.get(event)?.();
      const { done, failed } = clients.calls.get(id);
      clients.calls.delete(id);
      if (error) failed(new Error(`clients of ${name}: ${error}`));
      else done(answer);
    });
    child.on("exit", (code, signal) => {
      for (const { failed } of clients.calls.values()) failed(new Error(`the clients of ${name} have ended: ${code ?? signal}`));
    });
    await clients.call("start", { name, target });
    return clients;
  }

  call(call, argument) {
    const id = this.next++;
    return new Promise((done, failed) => {
      this.calls.set(id, { done, failed });
      this.child.send({ id, call, argument });
    });
  }

  /** What to do when the clients tell this. */
  on(event, work) {
    this.events.set(event, work);
  }

  async end() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }
}
