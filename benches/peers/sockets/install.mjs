// Installs the peers that are missing: Debian's packages by `tools/setup sockets`, libraries for Node with `npm` into
// target/peers/npm.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { command } from "../support/processes.mjs";
import { root, target } from "../support/report.mjs";

/** The measured versions. */
const LIBRARIES = { "socket.io": "4.8.4", ws: "8.23.0" };

export async function install() {
  await command(join(root, "tools/setup"), ["sockets"]);
  const folder = join(target, "peers/npm");
  const isInstalled = ([name, version]) => {
    const file = join(folder, "node_modules", name, "package.json");
    return existsSync(file) && JSON.parse(readFileSync(file, "utf8")).version === version;
  };
  if (Object.entries(LIBRARIES).every(isInstalled)) return;
  mkdirSync(folder, { recursive: true });
  const packages = Object.entries(LIBRARIES).map(([name, version]) => `${name}@${version}`);
  await command("npm", ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", ...packages]);
}
