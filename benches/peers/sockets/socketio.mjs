// socket.io with its default adapter, in memory, and one process of Node, over WebSocket alone. Each user is in a room of
// their own; the sender is a connection too, and counts as accepted what the callback of its event acknowledges.

import { Socket } from "./websocket.mjs";
import { SENDER, start as startNode, tokenOf } from "./node_server.mjs";

export const name = "socket.io";

export const start = () => startNode(name, "socket.io", "socketio_server.mjs");

export class Client {
  constructor({ url, secret }) {
    Object.assign(this, { url, secret });
  }

  /** Its protocol (Engine.IO 4): `0` open, `2` ping, `3` pong, `40` connected, `42` an event, `43` its acknowledgement. */
  async session(user, onEvent, onClose) {
    const socket = await Socket.open(`${this.url}/socket.io/?EIO=4&transport=websocket`, { onClose });
    await socket.step(null, (text) => text.startsWith("0"));
    socket.listen((text) => (text === "2" ? socket.send("3") : onEvent(text)));
    const auth = JSON.stringify({ user: String(user), token: tokenOf(this.secret, user) });
    const answer = await socket.step(`40${auth}`, (text) => /^4[04]/.test(text));
    if (!answer.startsWith("40")) throw new Error(`socket.io refuses the connection: ${answer}`);
    return socket;
  }

  connect(user, { onText, onClose }) {
    const onEvent = (text) => {
      if (text.startsWith('42["message"')) onText(JSON.parse(text.slice(2))[1]);
    };
    return this.session(user, onEvent, onClose);
  }

  /** Nothing is kept for who was away. */
  reconnect = (user, options) => this.connect(user, options);

  async sender({ isConfirmed, onClose }) {
    const waiting = new Map();
    const fail = (reason) => {
      for (const { failed } of waiting.values()) failed(new Error(reason));
      waiting.clear();
      onClose(reason);
    };
    const onEvent = (text) => {
      const id = +(/^43(\d+)/.exec(text)?.[1] ?? NaN);
      waiting.get(id)?.done();
      waiting.delete(id);
    };
    const socket = await this.session(SENDER, onEvent, fail);
    let sent = 0;
    const send = (user, text) => {
      const id = sent++;
      socket.send(`42${isConfirmed ? id : ""}${JSON.stringify(["send", String(user), text])}`);
      return isConfirmed ? new Promise((done, failed) => waiting.set(id, { done, failed })) : Promise.resolve();
    };
    return { send, close: () => socket.close() };
  }
}
