// The conversation as this tab knows it: its session, its messages, what waits to be sent. Knows no element of the page.

import { Line } from "./line.js";
import { Outbox, entryOf } from "./outbox.js";

/** What a message may have; the service takes 65,536 bytes, and a character has up to four. */
export const TEXT_CHARACTERS_MAX = 16_000;

/** Messages that are kept over a reload, to be shown before the service answers. */
const KEPT_MESSAGES_MAX = 100;

/** An agent's typing fades unless it is renewed. */
const TYPING_FADES_MS = 6_000;

const LOCATION_TIME_MAX_MS = 15_000;

/**
 * A location is said as an address of OpenStreetMap: a text that any desk can open, without an account and without
 * asking a third party for anything from the visitor's page. Five decimals are about one metre.
 */
const MAP = "https://www.openstreetmap.org/";
const LOCATION = /^https:\/\/www\.openstreetmap\.org\/\?mlat=(-?[\d.]+)&mlon=(-?[\d.]+)/;

const locationText = (latitude, longitude) => {
  const [lat, lon] = [latitude.toFixed(5), longitude.toFixed(5)];
  return `${MAP}?mlat=${lat}&mlon=${lon}#map=17/${lat}/${lon}`;
};

/** `{lat, lon}` when the text is a location that was shared, else null. */
export function locationIn(text) {
  const found = LOCATION.exec(text || "");
  return found && { lat: Number(found[1]), lon: Number(found[2]) };
}

export class Chat {
  constructor(door, memory, config) {
    this.door = door;
    this.memory = memory;
    this.config = config;
    this.listeners = new Set();
    this.session = memory.get("session");
    this.isOver = false;
    this.isAvailable = true;
    this.typist = null;
    this.messages = new Map((memory.get("messages") || []).map((message) => [message.id, message]));
    /** Ids of messages after which a session ended and another began. */
    this.breaks = new Set();
    /** Whether the door has told, since the page was loaded, all that was said. */
    this.isRefreshed = false;
    /** Whether the door answers calls while no socket passes: then asking makes up for it. */
    this.isReached = false;
    this.outbox = new Outbox(memory, (entry) => this.deliver(entry), () => this.changed());
    this.line = new Line(door, this);
    memory.onChange((name) => this.changedElsewhere(name));
    addEventListener("pagehide", () => this.keep());
    if (this.session) this.line.open(this.session.token);
    this.outbox.nudge();
  }

  // What is shown.

  /** Calls back, soon and once, after anything has changed. */
  onChange(listener) {
    this.listeners.add(listener);
  }

  changed() {
    if (this.isNoticed) return;
    this.isNoticed = true;
    queueMicrotask(() => {
      this.isNoticed = false;
      for (const listener of this.listeners) listener();
    });
  }

  /** Messages by id. */
  list() {
    return [...this.messages.values()].sort((one, other) => one.id - other.id);
  }

  /** What the visitor chose of an interactive message: `{id?, title?}`, or null. */
  answerTo(message) {
    const waiting = this.outbox.list().find((entry) => entry.reply && entry.reply.messageId === message.id);
    if (waiting) return { id: waiting.reply.id, title: waiting.body };
    const isLocation = message.interactive && message.interactive.type === "location_request_message";
    if (isLocation && this.outbox.list().some((entry) => locationIn(entry.body))) return { id: "location" };
    for (const other of this.messages.values()) {
      if (other.direction !== "inbound") continue;
      if (other.quotedMessageId === message.id) return { title: other.body };
      if (isLocation && other.id > message.id && locationIn(other.body)) return { id: "location" };
    }
    return null;
  }

  unread() {
    const read = this.memory.get("read") || 0;
    return this.list().filter(({ id, direction }) => direction === "outbound" && id > read);
  }

  get isTrouble() {
    return !navigator.onLine || (this.line.isLost && !this.isReached);
  }

  /** Whether what is said is heard at once. */
  get isLinked() {
    return navigator.onLine && (!this.session || this.isOver || this.line.isOpen || this.isReached);
  }

