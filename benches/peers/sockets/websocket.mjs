// A client's WebSocket, the same for all peers: text frames, without compression.

import { createRequire } from "node:module";
import { join } from "node:path";

import { target } from "../support/report.mjs";

const { WebSocket } = createRequire(join(target, "peers/npm/package.json"))("ws");

/** How long one step of a conversation with a server may take. */
const STEP_TIME_MAX_MS = 60_000;

export class Socket {
  /** Connects; `onClose` is called with the reason unless this side closes first. */
  static async open(url, { protocols = [], onClose = () => {}, ...options } = {}) {
    const socket = new Socket();
    Object.assign(socket, { pendingStep: null, onFrame: null, unread: [], last: "", closeReason: null, isClosing: false });
    const raw = (socket.raw = new WebSocket(url, protocols, { perMessageDeflate: false, ...options }));
    // Frames may come in the same read as the handshake.
    raw.on("message", (data) => socket.receive(data.toString()));
    await new Promise((done, failed) => {
      raw.on("open", done);
      raw.on("error", (error) => failed(new Error(`${url.split("?")[0]}: ${error.message}`)));
    });
    socket.closed = new Promise((done) => {
      raw.on("close", (code, reason) => {
        // Servers say why in the last frame, rather than in the close frame.
        const closeReason = `closed with ${code} ${reason} after ${socket.last}`;
        socket.closeReason = closeReason;
        socket.pendingStep?.failed(new Error(closeReason));
        if (!socket.isClosing) onClose(closeReason);
        done();
      });
    });
    return socket;
  }

  receive(text) {
    this.last = text.slice(0, 300);
    if (this.pendingStep?.matches(text)) this.pendingStep.done(text);
    else if (this.onFrame) this.onFrame(text);
    else this.unread.push(text);
  }

  /** From now on `onFrame` gets every frame that no step waits for, beginning with the unread ones. */
  listen(onFrame) {
    this.onFrame = onFrame;
    for (const text of this.unread.splice(0)) onFrame(text);
  }

  send(text) {
    this.raw.send(text);
  }

  /** Sends the text, if there is one, and waits for a frame that matches; an unread one counts. */
  async step(text, matches) {
    if (this.closeReason) throw new Error(this.closeReason);
    if (text) this.send(text);
    const index = this.unread.findIndex(matches);
    if (index >= 0) return this.unread.splice(index, 1)[0];
    let timer;
    try {
      return await new Promise((done, failed) => {
        timer = setTimeout(() => failed(new Error(`no answer to ${text?.slice(0, 80)}`)), STEP_TIME_MAX_MS);
        this.pendingStep = { matches, done, failed };
      });
    } finally {
      clearTimeout(timer);
      this.pendingStep = null;
    }
  }

  async close() {
    this.isClosing = true;
    this.raw.close();
    await this.closed;
  }
}
