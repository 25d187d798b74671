// A client of XMPP over WebSocket (RFC 7395), in which each frame is one stanza. Users `u0`, `u1`, … log in with
// SCRAM-SHA-1 and become available; the agents, who send in turn, count as accepted what stream management (XEP-0198) acknowledges;
// who returns reads the archive (XEP-0313).

import { createHash, createHmac, pbkdf2, randomBytes } from "node:crypto";
import { promisify } from "node:util";

import { Socket } from "./websocket.mjs";

export const HOST = "localhost";
export const PASSWORD = "a long enough password";
/** Agents who send: a server handles what one session sends one after the other. */
export const SENDERS = Array.from({ length: 16 }, (_, number) => `agent${number}`);
export const nameOf = (user) => (typeof user === "number" ? `u${user}` : user);

const OPEN = `<open xmlns="urn:ietf:params:xml:ns:xmpp-framing" to="${HOST}" version="1.0"/>`;
const ARCHIVE_PAGE = 250;

/** How often a stream is opened at most. Of thousands of connections at once, ejabberd closes one before its first frame,
 * and a client connects again. */
const ATTEMPTS = 3;

const hmac = (key, text) => createHmac("sha1", key).update(text).digest();
const sha1 = (data) => createHash("sha1").update(data).digest();

const salted = new Map();

/** What the password becomes under a salt; many accounts may have the same one. */
export function saltedPassword(salt, iterations) {
  const name = `${salt} ${iterations}`;
  if (!salted.has(name)) salted.set(name, promisify(pbkdf2)(PASSWORD, Buffer.from(salt, "base64"), iterations, 20, "sha1"));
  return salted.get(name);
}

/** The keys that a server stores for it. */
export async function storedKeys(salt, iterations) {
  const password = await saltedPassword(salt, iterations);
  return { storedKey: sha1(hmac(password, "Client Key")), serverKey: hmac(password, "Server Key") };
}

/** SCRAM-SHA-1 (RFC 5802), without channel binding. */
async function logIn(socket, user) {
  const first = `n=${nameOf(user)},r=${randomBytes(18).toString("base64")}`;
  const auth = `<auth xmlns="urn:ietf:params:xml:ns:xmpp-sasl" mechanism="SCRAM-SHA-1">${base64(`n,,${first}`)}</auth>`;
  const challenge = Buffer.from(/>([^<]+)</.exec(await socket.step(auth, isSasl))?.[1] ?? "", "base64").toString();
  const [, nonce, salt, iterations] = /^r=([^,]+),s=([^,]+),i=(\d+)/.exec(challenge) ?? [];
  if (!nonce) throw new Error(`${nameOf(user)} cannot log in: ${challenge}`);
  const password = await saltedPassword(salt, +iterations);
  const last = `c=biws,r=${nonce}`;
  const clientKey = hmac(password, "Client Key");
  const signature = hmac(sha1(clientKey), `${first},${challenge},${last}`);
  const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index])).toString("base64");
  const response = `<response xmlns="urn:ietf:params:xml:ns:xmpp-sasl">${base64(`${last},p=${proof}`)}</response>`;
  const answer = await socket.step(response, isSasl);
  if (!answer.startsWith("<success")) throw new Error(`${nameOf(user)} cannot log in: ${answer}`);
}

const base64 = (text) => Buffer.from(text).toString("base64");
const isSasl = (text) => /^<(challenge|success|failure)/.test(text);
const isFeatures = (text) => /^<(stream:)?features/.test(text);
const isAnswer = (id) => (text) => text.startsWith("<iq") && new RegExp(`id=['"]${id}['"]`).test(text);

/** The text of a message, also of one in the archive. */
const textOf = (stanza) => /<body[^>]*>([^<]*)</.exec(stanza)?.[1];

export class Client {
  constructor({ url, headers }) {
    Object.assign(this, { url, headers });
  }

  /** A socket with an open stream. */
  async stream(onClose) {
    for (let attempt = 1; ; attempt += 1) {
      let isOpen = false;
      const onEnd = (reason) => isOpen && onClose(reason);
      const socket = await Socket.open(this.url, { protocols: ["xmpp"], onClose: onEnd, headers: this.headers });
      try {
        await socket.step(OPEN, isFeatures);
        isOpen = true;
        return socket;
      } catch (error) {
        if (attempt === ATTEMPTS || socket.last) throw error;
        console.error(`a stream is opened again: ${error.message}`);
      }
    }
  }

