// A server that answers what a test says, and keeps what it was asked.

import { createServer } from "node:http";
import { Hotline } from "../dist/index.js";

/** Answers each request by the next of `answers`; the last one repeats. An answer is a function, or `{status, headers, body}`. */
export async function fake(t, answers, options = {}) {
  const requests = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      requests.push({ method, url, headers, body: Buffer.concat(chunks) });
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      if (typeof answer === "function") return answer(request, response, requests);
      const { status = 200, headers: sent = {}, body = "" } = answer;
      response.writeHead(status, { "content-type": "application/json", "x-request-id": `req_${requests.length}`, ...sent });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { hotline: new Hotline({ url, apiKey: "sk_live_test", ...options }), requests, url };
}

/** An error response. */
export function refusal(status, code, more = {}) {
  const { headers, ...error } = more;
  return { status, headers, body: { error: { code, message: "no", ...error } } };
}

/** Ends the connection without an answer. */
export const hangUp = (request) => request.socket.destroy();
