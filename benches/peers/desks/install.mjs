// Installs peers: Debian's packages into the system, Python's into environments of their own under target/peers. What is
// there already is left as it is, and no service of the system is started.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { command } from "../support/processes.mjs";
import { target } from "../support/report.mjs";

/** Runs a command as root. */
const asRoot = (words, options) => (process.getuid() === 0 ? command(words[0], words.slice(1), options) : command("sudo", ["-E", ...words], options));

/** The version of a package of Debian; null if it is not installed. */
export async function debianVersion(name) {
  const shown = await command("dpkg-query", ["-W", "-f", "${db:Status-Status} ${Version}", name]).catch(() => "");
  return shown.startsWith("installed ") ? shown.split(" ")[1] : null;
}

/**
 * Installs what is missing of these packages. `answers` are those to the questions that their installation asks, `services`
 * those that the system would start with them.
 */
export async function debian(packages, { answers = [], services = [] } = {}) {
  const missing = [];
  for (const name of packages) if (!(await debianVersion(name))) missing.push(name);
  if (!missing.length) return;
  console.log(`installing ${missing.join(", ")} with apt-get`);
  // Run level 1 is that of maintenance, in which the installation starts no service.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  for (const answer of answers) await asRoot(["sh", "-c", `echo '${answer}' | debconf-set-selections`], { env });
  await asRoot(["apt-get", "install", "-y", "-q", "--no-install-recommends", ...missing], { env }).catch((error) => {
    throw new Error(`${error.message}\nrun \`apt-get update\`; the packages are those of Debian 12 or newer`);
  });
  for (const service of services) await asRoot(["systemctl", "disable", service], { env });
}

/** An environment with these packages of Python (each with its version); answers its folder of programs. */
export async function python(name, requirements) {
  const folder = join(target, "peers", name);
  const [programs, marker] = [join(folder, "bin"), join(folder, "requirements.txt")];
  const wanted = `${requirements.join("\n")}\n`;
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return programs;
  console.log(`installing ${requirements.join(", ")} with pip`);
  mkdirSync(join(target, "peers"), { recursive: true });
  await command("python3", ["-m", "venv", "--clear", folder]);
  await command(join(programs, "pip"), ["install", "-q", "--disable-pip-version-check", ...requirements]);
  writeFileSync(marker, wanted);
  return programs;
}
