// Tells the service what the visitor has seen: at once, and then once a second at most, however fast messages come.

/** A socket that sends more than six frames a second is closed. */
const EVERY_MS = 1_000;

export class Seen {
  constructor(line) {
    this.line = line;
    this.upTo = 0;
    this.told = 0;
    this.toldAt = 0;
    this.timer = 0;
    addEventListener("pagehide", () => this.tell());
  }

  /** Another socket, which knows nothing of it yet. */
  forget() {
    this.upTo = this.told = 0;
  }

  /** Everything up to this message is before the visitor's eyes. */
  note(id) {
    if (id <= this.upTo) return;
    this.upTo = id;
    const wait = this.toldAt + EVERY_MS - Date.now();
    if (wait <= 0) this.tell();
    else this.timer ||= setTimeout(() => this.tell(), wait);
  }

  tell() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.line.isOpen || this.upTo <= this.told) return;
    this.toldAt = Date.now();
    this.told = this.upTo;
    this.line.send({ type: "seen", upTo: this.upTo });
  }
}
