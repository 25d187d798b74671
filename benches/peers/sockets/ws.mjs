// The library `ws` alone, one process of Node. The sender is a connection too; nothing tells it that a message is accepted,
// so that what was handed to its socket counts.

import { Socket } from "./websocket.mjs";
import { SENDER, start as startNode, tokenOf } from "./node_server.mjs";

export const name = "ws";

export const start = () => startNode(name, "ws", "ws_server.mjs");

export class Client {
  constructor({ url, secret }) {
    Object.assign(this, { url, secret });
  }

  async session(user, onText, onClose) {
    const socket = await Socket.open(`${this.url}/?user=${user}&token=${tokenOf(this.secret, user)}`, { onClose });
    await socket.step(null, (text) => text === "hello");
    socket.listen(onText);
    return socket;
  }

  connect = (user, { onText, onClose }) => this.session(user, onText, onClose);

  /** Nothing is kept for who was away. */
  reconnect = (user, options) => this.connect(user, options);

  async sender({ onClose }) {
    const socket = await this.session(SENDER, () => {}, onClose);
    const send = (user, text) =>
      new Promise((done, failed) => socket.raw.send(`${user} ${text}`, (error) => (error ? failed(error) : done())));
    return { send, close: () => socket.close() };
  }
}
