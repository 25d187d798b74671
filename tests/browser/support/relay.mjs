// A relay that takes mail (SMTP), as far as a client needs one.

import { createServer } from "node:net";
import { once } from "node:events";

export class Relay {
  /** Every letter so far, as it is read. */
  letters = [];

  static async start() {
    const relay = new Relay();
    relay.server = createServer((socket) => relay.receive(socket));
    relay.server.listen(0, "127.0.0.1");
    await once(relay.server, "listening");
    return relay;
  }

  get url() {
    return `smtp://127.0.0.1:${this.server.address().port}`;
  }

  receive(socket) {
    let rest = "";
    let letter = null;
    socket.on("error", () => {});
    socket.write("220 relay.example\r\n");
    socket.on("data", (bytes) => {
      const lines = (rest + bytes).split("\r\n");
      rest = lines.pop();
      for (const line of lines) {
        if (letter && line !== ".") {
          letter.push(line);
          continue;
        }
        const isDone = Boolean(letter);
        if (isDone) this.letters.push(read(letter.join("\n")));
        letter = !isDone && /^DATA/i.test(line) ? [] : null;
        socket.write(letter ? "354 go on\r\n" : /^QUIT/i.test(line) ? "221 bye\r\n" : "250 fine\r\n");
      }
    });
  }

  async stop() {
    this.server.close();
    await once(this.server, "close");
  }
}

/** Headers by their names, and the text in plain. */
function read(source) {
  const end = source.indexOf("\n\n");
  const head = source.slice(0, end).replace(/\n[ \t]+/g, " ");
  const headers = Object.fromEntries(head.split("\n").map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
  const body = source.slice(end + 2);
  const encoding = headers["content-transfer-encoding"];
  const bytes =
    encoding === "base64"
      ? Buffer.from(body, "base64")
      : encoding === "quoted-printable"
        ? Buffer.from(body.replace(/=\n/g, "").replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), "latin1")
        : Buffer.from(body);
  return { headers, text: bytes.toString("utf8") };
}
