// A website that embeds the widget.

import { createServer } from "node:http";
import { once } from "node:events";

/** As hard on what it embeds as websites are. */
const STYLE = `
  * { color: crimson; letter-spacing: 0.2em; text-transform: uppercase; }
  div, section, button { border: 3px dotted crimson; float: right; }
  body { margin: 48px; font: 20px/2 Georgia, serif; text-align: right; background: #faf8f5; }
  @media (prefers-color-scheme: dark) { body { background: #22252b; } }
`;

/** Allows the page nothing but the widget and its door. */
export const strictPolicy = (service) => {
  const { origin, host } = new URL(service.url);
  return `default-src 'none'; style-src 'none'; script-src ${origin}; connect-src ${origin} ws://${host}; img-src ${origin}`;
};

export class Shop {
  /** `policy`: its Content-Security-Policy. */
  static async start() {
    const shop = new Shop();
    shop.server = createServer((request, response) => shop.answer(request, response));
    shop.server.listen(0, "127.0.0.1");
    await once(shop.server, "listening");
    return shop;
  }

  get port() {
    return this.server.address().port;
  }

  get origin() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The same website, as browsers tell it from the other. */
  get otherOrigin() {
    return `http://localhost:${this.port}`;
  }

  /** A page with the widget of this company, which may name its visitor, say how it looks, and include the line so many times. */
  page(company, { origin = this.origin, policy = "", identity = "", language = "", theme = "", lines = 1 } = {}) {
    const query = new URLSearchParams({ widget: `${company.door}/widget.js`, policy, identity, language, theme, lines, utm_source: "tests" });
    return `${origin}/?${query}`;
  }

  answer(request, response) {
    const { pathname, searchParams } = new URL(request.url, this.origin);
    if (pathname === "/style.css") {
      response.writeHead(200, { "Content-Type": "text/css" });
      return response.end(STYLE);
    }
    if (pathname.endsWith(".png")) {
      response.writeHead(200, { "Content-Type": "image/png" });
      return response.end(PICTURE);
    }
    if (pathname !== "/") {
      response.writeHead(404);
      return response.end();
    }
    const policy = searchParams.get("policy");
    response.writeHead(200, {
      "Content-Type": "text/html; charset=utf-8",
      ...(policy && { "Content-Security-Policy": policy }),
    });
    const given = ["identity", "language", "theme"].filter((name) => searchParams.get(name));
    const named = given.map((name) => ` data-${name}="${searchParams.get(name)}"`).join("");
    const widget = searchParams.get("widget").replaceAll("&", "&amp;").replaceAll('"', "&quot;");
    response.end(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A shop</title>
<link rel="icon" href="${policy ? new URL("/icon", widget) : "data:,"}">
${policy ? "" : '<link rel="stylesheet" href="/style.css">'}
</head>
<body>
<main><h1>A shop</h1><p>Mugs for everybody. <a href="#more">More</a></p></main>
${`<script src="${widget}"${named} async></script>\n`.repeat(Number(searchParams.get("lines") || 1))}
</body>
</html>`);
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}

/** A few pixels. */
export const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAGCAIAAABxZ0isAAAAYklEQVR42g3J2wlEIQxAwS3nIiEEEcvKs5dT7zq/8/uc5YijjjnbOc51fl+wAgk0sGAHJ7jxIlmJJJpYspOT3HxRrEIKLazYxSluvWhWI4021uzmNLdfDGuQQQcb9nCGO/wB2vo6CQRZ0zgAAAAASUVORK5CYII=",
  "base64",
);

/** A file that is shown. */
export const MUG = { name: "mug.png", mimeType: "image/png", content: PICTURE };

/** A file that is offered; one that big is read as PDF by its beginning. */
export const INVOICE = {
  name: "invoice.pdf",
  mimeType: "application/pdf",
  content: Buffer.concat([Buffer.from("%PDF-1.7\n"), Buffer.alloc(345_669, " ")]),
};