  get needsForm() {
    return Boolean(this.config.preChatFields.length) && !this.session && !this.memory.get("visitor");
  }

  // What the visitor does.

  say(body) {
    this.line.typing(false);
    this.outbox.add({ body });
  }

  reply(message, { id, title }) {
    if (this.isOver || this.answerTo(message)) return;
    this.outbox.add({ body: title, reply: { messageId: message.id, id } });
  }

  attach(file, body) {
    const entry = this.outbox.add({ file, body });
    if (file.size > this.fileBytesMax) {
      entry.failed = "tooLarge";
      this.changed();
    }
  }

  get fileBytesMax() {
    return this.config.attachments.bytesMax;
  }

  /** Whether the browser gave the location. */
  async shareLocation() {
    if (!navigator.geolocation || !isSecureContext) return false;
    const options = { enableHighAccuracy: true, timeout: LOCATION_TIME_MAX_MS, maximumAge: 60_000 };
    const found = await new Promise((resolve) => {
      navigator.geolocation.getCurrentPosition((place) => resolve(place.coords), () => resolve(null), options);
    });
    if (found) this.say(locationText(found.latitude, found.longitude));
    return Boolean(found);
  }

  /** The newest message is before the visitor's eyes. */
  see() {
    const newest = this.list().filter(({ direction }) => direction === "outbound").pop();
    if (!newest) return;
    if (newest.id > (this.memory.get("read") || 0)) {
      this.memory.set("read", newest.id);
      this.changed();
    }
    if (this.line.isOpen && this.isRefreshed && newest.id > this.lastBreak && newest.id > (this.seen || 0)) {
      this.seen = newest.id;
      this.line.send({ type: "seen", upTo: newest.id });
    }
  }

  /** Who the visitor says they are. Throws a `Refused` that names the fields. */
  async introduce(visitor) {
    await this.begin(visitor);
    this.memory.set("visitor", visitor);
    this.changed();
  }

  async end() {
    await this.door.end(this.session.token);
    this.ended();
  }

  /** What is said next begins another conversation. */
  startOver() {
    this.memory.set("session", null);
    this.leave();
    this.outbox.nudge();
  }

  // The session.

  /** The session, opened when there is none; by one tab, for all of them. */
  async begin(visitor = this.memory.get("visitor")) {
    await this.memory.alone("session", async () => {
      const known = this.memory.get("session") || this.session;
      if (known) return this.adopt(known);
      const { id, token } = await this.door.openSession({ ...(visitor && { visitor }), page: page(), utm: utm() });
      this.memory.set("session", { id, token });
      this.adopt({ id, token });
    });
  }

  adopt(session) {
    if (this.session && this.session.id === session.id) return;
    this.leave();
    this.session = session;
    this.isRefreshed = false;
    this.seen = 0;
    this.line.open(session.token);
    this.changed();
  }

  ended() {
    this.isOver = true;
    this.typist = null;
    this.line.close();
    this.changed();
  }

  /** Without a session, with what was said in it still on the screen. */
  leave() {
    const last = this.list().pop();
    if (last && this.session) this.breaks.add(last.id);
    this.session = null;
    this.isOver = false;
    this.typist = null;
    this.line.close();
    this.keep();
    this.changed();
  }

  get lastBreak() {
    return Math.max(0, ...this.breaks);
  }

  // What comes from the door.

  /** The highest id this tab holds of its session. Null after a reload: then everything comes again, with its state. */
  newest() {
    const last = this.list().pop();
    return this.isRefreshed && last && last.id > this.lastBreak ? last.id : null;
  }

  lineChanged() {
    if (!this.line.isOpen) this.typist = null;
    this.changed();
  }

