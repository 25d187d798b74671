// What the servers made of a library for Node share: a process of Node with one of the programs beside this file, which
// gets its port and a secret. A user's token is a signature of their name, as a shop's server would give out.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Server, freePort, listens, removeFolder, temporaryFolder } from "../support/processes.mjs";
import { target } from "../support/report.mjs";

export const SENDER = "agent";

export const tokenOf = (secret, user) => createHmac("sha256", secret).update(String(user)).digest("base64url");

export function isToken(secret, user, token) {
  const [expected, given] = [Buffer.from(tokenOf(secret, user)), Buffer.from(String(token))];
  return expected.length === given.length && timingSafeEqual(expected, given);
}

export async function start(name, library, program) {
  const folder = await temporaryFolder(library.replace(".", ""));
  const port = await freePort();
  const secret = randomBytes(32).toString("hex");
  const env = { PORT: String(port), SECRET: secret, LIBRARIES: join(target, "peers/npm/package.json"), NODE_ENV: "production" };
  const path = fileURLToPath(new URL(program, import.meta.url));
  let server;
  const serve = async () => {
    server = Server.start(name, process.execPath, [path], { cwd: folder, env, log: join(folder, "out.log") });
    await server.ready(() => listens(port));
  };
  await serve();
  const { version } = JSON.parse(readFileSync(join(target, "peers/npm/node_modules", library, "package.json"), "utf8"));
  return {
    version: `${name} ${version}`,
    target: { url: `ws://127.0.0.1:${port}`, secret },
    pids: () => server.pids(),
    kill: () => server.kill(),
    again: serve,
    remove: async () => {
      await server.stop();
      removeFolder(folder);
    },
  };
}
