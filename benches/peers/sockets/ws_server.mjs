// A chat server of the library `ws`: checks tokens at the handshake, passes on what the sender sends to the connections of
// a user, and closes broken connections by the ping of its documentation.

import { createServer } from "node:http";
import { createRequire } from "node:module";

import { SENDER, isToken } from "./node_server.mjs";

const { WebSocketServer } = createRequire(process.env.LIBRARIES)("ws");
const { PORT, SECRET } = process.env;

const PING_INTERVAL_MS = 30_000;

const server = createServer();
const sockets = new WebSocketServer({ noServer: true });
const users = new Map();

server.on("upgrade", (request, raw, head) => {
  const query = new URL(request.url, "http://localhost").searchParams;
  const user = query.get("user");
  if (!isToken(SECRET, user, query.get("token"))) {
    raw.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n");
    return;
  }
  sockets.handleUpgrade(request, raw, head, (socket) => join(socket, user));
});

function join(socket, user) {
  const mine = users.get(user) ?? new Set();
  users.set(user, mine.add(socket));
  socket.isAlive = true;
  socket.on("pong", markAlive);
  socket.on("error", console.error);
  socket.on("close", () => {
    mine.delete(socket);
    if (!mine.size) users.delete(user);
  });
  if (user === SENDER) socket.on("message", pass);
  socket.send("hello");
}

function markAlive() {
  this.isAlive = true;
}

function pass(data) {
  const text = data.toString();
  const end = text.indexOf(" ");
  for (const socket of users.get(text.slice(0, end)) ?? []) socket.send(text.slice(end + 1));
}

setInterval(() => {
  for (const socket of sockets.clients) {
    if (!socket.isAlive) socket.terminate();
    else {
      socket.isAlive = false;
      socket.ping();
    }
  }
}, PING_INTERVAL_MS);

server.listen(+PORT, "127.0.0.1");
