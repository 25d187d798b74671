// A client of XMPP over WebSocket (RFC 7395), in which each frame is one stanza. Users `u0`, `u1`, … log in with
// SCRAM-SHA-1 and become available; a user who returns reads the archive (XEP-0313). Agents send in turn: a message is
// accepted once stream management (XEP-0198) acknowledges it.

import { createHash, createHmac, pbkdf2, randomBytes } from "node:crypto";
import { promisify } from "node:util";

import { Socket } from "./websocket.mjs";

export const HOST = "localhost";
export const PASSWORD = "a long enough password";
/** Agents who send. There are several, because a server handles the messages of one session one after the other. */
export const SENDERS = Array.from({ length: 16 }, (_, number) => `agent${number}`);
export const nameOf = (user) => (typeof user === "number" ? `u${user}` : user);

const OPEN = `<open xmlns="urn:ietf:params:xml:ns:xmpp-framing" to="${HOST}" version="1.0"/>`;
const ARCHIVE_PAGE = 250;

/** Maximum attempts to open a stream. When thousands connect at once, ejabberd closes a few connections before their
 * first frame. */
const ATTEMPTS = 3;

const hmac = (key, text) => createHmac("sha1", key).update(text).digest();
const sha1 = (data) => createHash("sha1").update(data).digest();

const saltedPasswords = new Map();

/** The salted password. It is cached, because it takes long and many accounts may have the same salt. */
export function saltedPassword(salt, iterations) {
  const key = `${salt} ${iterations}`;
  if (!saltedPasswords.has(key)) {
    saltedPasswords.set(key, promisify(pbkdf2)(PASSWORD, Buffer.from(salt, "base64"), iterations, 20, "sha1"));
  }
  return saltedPasswords.get(key);
}

/** The keys that a server stores for the password. */
export async function storedKeys(salt, iterations) {
  const password = await saltedPassword(salt, iterations);
  return { storedKey: sha1(hmac(password, "Client Key")), serverKey: hmac(password, "Server Key") };
}

/** SCRAM-SHA-1 (RFC 5802), without channel binding. */
async function logIn(socket, user) {
  const clientFirst = `n=${nameOf(user)},r=${randomBytes(18).toString("base64")}`;
  const initial = base64(`n,,${clientFirst}`);
  const auth = `<auth xmlns="urn:ietf:params:xml:ns:xmpp-sasl" mechanism="SCRAM-SHA-1">${initial}</auth>`;
  const challenge = Buffer.from(/>([^<]+)</.exec(await socket.step(auth, isSasl))?.[1] ?? "", "base64").toString();
  const [, nonce, salt, iterations] = /^r=([^,]+),s=([^,]+),i=(\d+)/.exec(challenge) ?? [];
  if (!nonce) throw new Error(`${nameOf(user)} cannot log in: ${challenge}`);
  const password = await saltedPassword(salt, +iterations);
  const clientFinal = `c=biws,r=${nonce}`;
  const clientKey = hmac(password, "Client Key");
  const signature = hmac(sha1(clientKey), `${clientFirst},${challenge},${clientFinal}`);
  const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index])).toString("base64");
  const final = base64(`${clientFinal},p=${proof}`);
  const response = `<response xmlns="urn:ietf:params:xml:ns:xmpp-sasl">${final}</response>`;
  const answer = await socket.step(response, isSasl);
  if (!answer.startsWith("<success")) throw new Error(`${nameOf(user)} cannot log in: ${answer}`);
}

const base64 = (text) => Buffer.from(text).toString("base64");
const isSasl = (text) => /^<(challenge|success|failure)/.test(text);
const isFeatures = (text) => /^<(stream:)?features/.test(text);
const isAnswer = (id) => (text) => text.startsWith("<iq") && new RegExp(`id=['"]${id}['"]`).test(text);

/** The text of a message, also of one that was read from the archive. */
const textOf = (stanza) => /<body[^>]*>([^<]*)</.exec(stanza)?.[1];

