// A chat server of socket.io: checks tokens, and passes on what the sender sends to a user's room. The settings are those
// of its documentation for many connections: WebSocket alone, and no reference to the first request.

import { createServer } from "node:http";
import { createRequire } from "node:module";

import { SENDER, isToken } from "./node_server.mjs";

const { Server } = createRequire(process.env.LIBRARIES)("socket.io");
const { PORT, SECRET } = process.env;

const server = createServer();
const io = new Server(server, { transports: ["websocket"], serveClient: false });

io.engine.on("connection", (raw) => {
  raw.request = null;
});

io.use((socket, next) => {
  const { user, token } = socket.handshake.auth;
  if (!isToken(SECRET, user, token)) return next(new Error("unauthorized"));
  socket.data.user = user;
  next();
});

io.on("connection", (socket) => {
  socket.join(socket.data.user);
  if (socket.data.user !== SENDER) return;
  socket.on("send", (user, text, accept) => {
    io.to(user).emit("message", text);
    accept?.();
  });
});

server.listen(+PORT, "127.0.0.1");
