// NATS of Debian (`nats-server`), core only: no JetStream. Each user is a connection with one subscription, with a user's
// name and password; the sender publishes. Over WebSocket the protocol is the same as over TCP.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { Server, command, freePort, listens, removeFolder, temporaryFolder } from "../support/processes.mjs";
import { Socket } from "./websocket.mjs";

export const name = "NATS";

const [USER, PASSWORD] = ["visitors", "a long enough password"];

const configuration = (port, webPort) => `
host: 127.0.0.1
port: ${port}
authorization { user: ${USER}, password: "${PASSWORD}" }
websocket { host: 127.0.0.1, port: ${webPort}, no_tls: true }
`;

export async function start() {
  const folder = await temporaryFolder("nats");
  const [port, webPort] = [await freePort(), await freePort()];
  writeFileSync(join(folder, "nats.conf"), configuration(port, webPort));
  let server;
  const serve = async () => {
    server = Server.start(name, "nats-server", ["-c", join(folder, "nats.conf")], { cwd: folder, log: join(folder, "nats.log") });
    await server.ready(() => listens(webPort));
  };
  await serve();
  return {
    version: `NATS ${/v([\d.]+)/.exec(await command("nats-server", ["--version"]))[1]}`,
    target: { url: `ws://127.0.0.1:${webPort}` },
    pids: () => server.pids(),
    kill: () => server.kill(),
    again: serve,
    remove: async () => {
      await server.stop();
      removeFolder(folder);
    },
  };
}

/** Splits what arrives into its protocol's lines and payloads; a frame may end anywhere. */
function reader(onLine, onPayload) {
  let buffer = "";
  let bytes = -1;
  return (part) => {
    buffer += part;
    for (;;) {
      if (bytes >= 0) {
        if (buffer.length < bytes + 2) return;
        onPayload(buffer.slice(0, bytes));
        buffer = buffer.slice(bytes + 2);
        bytes = -1;
      }
      const end = buffer.indexOf("\r\n");
      if (end < 0) return;
      const line = buffer.slice(0, end);
      buffer = buffer.slice(end + 2);
      if (line.startsWith("MSG ")) bytes = +line.slice(line.lastIndexOf(" ") + 1);
      else onLine(line);
    }
  };
}

export class Client {
  constructor({ url }) {
    this.url = url;
  }

  /** A connection; answers each PING of it in the order they were sent. */
  async session(onText, onClose) {
    const pings = [];
    const fail = (reason) => {
      for (const { failed } of pings.splice(0)) failed(new Error(reason));
      onClose(reason);
    };
    const socket = await Socket.open(this.url, { onClose: fail });
    const onLine = (line) => {
      if (line === "PONG") pings.shift()?.done();
      else if (line === "PING") socket.send("PONG\r\n");
      else if (line.startsWith("-ERR")) fail(line);
    };
    socket.listen(reader(onLine, onText));
    const ping = () => {
      socket.send("PING\r\n");
      return new Promise((done, failed) => pings.push({ done, failed }));
    };
    socket.send(`CONNECT ${JSON.stringify({ verbose: false, pedantic: false, user: USER, pass: PASSWORD, lang: "node", version: "1", protocol: 1 })}\r\n`);
    await ping();
    return { socket, ping };
  }

  async connect(user, { onText, onClose }) {
    const { socket, ping } = await this.session(onText, onClose);
    socket.send(`SUB visitors.${user} 1\r\n`);
    await ping();
    return socket;
  }

  /** Nothing is kept for who was away. */
  reconnect = (user, options) => this.connect(user, options);

  async sender({ isConfirmed, onClose }) {
    const { socket, ping } = await this.session(() => {}, onClose);
    const send = (user, text) => {
      socket.send(`PUB visitors.${user} ${text.length}\r\n${text}\r\n`);
      return isConfirmed ? ping() : Promise.resolve();
    };
    return { send, close: () => socket.close() };
  }
}
