// Markdown of a page of results: the line of date, commit and machine, and tables.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, release, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { command } from "./processes.mjs";

/** The folder of the repository. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));
/** Where results and installed peers are kept. */
export const target = join(process.env.CARGO_TARGET_DIR || join(root, "target"));

/** Of the sources, where they are a repository and `git` is there. */
async function commit() {
  const git = (...words) => command("git", words, { cwd: root }).then((text) => text.trim(), () => null);
  const hash = await git("rev-parse", "--short", "HEAD");
  if (hash === null) return "";
  const changed = await git("status", "--porcelain", "--untracked-files=no");
  return `, commit ${hash}${changed ? " with changes" : ""}`;
}

/**
 * The first line of every page. `versions` are those of what was measured beside Hotline; of a build that is not a release,
 * the line says so.
 */
export async function machineLine(versions, isRelease) {
  const at = new Date().toISOString().replace("T", " ").slice(0, 16);
  const gib = Math.round(totalmem() / 1024 ** 3);
  const build = isRelease ? "" : " **Not a release build: nothing here means anything.**";
  return `${at} UTC${await commit()}. ${availableParallelism()} cores (${cpus()[0].model.trim()}) shared by all that runs, ${gib} GiB, Linux ${release()}, ${versions.join(", ")}.${build}`;
}

/** A table of texts; the first row of headings. */
export function table(headings, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell ?? "").replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(headings), `|${headings.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

/** Writes the page to target/peers/results, and with `--keep` to where the repository keeps results. Answers the path. */
export async function writePage(name, text, isKept) {
  const page = `${text.trim()}\n`;
  const here = join(target, "peers/results", name);
  await mkdir(dirname(here), { recursive: true });
  await writeFile(here, page);
  if (!isKept) return here;
  const kept = join(root, "benches/load/results", name);
  await writeFile(kept, page);
  return kept;
}

/** Raw figures of a run, for those who want every round. */
export async function writeFigures(name, figures) {
  const path = join(target, "peers/results", name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(figures, null, 1));
  return path;
}

export const readText = (path) => readFile(path, "utf8");