  frame(frame) {
    const heard = {
      hello: () => {
        this.isAvailable = frame.available !== false;
        this.isReached = false;
        this.seen = 0;
        this.outbox.nudge();
      },
      message: () => this.merge([frame.message]),
      caughtUp: () => {
        this.isRefreshed = true;
      },
      status: () => frame.direction === "inbound" && frame.status === "read" && this.readByThem(frame),
      typing: () => this.typed(frame.typing ? frame.agent || {} : null),
      presence: () => {
        this.isAvailable = frame.available !== false;
      },
      ended: () => this.ended(),
    };
    if (!heard[frame.type]) return;
    heard[frame.type]();
    this.changed();
  }

  merge(messages) {
    for (const message of messages) {
      const known = this.messages.get(message.id);
      this.messages.set(message.id, { ...message, readAt: message.readAt || (known && known.readAt) || null });
      if (message.clientId) this.outbox.remove(message.clientId);
      if (message.direction === "outbound" && !known) this.typist = null;
    }
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.keep(), 200);
    this.changed();
  }

  readByThem({ upTo, at }) {
    for (const message of this.messages.values()) {
      if (message.direction === "inbound" && message.id <= upTo) message.readAt ||= at;
    }
  }

  typed(agent) {
    clearTimeout(this.typingFades);
    this.typist = agent;
    if (!agent) return;
    this.typingFades = setTimeout(() => {
      this.typist = null;
      this.changed();
    }, TYPING_FADES_MS);
  }

  /** The socket was refused: the session may be over, or nobody's; or sockets do not pass, and calls do. */
  async refused() {
    const session = this.session;
    if (!session) return;
    try {
      const { status } = await this.door.session(session.token);
      this.merge(await this.door.messages(session.token, this.newest()));
      if (status === "ended" && this.session === session) this.ended();
      this.isRefreshed = true;
      this.isReached = true;
    } catch (refused) {
      this.isReached = false;
      if (isLost(refused) && this.session === session) this.startOver();
    }
    this.changed();
  }

  async deliver(entry) {
    try {
      await this.begin();
    } catch (refused) {
      // What the visitor said of themselves is not accepted any more: they are asked again.
      if (refused.status === 422) this.memory.set("visitor", null);
      throw refused;
    }
    const { token } = this.session;
    const { clientId, body, reply, file } = entry;
    try {
      const call = file
        ? this.door.sendFile(token, { clientId, body, file })
        : this.door.say(token, reply ? { reply, clientId } : { body, clientId });
      this.merge([{ ...(await call), clientId }]);
    } catch (refused) {
      const isGone = isLost(refused) || refused.status === 409;
      if (!isGone || entry.isMoved) throw refused;
      // The conversation ended meanwhile. What was said is said in a new one, a choice by its title. And only once: a
      // session that is refused as soon as it was opened would be opened for ever.
      entry.isMoved = true;
      delete entry.reply;
      if (this.session && this.session.token === token) {
        this.memory.set("session", null);
        this.leave();
      }
      await this.deliver(entry);
    }
  }

  // Other tabs, and the next page.

  changedElsewhere(name) {
    const clientId = entryOf(name);
    if (clientId) this.outbox.reread(clientId);
    if (name === "session" || name === "") {
      const session = this.memory.get("session");
      if (session) this.adopt(session);
      else if (this.session) this.leave();
    }
    this.changed();
  }

  keep() {
    // Of the present conversation only: who uses the browser next need not read the last one.
    const messages = this.list().filter(({ id }) => id > this.lastBreak);
    this.memory.set("messages", messages.length ? messages.slice(-KEPT_MESSAGES_MAX) : null);
  }
}

/** Whether the door no longer knows the token. */
const isLost = (refused) => refused.status === 401;

/** Where the visitor is, as far as the door takes it. */
function page() {
  const cut = (text) => text.slice(0, 2000) || undefined;
  return { url: cut(location.href), title: cut(document.title.trim()), referrer: cut(document.referrer) };
}

function utm() {
  const given = new URLSearchParams(location.search);
  const part = (name) => (given.get(`utm_${name}`) || "").trim().slice(0, 200) || undefined;
  return { source: part("source"), medium: part("medium"), campaign: part("campaign"), id: part("id") };
}
