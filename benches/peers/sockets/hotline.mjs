// Hotline. Each user is a visitor of a webchat with a session of its own; the sender is the company, which answers the
// visitor's ticket through the API. A visitor who returns names the last message it has in `after`.

import http from "node:http";

import { Hotline, ORIGIN } from "../support/hotline.mjs";
import { treeOf } from "../support/processes.mjs";
import { Socket } from "./websocket.mjs";

export const name = "Hotline";

export async function start() {
  const hotline = await Hotline.start();
  const { door, key } = await hotline.company();
  return {
    version: `${await hotline.version()}`.replace(/ \(.*/, ""),
    postgres: await hotline.postgresVersion(),
    target: { url: hotline.url, door, key },
    pids: () => hotline.server.pids(),
    /** Without PostgreSQL. */
    ownPids: () => {
      const database = treeOf(hotline.postgres());
      return hotline.server.pids().filter((pid) => !database.includes(pid));
    },
    kill: () => hotline.kill(),
    again: () => hotline.again(),
    remove: () => hotline.remove(),
  };
}

export class Client {
  constructor({ url, door, key }) {
    Object.assign(this, { url, door, key, visitors: new Map() });
    // As many connections as a busy help desk keeps.
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  }

  ask(url, headers, body) {
    return new Promise((done, failed) => {
      const content = body && JSON.stringify(body);
      const more = content && { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(content) };
      const options = { agent: this.agent, method: content ? "POST" : "GET", headers: { ...headers, ...more } };
      const request = http.request(url, options, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (part) => (text += part));
        answer.on("error", failed);
        answer.on("end", () => {
          if (answer.statusCode < 300) done(text);
          else failed(new Error(`${url}: ${answer.statusCode} ${text.slice(0, 300)}`));
        });
      });
      request.on("error", failed);
      request.end(content);
    });
  }

  data = async (...request) => JSON.parse(await this.ask(...request)).data;

  /** A visitor's session; with `talks`, also the ticket that their first message opens. */
  async visitor(user, talks) {
    const known = this.visitors.get(user);
    if (known) return known;
    const { token } = await this.data(`${this.door}/sessions`, { Origin: ORIGIN }, { visitor: { name: `Visitor ${user}` } });
    const visitor = { token, lastId: null };
    if (talks) {
      const headers = { Origin: ORIGIN, Authorization: `Bearer ${token}` };
      const { id } = await this.data(`${this.door}/messages`, headers, { body: "Is anybody there?" });
      visitor.lastId = id;
      visitor.ticketId = (await this.data(`${this.url}/api/v1/messages/${id}`, this.company())).ticketId;
    }
    this.visitors.set(user, visitor);
    return visitor;
  }

  company = () => ({ Authorization: `Bearer ${this.key}` });

  /** Answers when all messages that the visitor has missed were pushed. */
  async connect(user, { talks, onText, onClose }) {
    const visitor = await this.visitor(user, talks);
    const protocols = ["hotline.v1", visitor.token];
    const socket = await Socket.open(`${this.door.replace("http", "ws")}/socket`, { protocols, onClose, origin: ORIGIN });
    const read = (text) => {
      const frame = JSON.parse(text);
      if (frame.type === "ping") socket.send('{"type":"pong"}');
      if (frame.type !== "message") return;
      visitor.lastId = frame.message.id;
      if (frame.message.direction === "outbound") onText(frame.message.body);
    };
    socket.listen(read);
    const isCaughtUp = (text) => text.startsWith('{"type":"caughtUp"');
    await socket.step(JSON.stringify({ type: "after", id: visitor.lastId }), isCaughtUp);
    return socket;
  }

  reconnect = (user, options) => this.connect(user, options);

  async sender() {
    const headers = this.company();
    const url = `${this.url}/api/v1/messages`;
    return {
      send: (user, body) => this.ask(url, headers, { ticketId: this.visitors.get(user).ticketId, type: "text", body }),
      close: () => this.agent.destroy(),
    };
  }
}
