// The conversation as this tab knows it: its session, its messages, what waits to be sent. Knows no element of the page.

import { backoff } from "./backoff.js";
import { Refused } from "./door.js";
import { History } from "./history.js";
import { Line } from "./line.js";
import { page, subjectOf, utm } from "./origin.js";
import { Outbox, entryOf } from "./outbox.js";
import { locationIn, ownLocation } from "./place.js";
import { Seen } from "./seen.js";

/** What the service takes as the text of a message, in UTF-8. */
const TEXT_BYTES_MAX = 65_536;

/** How often it is asked whether somebody is there, while no socket tells it. */
const AVAILABILITY_EVERY_MS = 60_000;

/** Messages that are kept over a reload, to be shown before the service answers. */
const KEPT_MESSAGES_MAX = 100;

/** How often a file is sent that the line loses while other calls pass: what is said after it waits no longer. */
const FILE_TRIES_MAX = 3;

/** How long a file is on its way until its visitor may want it no more. */
export const FILE_WAITS_MS = 3_000;

/** An agent's typing fades unless it is renewed. */
const TYPING_FADES_MS = 6_000;

/** Whether the service would take this as the text of a message. */
export const isTooLong = (text) => new TextEncoder().encode(text).length > TEXT_BYTES_MAX;

export class Chat {
  constructor(door, memory, config) {
    this.door = door;
    this.memory = memory;
    this.config = config;
    this.listeners = new Set();
    /** Rises whenever a visitor leaves: what was begun for them has no effect on the next. */
    this.epoch = 0;
    this.session = memory.get("session");
    /** Who the visitor is, as the website has signed it; with the page it is gone. */
    this.identity = null;
    this.isOver = false;
    /** Whether the page may not show the webchat any more. */
    this.isWithdrawn = false;
    /** Whether somebody is there to answer, as the service said last. */
    this.isAvailable = Boolean(config.availability && config.availability.now);
    this.availableAt = Date.now();
    this.typist = null;
    this.messages = new History(memory.get("messages") || []);
    /** What a socket has brought of the past, until all of it is there: it is shown at once, as one change. Null when nothing is under way. */
    this.coming = null;
    /** Ids of messages after which a session ended and another began. */
    this.breaks = new Set();
    /** Whether all messages were received since the page was loaded. */
    this.isRefreshed = false;
    /** Whether the door answers calls while no socket passes: then asking makes up for it. */
    this.isReached = false;
    /** Every message of the session up to this id was received. */
    this.heardUpTo = 0;
    this.outbox = new Outbox(memory, (entry) => this.deliver(entry), () => this.changed());
    this.line = new Line(door, this);
    memory.onChange((name) => this.changedElsewhere(name));
    this.seen = new Seen(this.line);
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

  /** What the visitor chose of an interactive message: `{id?, title?}`, or null. */
  answerTo(message) {
    const waiting = this.outbox.list().find((entry) => entry.reply && entry.reply.messageId === message.id);
    if (waiting) return { id: waiting.reply.id, title: waiting.body };
    const { answers, sharedAt } = this.messages;
    if (answers.has(message.id)) return { title: answers.get(message.id) };
    if (message.interactive && message.interactive.type === "location_request_message") {
      const isShared = sharedAt > message.id || this.outbox.list().some((entry) => locationIn(entry.body));
      if (isShared) return { id: "location" };
    }
    return null;
  }

  unread() {
    return this.messages.after(this.memory.get("read") || 0).filter(({ direction }) => direction === "outbound");
  }

  get isTrouble() {
    return !navigator.onLine || (this.line.isLost && !this.isReached);
  }

  /** Whether what is said is heard at once. */
  get isLinked() {
    return navigator.onLine && (!this.session || this.isOver || this.line.isOpen || this.isReached);
  }

  get needsForm() {
    return Boolean(this.config.preChatFields.length) && !this.session && !this.identity && !this.memory.get("visitor");
  }

  /** Whether this webchat does not let this page in; or only whom its website has named, and it has named nobody. */
  get isClosed() {
    return this.isWithdrawn || (Boolean(this.config.identityRequired) && !this.session && !this.identity);
  }

  withdraw() {
    console.warn(`Hotline webchat: ${location.origin} may not show this webchat any more`);
    this.isWithdrawn = true;
    this.changed();
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
    if (file.size > this.fileBytesMax || !file.size) {
      entry.failed = file.size ? "tooLarge" : "empty";
      this.changed();
    }
    // Files that are attached at once have times of their own, a little later.
    setTimeout(() => this.changed(), FILE_WAITS_MS + 100);
  }

  get fileBytesMax() {
    return this.config.attachments.bytesMax;
  }

  /** Whether the browser gave the location. */
  async shareLocation() {
    const { epoch } = this;
    const found = await ownLocation();
    if (found && epoch === this.epoch) this.say(found);
    return Boolean(found);
  }

  /** The newest message is before the visitor's eyes. */
  see() {
    const newest = this.messages.newestOfTheirs;
    if (!newest) return;
    if (newest.id > (this.memory.get("read") || 0)) {
      this.memory.set("read", newest.id);
      this.changed();
    }
    if (this.line.isOpen && this.isRefreshed && newest.id > this.lastBreak) this.seen.note(newest.id);
  }

  /** Asks whether somebody is there, unless the socket tells it, or it was just said. */
  async askAvailability() {
    if (this.line.isOpen || Date.now() - this.availableAt < AVAILABILITY_EVERY_MS) return;
    this.availableAt = Date.now();
    const found = await this.door.config().catch(() => null);
    if (found && !this.line.isOpen) this.available(found.availability && found.availability.now);
  }

  available(is) {
    this.isAvailable = Boolean(is);
    this.availableAt = Date.now();
    this.changed();
  }

  /** Who the visitor says they are. Throws a `Refused` that names the fields. */
  async introduce(visitor) {
    const { epoch } = this;
    await this.begin(visitor);
    if (epoch === this.epoch) this.memory.set("visitor", visitor);
    this.changed();
  }

  async end() {
    const { session } = this;
    await this.door.end(session.token);
    if (this.session && this.session.id === session.id) this.ended();
  }

  /**
   * The website says who the visitor is. The current conversation becomes theirs, or theirs replaces it.
   * Resolves to whether the identity is accepted, as far as that is known without a conversation.
   */
  async identify(identity) {
    const subject = subjectOf(identity);
    // Words may be left in the browser of somebody who never had a conversation.
    const known = (this.session && this.session.subject) || this.memory.get("subject");
    const isAnother = Boolean(known) && known !== subject;
    // Somebody else, on the same computer: nothing of the one before is left to be read.
    if (isAnother) await this.logout();
    this.identity = identity;
    this.outbox.nudge();
    this.changed();
    for (let attempts = 0; this.identity === identity; attempts++) {
      const outcome = await this.memory.alone("session", () => this.present(identity, subject));
      // The visitor may have an open conversation, which the service shows only in a session.
      if (outcome && isAnother && !this.session) await this.begin().catch(() => {});
      if (outcome && this.identity === identity) this.memory.set("subject", subject);
      if (outcome !== null) return outcome;
      await new Promise((wait) => setTimeout(wait, backoff(attempts)));
    }
    return false;
  }

  /** Shows the identity to the door. Null when it is to be tried again. */
  async present(identity, subject) {
    const { session } = this;
    // Of a page that names its visitor each time it is loaded, the door is asked once.
    if (!session || this.isOver || session.subject === subject) return true;
    try {
      const { id, token } = await this.door.identify(session.token, identity);
      if (this.session !== session) return true;
      const known = { id, token: token || session.token, subject };
      if (token) this.adopt(known);
      else this.setSession(known);
      return true;
    } catch (refused) {
      if (refused.isPassing) return null;
      if (refused.isOfIdentity) return this.refuseIdentity(refused);
      // The conversation is nobody's any more: the next one begins with the identity.
      if (isLost(refused) && this.session === session) this.startOver();
      return true;
    }
  }

  refuseIdentity(refused) {
    console.warn(`Hotline webchat: ${refused.message}`);
    this.identity = null;
    this.changed();
    return false;
  }

  /** The visitor leaves this browser: the next user finds nothing of them, in any tab. */
  async logout() {
    const { session } = this;
    this.memory.set("session", null);
    this.forget();
    for (const name of ["subject", "previous", "visitor", "messages", "read", "draft"]) this.memory.set(name, null);
    this.memory.set("forgotten", Date.now());
    // An anonymous conversation cannot be continued from anywhere; a known visitor may have theirs open on another device.
    if (session && !session.subject) await this.door.end(session.token).catch(() => {});
  }

  /** Takes everything from the screen of this tab. */
  forget() {
    this.epoch += 1;
    this.coming = null;
    this.identity = null;
    this.session = null;
    this.isOver = false;
    this.typist = null;
    this.line.close();
    this.outbox.clear();
    this.messages.clear();
    this.breaks.clear();
    clearTimeout(this.keeping);
    if (this.onForget) this.onForget();
    this.changed();
  }

  /** What is said next begins another conversation. */
  startOver() {
    if (this.isOver && this.session) this.memory.set("previous", this.session.token);
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
      const { epoch } = this;
      const { id, token, subject } = await this.openSession(visitor);
      if (epoch !== this.epoch) {
        if (!subject) await this.door.end(token).catch(() => {});
        return;
      }
      this.memory.set("previous", null);
      this.memory.set("session", { id, token, subject });
      this.adopt({ id, token, subject });
    });
  }

  async openSession(visitor) {
    const { identity } = this;
    const body = { ...(visitor && { visitor }), ...(identity && { identity }), page: page(), utm: utm() };
    try {
      const opened = await this.door.openSession(body, this.memory.get("previous"));
      return { ...opened, subject: identity ? subjectOf(identity) : undefined };
    } catch (refused) {
      if (!identity || identity !== this.identity || !refused.isOfIdentity) throw refused;
      // It has expired in an open page, most likely. What was said is said all the same.
      this.refuseIdentity(refused);
      if (this.isClosed) throw new Refused(0);
      return this.openSession(visitor);
    }
  }

  setSession(session) {
    this.session = session;
    this.memory.set("session", session);
  }

  adopt(session) {
    if (this.session && this.session.id === session.id) {
      // Another tab has learned who the visitor is.
      this.session = session;
      return;
    }
    this.leave();
    this.setSession(session);
    this.isRefreshed = false;
    this.heardUpTo = 0;
    this.seen.forget();
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
    this.takeComing();
    const { last } = this.messages;
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

  /**
   * The id up to which every message was received; null after a reload, when all are received again with their statuses. A message
   * that the visitor sends while no socket is open does not count: an older one may have arrived meanwhile.
   */
  newest() {
    return this.heardUpTo || null;
  }

  lineChanged() {
    if (!this.line.isOpen) {
      this.typist = null;
      // What the socket has brought before it broke is there.
      this.takeComing();
    }
    this.changed();
  }

  frame(frame) {
    const heard = {
      hello: () => {
        this.coming = [];
        this.available(frame.available);
        this.isReached = false;
        this.seen.forget();
        this.outbox.nudge();
      },
      message: () => this.come(frame),
      caughtUp: () => {
        this.takeComing();
        this.isRefreshed = true;
      },
      status: () => this.come(frame),
      typing: () => this.typed(frame.typing ? frame.agent || {} : null),
      presence: () => this.available(frame.available),
      ended: () => this.ended(),
    };
    if (!heard[frame.type]) return;
    heard[frame.type]();
    if (!this.coming) this.changed();
  }

  /** A message, or how messages stand. */
  come(frame) {
    if (this.coming) this.coming.push(frame);
    else this.take([frame]);
  }

  /** What has come of the past is there, in one step however much it is. */
  takeComing() {
    const frames = this.coming;
    this.coming = null;
    if (frames && frames.length) this.take(frames);
  }

  take(frames) {
    this.hear(frames.filter(({ type }) => type === "message").map(({ message }) => message));
    // Each says how messages stand up to one that came before it.
    for (const frame of frames) {
      if (frame.type === "status" && frame.direction === "inbound" && frame.status === "read") this.messages.readByThem(frame);
    }
  }

  /** Messages as the door tells them: each that follows the one before. */
  hear(messages) {
    if (messages.length) this.heardUpTo = Math.max(this.heardUpTo, messages[messages.length - 1].id);
    this.merge(messages);
  }

  merge(messages) {
    if (!messages.length) return;
    if (messages.some(({ id, direction }) => direction === "outbound" && !this.messages.get(id))) this.typist = null;
    this.messages.add(messages);
    for (const { clientId } of messages) if (clientId) this.outbox.remove(clientId);
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.keep(), 200);
    this.changed();
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
      const messages = await this.door.messages(session.token, this.newest());
      if (this.session === session) this.hear(messages);
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
    // What the visitor has deleted, or has left behind, is not sent any more.
    const isLeft = () => !this.outbox.has(entry.clientId);
    // Until the website is let in, or says who the visitor is, it would be refused for good.
    if (this.isClosed) throw new Refused(0);
    const { clientId, body, reply, file } = entry;
    if (file && !(await isReadable(file))) throw new Refused(400, { code: "unreadable" });
    try {
      await this.begin();
    } catch (refused) {
      // What the visitor said of themselves is not accepted any more: they are asked again.
      if (refused.status === 422) this.memory.set("visitor", null);
      throw refused;
    }
    if (isLeft()) return;
    const { token } = this.session;
    try {
      const call = file
        ? this.door.sendFile(token, entry)
        : this.door.say(token, reply ? { reply, clientId } : { body, clientId });
      const message = await call;
      if (!isLeft()) this.merge([{ ...message, clientId }]);
    } catch (refused) {
      if (isLeft()) return;
      if (file && refused.status === 0 && this.isLinked) {
        entry.losses = (entry.losses || 0) + 1;
        if (entry.losses % FILE_TRIES_MAX === 0) throw new Refused(400);
      }
      const isGone = isLost(refused) || refused.status === 409;
      if (!isGone || entry.isMoved) throw refused;
      // The conversation ended meanwhile. What was said is said in a new one, a choice by its title. And only once: a
      // session that is refused as soon as it was opened would be opened for ever.
      entry.isMoved = true;
      delete entry.reply;
      if (this.session && this.session.token === token) {
        if (refused.status === 409) this.memory.set("previous", token);
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
    if (name === "forgotten" && this.memory.get("forgotten")) return this.forget();
    if (name === "session" || name === "") {
      const session = this.memory.get("session");
      if (session) this.adopt(session);
      else if (this.session) this.leave();
    }
    this.changed();
  }

  keep() {
    // Of the present conversation only: who uses the browser next need not read the last one, nor one whose session the page has cleared.
    const isKept = Boolean(this.memory.get("session"));
    const messages = isKept ? this.messages.sorted.slice(-KEPT_MESSAGES_MAX).filter(({ id }) => id > this.lastBreak) : [];
    this.memory.set("messages", messages.length ? messages : null);
  }
}

/** Whether a file is still there, as it was when it was attached. */
const isReadable = (file) => file.slice(0, 1).arrayBuffer().then(() => true, () => false);

/** Whether the door no longer knows the token. */
const isLost = (refused) => refused.status === 401 && !refused.isOfIdentity;
