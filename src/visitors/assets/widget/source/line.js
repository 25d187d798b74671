// The socket to the door: kept open, opened again after a break, and asked for all that was missed in it.

import { backoff } from "./backoff.js";

/** Heard nothing for this long: the other side is gone, whatever the browser thinks. As docs/webchat.md asks. */
const SILENCE_MAX_MS = 60_000;

/** How often the visitor's typing is renewed; it fades after 6 seconds. */
const TYPING_EVERY_MS = 3_000;

/** Typing stops this long after the last key. */
const TYPING_STOPS_MS = 4_000;

/** What a break must last before it is shown: most are over sooner. */
const BREAK_SHOWN_MS = 2_500;

/** Longest until a door that answers calls is asked again, where no socket passes. */
const ASK_EVERY_MS = 5_000;

const TOO_MANY_FRAMES = 4429;
const TOO_MANY_FRAMES_PAUSE_MS = 10_000;
const SESSION_ENDED = 4410;

/** The page is no longer admitted; or this script says what the service does not take. To come back changes neither. */
const NOT_ADMITTED = 4403;
const FINAL = [NOT_ADMITTED, 1003, 1009];

export class Line {
  /** `chat` hears `frame(frame)`, `lineChanged()` and `refused()`, and is asked for what it holds. */
  constructor(door, chat) {
    this.door = door;
    this.chat = chat;
    this.token = null;
    this.socket = null;
    this.isOpen = false;
    this.isLost = false;
    /** Whether it stays closed, with this session. */
    this.isFinal = false;
    this.attempts = 0;
    this.retry = 0;
    for (const event of ["online", "pageshow", "focus"]) addEventListener(event, () => this.nudge());
    document.addEventListener("visibilitychange", () => document.hidden || this.nudge());
    for (const event of ["online", "offline"]) addEventListener(event, () => this.chat.lineChanged());
    setInterval(() => this.listen(), SILENCE_MAX_MS / 4);
  }

  /** Opens the line of a session, and keeps it open. */
  open(token) {
    if (token === this.token) return this.nudge();
    this.close();
    this.token = token;
    this.connect();
  }

  close() {
    this.token = null;
    this.isFinal = false;
    this.drop();
    this.rest();
  }

  /** Tries at once what would have been tried later. */
  nudge() {
    if (!this.token || this.socket || this.isFinal) return;
    this.attempts = 0;
    this.connect();
  }

  send(frame) {
    if (this.isOpen) this.socket.send(JSON.stringify(frame));
  }

  /** The visitor has pressed a key, or has cleared what they wrote. */
  typing(isTyping) {
    clearTimeout(this.typingStops);
    const now = Date.now();
    if (!isTyping) {
      if (this.typingSince) this.send({ type: "typing", typing: false });
      this.typingSince = 0;
      return;
    }
    if (now - (this.typingSince || 0) >= TYPING_EVERY_MS) {
      this.typingSince = now;
      this.send({ type: "typing", typing: true });
    }
    this.typingStops = setTimeout(() => this.typing(false), TYPING_STOPS_MS);
  }

  connect() {
    clearTimeout(this.retry);
    this.drop();
    const socket = this.door.socket(this.token);
    this.socket = socket;
    this.heard = Date.now();
    socket.onopen = () => socket.send(JSON.stringify({ type: "after", id: this.chat.newest() }));
    socket.onmessage = ({ data }) => {
      this.heard = Date.now();
      let frame = null;
      try {
        frame = JSON.parse(data);
      } catch {
        return;
      }
      if (frame.type === "ping") return this.send({ type: "pong" });
      if (frame.type === "hello") this.opened();
      this.chat.frame(frame);
    };
    socket.onclose = ({ code }) => this.broke(code);
  }

  opened() {
    this.isOpen = true;
    this.rest();
    this.chat.lineChanged();
  }

  /** No break is under way. */
  rest() {
    clearTimeout(this.retry);
    clearTimeout(this.lostTimer);
    this.lostTimer = 0;
    this.attempts = 0;
    this.isLost = false;
  }

  async broke(code) {
    const token = this.token;
    const wasOpen = this.isOpen;
    this.drop();
    this.isFinal = FINAL.includes(code);
    if (this.isFinal) {
      this.rest();
      if (code === NOT_ADMITTED) this.chat.withdraw();
      return this.chat.lineChanged();
    }
    this.lostTimer ||= setTimeout(() => {
      this.isLost = Boolean(this.token) && !this.isOpen;
      this.chat.lineChanged();
    }, BREAK_SHOWN_MS);
    this.chat.lineChanged();
    if (code === SESSION_ENDED) return;
    // A handshake that is refused looks like a network that is down: the door is asked which it is. Where sockets do
    // not pass at all, asking again and again is how messages arrive.
    if (!wasOpen) await this.chat.refused();
    if (this.token !== token || this.socket) return;
    // Whatever the code: "again, with jitter" is what 1012 asks of everybody whose service has moved.
    const pause = this.chat.isReached ? backoff(this.attempts++, ASK_EVERY_MS) : backoff(this.attempts++);
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), code === TOO_MANY_FRAMES ? TOO_MANY_FRAMES_PAUSE_MS : pause);
  }

  /** Lets the socket go, without hearing of it any more. */
  drop() {
    const socket = this.socket;
    this.socket = null;
    this.isOpen = false;
    this.typingSince = 0;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  listen() {
    if (this.socket && Date.now() - this.heard > SILENCE_MAX_MS) this.broke(0);
  }
}
