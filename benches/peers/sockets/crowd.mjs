// The clients of a server, as the run sees them: a process of its own (`clients.mjs`) that is told what to do.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export class Crowd {
  static async of(name, target) {
    const crowd = new Crowd();
    const path = fileURLToPath(new URL("clients.mjs", import.meta.url));
    const child = fork(path, { execArgv: ["--max-semi-space-size=32"] });
    Object.assign(crowd, { child, calls: new Map(), next: 0, events: new Map() });
    child.on("message", ({ id, answer, error, event }) => {
      if (event) return void crowd.events.get(event)?.();
      const { done, failed } = crowd.calls.get(id);
      crowd.calls.delete(id);
      if (error) failed(new Error(`clients of ${name}: ${error}`));
      else done(answer);
    });
    child.on("exit", (code, signal) => {
      for (const { failed } of crowd.calls.values()) failed(new Error(`the clients of ${name} have ended: ${code ?? signal}`));
    });
    await crowd.call("start", { name, target });
    return crowd;
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
