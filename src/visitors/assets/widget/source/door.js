// The calls to the visitor's door (docs/webchat.md).

/** Longer than any answer takes: past it the line is dead, and a send is repeated under the same `clientId`. */
const ANSWER_TIME_MAX_MS = 20_000;

/** Of a file with what a phone's uplink needs for it. */
const UPLOAD_TIME_MAX_MS = 5 * 60_000;

/** The door said no. Status 0: it said nothing. */
export class Refused extends Error {
  constructor(status, error = {}, retryAfterS = 0) {
    super(error.message || "no answer");
    this.status = status;
    this.code = error.code || "";
    this.details = Array.isArray(error.details) ? error.details : [];
    this.retryAfterMs = retryAfterS * 1000;
  }

  /** Whether it is the signed identity that is not accepted, and not the token. */
  get isOfIdentity() {
    return this.details.some(({ field }) => /^identity\b/.test(field));
  }

  /** Whether the same call may succeed later. */
  get isPassing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

export class Door {
  constructor(base) {
    this.base = base;
  }

  config = () => this.call("GET", "/config");

  /**
   * Whether the door is there, and only this page may not ask it: a browser shows a page no answer that does not allow
   * it, but tells that there was one.
   */
  isClosed() {
    const options = { mode: "no-cors", credentials: "omit", cache: "no-store" };
    return fetch(`${this.base}/config`, options).then(
      ({ type }) => type === "opaque",
      () => false,
    );
  }

  /** `earlier`: the token of the conversation before, which shows that this is the same visitor. */
  openSession = (body, earlier) => this.call("POST", "/sessions", { body, token: earlier });

  /** Who the visitor is, as the website has signed it. */
  identify = (token, identity) => this.call("POST", "/identify", { token, body: { identity } });

  session = (token) => this.call("GET", "/session", { token });

  end = (token) => this.call("POST", "/end", { token });

  say = (token, body) => this.call("POST", "/messages", { token, body });

  /** One file, with the words that go with it; `stop` of the entry is its `AbortController`. */
  sendFile(token, entry) {
    const { clientId, body, file } = entry;
    const form = new FormData();
    form.append("clientId", clientId);
    if (body) form.append("body", body);
    form.append("medias", file, file.name);
    return this.call("POST", "/messages", { token, form, given: (entry.stop = new AbortController()) });
  }

  /** Everything after a message, page by page. */
  async messages(token, after) {
    const found = [];
    for (let last = after; ; last = found[found.length - 1].id) {
      const { data, meta } = await this.request("GET", `/messages${last ? `?after=${last}` : ""}`, { token });
      found.push(...data);
      if (!meta.hasMore || !data.length) return found;
    }
  }

  socket(token) {
    return new WebSocket(`${this.base.replace(/^http/, "ws")}/socket`, ["hotline.v1", token]);
  }

  async call(...request) {
    return (await this.request(...request)).data;
  }

  async request(method, path, { token, body, form, given = new AbortController() } = {}) {
    const headers = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    const timer = setTimeout(() => given.abort(), form ? UPLOAD_TIME_MAX_MS : ANSWER_TIME_MAX_MS);
    try {
      const answer = await fetch(this.base + path, {
        method,
        headers,
        body: form || (body && JSON.stringify(body)),
        credentials: "omit",
        signal: given.signal,
      });
      const read = await answer.json().catch(() => ({}));
      if (!answer.ok) throw new Refused(answer.status, read.error, Number(answer.headers.get("Retry-After")) || 0);
      // A proxy in between may answer in the door's place.
      if (!read.data) throw new Refused(0);
      return read;
    } catch (error) {
      throw error instanceof Refused ? error : new Refused(0);
    } finally {
      clearTimeout(timer);
    }
  }
}
