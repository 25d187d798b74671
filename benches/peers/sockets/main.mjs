// Hotline beside other servers that push messages over WebSocket: memory of a connection, latency and CPU of a
// delivery, and what a `kill -9` loses. `make load-sockets ARGS=peers`; with `--help`, the options.

import { writeFigures, writePage } from "../support/report.mjs";
import { medians } from "../support/figures.mjs";
import { command, guarded } from "../support/processes.mjs";
import { isRelease } from "../support/hotline.mjs";
import { install } from "./install.mjs";
import { options } from "./options.mjs";

/** In the order of the tables. */
const PEERS = ["hotline", "ejabberd", "prosody", "nats", "socketio", "ws"];

/** Open files beside those of connections. */
const FILES_SPARE = 200;

await guarded(async () => {
  const chosen = options(process.argv.slice(2), PEERS);
  if (!chosen) return;
  await install();
  const files = +(await command("sh", ["-c", "ulimit -Hn"])).trim() || Infinity;
  chosen.connections = Math.min(chosen.connections, files - FILES_SPARE);
  // Memory of a connection is the slope from this many connections to all.
  chosen.base = Math.min(2000, Math.floor(chosen.connections / 5));
  chosen.users = Math.min(chosen.users, chosen.connections);
  // Imported only now: these need the packages that `install` has just installed.
  const { kill, deliveries, memory } = await import("./measures.mjs");
  const { page } = await import("./page.mjs");

  const figures = chosen.peers.map((file) => ({ file, rounds: [] }));
  for (const figure of figures) figure.peer = await import(`./${figure.file}.mjs`);
  const say = (figure, what, result) => console.log(`${figure.peer.name}, ${what}: ${JSON.stringify(result)}`);
  for (const figure of figures) {
    figure.memory = await memory(figure.peer, figure.file, chosen);
    say(figure, "memory", figure.memory);
  }
  for (let round = 1; round <= chosen.rounds; round += 1) {
    for (const figure of figures) {
      const result = await deliveries(figure.peer, figure.file, chosen);
      figure.rounds.push(result);
      say(figure, `deliveries ${round}/${chosen.rounds}`, result);
    }
  }
  for (const figure of figures) {
    figure.deliveries = figure.rounds[0].map((_, index) => medians(figure.rounds.map((round) => round[index])));
    figure.kill = await kill(figure.peer, figure.file, { ...chosen, users: chosen.killUsers, rate: chosen.killRate });
    say(figure, "kill -9", figure.kill);
  }
  const named = figures.map(({ peer, ...rest }) => ({ name: peer.name, ...rest }));
  await writeFigures("sockets.json", { chosen, figures: named });
  console.log(`written: ${await writePage("sockets.md", await page(chosen, named, isRelease()), chosen.keep)}`);
});
