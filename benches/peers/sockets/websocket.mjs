// A WebSocket of a client. All peers are connected to through this, as browsers would: text frames, no compression.

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
    Object.assign(socket, { waiting: null, onFrame: null, early: [], last: "", ending: null, isClosing: false });
    const raw = (socket.raw = new WebSocket(url, protocols, { perMessageDeflate: false, ...options }));
    // Frames may come in the same read as the handshake.
    raw.on("message", (data) => socket.frame(data.toString()));
    await new Promise((done, failed) => {
      raw.on("open", done);
      raw.on("error", (error) => failed(new Error(`${url.split("?")[0]}: ${error.message}`)));
    });
    socket.closed = new Promise((done) => {
      raw.on("close", (code, reason) => {
        // Servers say why in the last frame, rather than in the close frame.
        const ending = `closed with ${code} ${reason} after ${socket.last}`;
        socket.ending = ending;
        socket.waiting?.failed(new Error(ending));
        if (!socket.isClosing) onClose(ending);
        done();
      });
    });
    return socket;
  }

  frame(text) {
    this.last = text.slice(0, 300);
    if (this.waiting?.matches(text)) this.waiting.done(text);
    else if (this.onFrame) this.onFrame(text);
    else this.early.push(text);
  }

  /** From now on `onFrame` gets every frame that no step waits for, first those that came before. */
  listen(onFrame) {
    this.onFrame = onFrame;
    for (const text of this.early.splice(0)) onFrame(text);
  }

  send(text) {
    this.raw.send(text);
  }

  /** Sends, and waits for a frame that matches. */
  async step(text, matches) {
    if (this.ending) throw new Error(this.ending);
    if (text) this.send(text);
    const known = this.early.findIndex(matches);
    if (known >= 0) return this.early.splice(known, 1)[0];
    let timer;
    try {
      return await new Promise((done, failed) => {
        timer = setTimeout(() => failed(new Error(`no answer to ${text?.slice(0, 80)}`)), STEP_TIME_MAX_MS);
        this.waiting = { matches, done, failed };
      });
    } finally {
      clearTimeout(timer);
      this.waiting = null;
    }
  }

  async close() {
    this.isClosing = true;
    this.raw.close();
    await this.closed;
  }
}