  async session(user, onClose) {
    const socket = await this.stream(onClose);
    await logIn(socket, user);
    await socket.step(OPEN, isFeatures);
    const bind = '<bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"><resource>web</resource></bind>';
    const bound = await socket.step(`<iq xmlns="jabber:client" type="set" id="bind">${bind}</iq>`, isAnswer("bind"));
    if (!/type=['"]result['"]/.test(bound)) throw new Error(`${nameOf(user)} is not bound: ${bound}`);
    return socket;
  }

  async connect(user, { onText, onClose }) {
    const socket = await this.session(user, onClose);
    socket.listen((stanza) => {
      const text = stanza.startsWith("<message") && textOf(stanza);
      if (text) onText(text);
    });
    // The server answers with the user's own presence once messages are routed here.
    await socket.step('<presence xmlns="jabber:client"/>', (stanza) => stanza.startsWith("<presence"));
    return socket;
  }

  /** Reads all of the user's archive. */
  async comeBack(user, options) {
    const socket = await this.connect(user, options);
    for (let page = 0, after = ""; ; page += 1) {
      const set = `<set xmlns="http://jabber.org/protocol/rsm"><max>${ARCHIVE_PAGE}</max>${after}</set>`;
      const query = `<query xmlns="urn:xmpp:mam:2" queryid="q${page}">${set}</query>`;
      const found = await socket.step(`<iq xmlns="jabber:client" type="set" id="q${page}">${query}</iq>`, isAnswer(`q${page}`));
      if (!/type=['"]result['"]/.test(found)) throw new Error(`the archive is not read: ${found}`);
      const last = /<last>([^<]+)</.exec(found)?.[1];
      if (/complete=['"](true|1)['"]/.test(found) || !last) return socket;
      after = `<after>${last}</after>`;
    }
  }

  async sender(options) {
    const agents = await Promise.all(SENDERS.map((agent) => this.agent(agent, options)));
    let sent = 0;
    return {
      // Each agent writes to all users in the course of time, whatever the numbers of both are.
      send: (user, body) => agents[(sent + Math.floor(sent++ / agents.length)) % agents.length].send(user, body),
      close: () => Promise.all(agents.map((agent) => agent.close())),
    };
  }

  async agent(name, { isConfirmed, onClose }) {
    const waiting = [];
    const fail = (reason) => {
      for (const { failed } of waiting.splice(0)) failed(new Error(reason));
      onClose(reason);
    };
    const socket = await this.session(name, fail);
    let [sent, handled] = [0, 0];
    socket.listen((stanza) => {
      if (stanza.startsWith("<r ")) socket.send(`<a xmlns="urn:xmpp:sm:3" h="${handled}"/>`);
      else if (/^<(message|iq|presence)/.test(stanza)) handled += 1;
      if (/type=['"]error['"]/.test(stanza)) fail(`refused: ${stanza.slice(0, 300)}`);
      const upTo = +(/^<a [^>]*h=['"](\d+)['"]/.exec(stanza)?.[1] ?? -1);
      while (waiting.length && waiting[0].number <= upTo) waiting.shift().done();
    });
    if (isConfirmed) {
      const enabled = await socket.step('<enable xmlns="urn:xmpp:sm:3"/>', (text) => /^<(enabled|failed)/.test(text));
      if (!enabled.startsWith("<enabled")) throw new Error(`there is no stream management: ${enabled}`);
    }
    const send = (user, body) => {
      sent += 1;
      socket.send(`<message xmlns="jabber:client" to="${nameOf(user)}@${HOST}" type="chat" id="m${sent}"><body>${body}</body></message>`);
      if (!isConfirmed) return Promise.resolve();
      socket.send('<r xmlns="urn:xmpp:sm:3"/>');
      const number = sent;
      return new Promise((done, failed) => waiting.push({ number, done, failed }));
    };
    return { send, close: () => socket.close() };
  }
}
