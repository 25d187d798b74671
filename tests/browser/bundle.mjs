// Makes what is served of the widget's and the panel's modules. `node bundle.mjs` writes it all, `node bundle.mjs widget`
// or `panel` a part, and `--check` says whether what is there is what the modules give.

import { build, transform } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import openapi, { astToString } from "openapi-typescript";

import { panelDocument } from "./support/document.mjs";

const root = new URL("../../", import.meta.url);
const path = (file) => fileURLToPath(new URL(file, root));

/** The widget's style sheet as a text for the script that adopts it. */
const styles = {
  name: "styles",
  setup({ onLoad }) {
    onLoad({ filter: /widget\/source\/style\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

const common = { bundle: true, minify: true, charset: "utf8", legalComments: "none", plugins: [styles], write: false };

const note = (what, command) => `/* ${what}. Made of its modules by \`make ${command}\`; MIT or Apache-2.0. */`;

async function widget() {
  const { outputFiles } = await build({
    ...common,
    absWorkingDir: path("src/visitors/assets/widget/"),
    entryPoints: ["source/main.js"],
    format: "iife",
    target: ["es2020"],
    banner: { js: "/* Hotline webchat. Made of the modules in source/ by `make widget`; MIT or Apache-2.0. */" },
  });
  return [["src/visitors/assets/widget/widget.js", outputFiles[0].text]];
}

async function panel() {
  const { outputFiles } = await build({
    ...common,
    absWorkingDir: path("src/panel/pages/"),
    entryPoints: { panel: "main.tsx", style: "style.css" },
    outdir: "out",
    format: "esm",
    target: ["es2022", "chrome123", "firefox120", "safari17.5"],
    jsx: "automatic",
    jsxImportSource: "preact",
    nodePaths: [path("tests/browser/node_modules")],
    banner: {
      js: note("Hotline's panel, with Preact (MIT), its signals (MIT) and uqr (MIT)", "panel-pages"),
      css: note("Hotline's panel", "panel-pages"),
    },
  });
  const made = (end) => outputFiles.find((file) => file.path.endsWith(end)).text;
  return [
    ["src/panel/assets/panel.js", made("panel.js")],
    ["src/panel/assets/panel.css", made("style.css")],
  ];
}

/** Types of what the service answers, of its own document. They are not kept: `tsc` alone needs them. */
export async function types() {
  const source = astToString(await openapi(await panelDocument()));
  await writeFile(path("src/panel/pages/core/schema.d.ts"), source);
}

const PARTS = { widget, panel };

export async function bundle(parts = Object.keys(PARTS)) {
  return (await Promise.all(parts.map((part) => PARTS[part]()))).flat();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2);
  const named = words.filter((word) => !word.startsWith("--"));
  if (words.includes("--types")) await types();
  else {
    for (const [file, made] of await bundle(named.length ? named : undefined)) {
      if (!words.includes("--check")) await writeFile(path(file), made);
      else if ((await readFile(path(file), "utf8").catch(() => "")) !== made) {
        console.error(`${file} is not what its modules give: run \`make widget panel-pages\``);
        process.exitCode = 1;
      }
    }
  }
}
