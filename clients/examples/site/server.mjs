// A site whose signed-in customers are known in the chat: it signs their identity, which the widget sends to Hotline.
// The webchat must allow the site's origin (`hotline channel create … --allow-origin`) and have an identity secret.
// The environment has HOTLINE_URL, HOTLINE_PUBLIC_KEY, HOTLINE_IDENTITY_SECRET, and optionally PORT.

import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";

const { HOTLINE_URL, HOTLINE_PUBLIC_KEY, HOTLINE_IDENTITY_SECRET, PORT = "3000" } = process.env;
const HOUR_SECONDS = 3600;
// A real site has sessions. Here the cookie contains the customer's id, which anyone could change.
const CUSTOMERS = new Map([["c-1", { id: "c-1", name: "Maria Lima", email: "maria@example.com" }]]);

/** The customer's identity as a JSON Web Token. Only the site's server can sign it. */
function identityOf(customer) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { sub: customer.id, name: customer.name, email: customer.email, exp: Math.floor(Date.now() / 1000) + HOUR_SECONDS };
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${createHmac("sha256", HOTLINE_IDENTITY_SECRET).update(signed).digest("base64url")}`;
}

// The page's script: opens the widget, and logs the customer out of it.
const SCRIPT = await readFile(new URL("page.js", import.meta.url));

function page(customer) {
  const identity = customer ? ` data-identity="${identityOf(customer)}"` : "";
  return `<!doctype html><title>Shop</title><h1>${customer ? `Welcome, ${customer.name}` : "Welcome"}</h1>
<button id="help">Help</button>${customer ? ` <button id="log-out">Log out</button>` : ""}
<script src="/page.js" type="module"></script>
<script src="${HOTLINE_URL}/webchat/${HOTLINE_PUBLIC_KEY}/widget.js"${identity} async></script>`;
}

const server = createServer((request, response) => {
  if (request.url === "/page.js") {
    response.writeHead(200, { "content-type": "text/javascript" });
    response.end(SCRIPT);
    return;
  }
  const cookie = /(?:^|;\s*)customer=([\w-]+)/.exec(request.headers.cookie ?? "")?.[1];
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
  response.end(page(CUSTOMERS.get(cookie)));
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
