// Installs peers: Debian's packages into the system, Python's into virtual environments under target/peers. What is
// installed already is not changed, and no service of the system is started.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { command } from "../support/processes.mjs";
import { target } from "../support/report.mjs";

/** Runs a command as root. */
const asRoot = ([program, ...args], options) =>
  process.getuid() === 0 ? command(program, args, options) : command("sudo", ["-E", program, ...args], options);

/** The version of a Debian package; null if it is not installed. */
export async function debianVersion(name) {
  const status = await command("dpkg-query", ["-W", "-f", "${db:Status-Status} ${Version}", name]).catch(() => "");
  return status.startsWith("installed ") ? status.split(" ")[1] : null;
}

/**
 * Installs those of these packages that are missing. `answers` preset the questions of their installation (debconf).
 * `services` are disabled, so that the system does not start them when it boots.
 */
export async function debian(packages, { answers = [], services = [] } = {}) {
  const missing = [];
  for (const name of packages) if (!(await debianVersion(name))) missing.push(name);
  if (!missing.length) return;
  console.log(`installing ${missing.join(", ")} with apt-get`);
  // In run level 1, that of maintenance, an installation starts no service.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  for (const answer of answers) await asRoot(["sh", "-c", `echo '${answer}' | debconf-set-selections`], { env });
  await asRoot(["apt-get", "install", "-y", "-q", "--no-install-recommends", ...missing], { env }).catch((error) => {
    throw new Error(`${error.message}\nrun \`apt-get update\`; the packages are those of Debian 12 or newer`);
  });
  for (const service of services) await asRoot(["systemctl", "disable", service], { env });
}

/** Creates a virtual environment with these Python packages, each with its version. Returns its folder of programs. */
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