export class Client {
  constructor({ url, headers }) {
    Object.assign(this, { url, headers });
  }

  /** A socket with an open stream. `onClose` is called when the stream ends after that. */
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
        console.error(`opening a stream again after: ${error.message}`);
      }
    }
  }

  /** A socket of a user who has logged in. */
  async session(user, onClose) {
    const socket = await this.stream(onClose);
    await logIn(socket, user);
    await socket.step(OPEN, isFeatures);
    const bind = '<bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"><resource>web</resource></bind>';
    const bound = await socket.step(`<iq xmlns="jabber:client" type="set" id="bind">${bind}</iq>`, isAnswer("bind"));
    if (!/type=['"]result['"]/.test(bound)) throw new Error(`${nameOf(user)} cannot bind a resource: ${bound}`);
    return socket;
  }

  /** A session that receives messages. */
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
  async reconnect(user, options) {
    const socket = await this.connect(user, options);
    for (let page = 0, after = ""; ; page += 1) {
      const set = `<set xmlns="http://jabber.org/protocol/rsm"><max>${ARCHIVE_PAGE}</max>${after}</set>`;
      const query = `<query xmlns="urn:xmpp:mam:2" queryid="q${page}">${set}</query>`;
      const request = `<iq xmlns="jabber:client" type="set" id="q${page}">${query}</iq>`;
      const answer = await socket.step(request, isAnswer(`q${page}`));
      if (!/type=['"]result['"]/.test(answer)) throw new Error(`cannot read the archive: ${answer}`);
      const last = /<last>([^<]+)</.exec(answer)?.[1];
      if (/complete=['"](true|1)['"]/.test(answer) || !last) return socket;
      after = `<after>${last}</after>`;
    }
  }

  async sender(options) {
    const agents = await Promise.all(SENDERS.map((agent) => this.agent(agent, options)));
    let sent = 0;
    return {
      // The agents take turns, shifted by one each round, so that each agent writes to all users.
      send: (user, body) => agents[(sent + Math.floor(sent++ / agents.length)) % agents.length].send(user, body),
      close: () => Promise.all(agents.map((agent) => agent.close())),
    };
  }

  async agent(name, { isConfirmed, onClose }) {
    const unacknowledged = [];
    const fail = (reason) => {
      for (const { failed } of unacknowledged.splice(0)) failed(new Error(reason));
      onClose(reason);
    };
    const socket = await this.session(name, fail);
    // Messages that were sent, and stanzas that were received, as stream management counts them.
    let [sent, handled] = [0, 0];
    socket.listen((stanza) => {
      if (stanza.startsWith("<r ")) socket.send(`<a xmlns="urn:xmpp:sm:3" h="${handled}"/>`);
      else if (/^<(message|iq|presence)/.test(stanza)) handled += 1;
      if (/type=['"]error['"]/.test(stanza)) fail(`refused: ${stanza.slice(0, 300)}`);
      const upTo = +(/^<a [^>]*h=['"](\d+)['"]/.exec(stanza)?.[1] ?? -1);
      while (unacknowledged.length && unacknowledged[0].number <= upTo) unacknowledged.shift().done();
    });
    if (isConfirmed) {
      const enabled = await socket.step('<enable xmlns="urn:xmpp:sm:3"/>', (text) => /^<(enabled|failed)/.test(text));
      if (!enabled.startsWith("<enabled")) throw new Error(`the server has no stream management: ${enabled}`);
    }
    const send = (user, body) => {
      sent += 1;
      const to = `${nameOf(user)}@${HOST}`;
      socket.send(`<message xmlns="jabber:client" to="${to}" type="chat" id="m${sent}"><body>${body}</body></message>`);
      if (!isConfirmed) return Promise.resolve();
      socket.send('<r xmlns="urn:xmpp:sm:3"/>');
      const number = sent;
      return new Promise((done, failed) => unacknowledged.push({ number, done, failed }));
    };
    return { send, close: () => socket.close() };
  }
}
