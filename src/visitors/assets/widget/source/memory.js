// What the browser keeps between pages and shares between tabs, for one channel: the session with its token, what is
// not sent yet, the draft, and what was read.
//
// The token lies in localStorage, where every script of the embedding page can read it. That page shows the widget and
// could read the conversation anyway; a cookie would need one site for shop and chat, and cookies of third parties are
// blocked. The token opens one conversation, and ends with it.

/** The store of one kind, or one that forgets with the page, where the browser forbids storing. */
function storeOf(kind) {
  try {
    const store = window[kind];
    store.setItem("hotline:test", "");
    store.removeItem("hotline:test");
    return store;
  } catch {
    const kept = new Map();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => void kept.set(key, value),
      removeItem: (key) => void kept.delete(key),
      key: (at) => [...kept.keys()][at] ?? null,
      get length() {
        return kept.size;
      },
    };
  }
}

export class Memory {
  constructor(publicKey) {
    this.prefix = `hotline:${publicKey}:`;
    this.shared = storeOf("localStorage");
    this.ofTab = storeOf("sessionStorage");
  }

  get(name, store = this.shared) {
    try {
      return JSON.parse(store.getItem(this.prefix + name));
    } catch {
      return null;
    }
  }

  set(name, value, store = this.shared) {
    try {
      if (value === null || value === undefined) store.removeItem(this.prefix + name);
      else store.setItem(this.prefix + name, JSON.stringify(value));
    } catch {
      // Full: it lives as long as the page does.
    }
  }

  /** Everything under names that begin like this. Each entry has its own key, so that two tabs never undo each other. */
  all(begin) {
    const names = [];
    for (let at = 0; at < this.shared.length; at++) {
      const key = this.shared.key(at);
      if (key && key.startsWith(this.prefix + begin)) names.push(key.slice(this.prefix.length));
    }
    return names.map((name) => this.get(name)).filter(Boolean);
  }

  /** Does a piece of work while no other tab does the one of this name; where the browser cannot tell, at once. */
  alone(name, work) {
    return navigator.locks ? navigator.locks.request(this.prefix + name, work) : work();
  }

  /** Calls back with the name of what another tab changed. */
  onChange(notice) {
    addEventListener("storage", ({ key, storageArea }) => {
      if (storageArea === this.shared && (!key || key.startsWith(this.prefix))) {
        notice(key ? key.slice(this.prefix.length) : "");
      }
    });
  }
}
