// Makes what is served of the widget's and the panel's modules. `node bundle.mjs` writes it all, `node bundle.mjs widget`
// or `panel` a part, and `--check` says whether what is there is what the modules give.

import { build, transform } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

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

const PARTS = { widget };

export async function bundle(parts = Object.keys(PARTS)) {
  return (await Promise.all(parts.map((part) => PARTS[part]()))).flat();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const words = process.argv.slice(2);
  const named = words.filter((word) => !word.startsWith("--"));
    for (const [file, made] of await bundle(named.length ? named : undefined)) {
      if (!words.includes("--check")) await writeFile(path(file), made);
      else if ((await readFile(path(file), "utf8").catch(() => "")) !== made) {
        console.error(`${file} is not what its modules give: run \`make widget panel-pages\``);
        process.exitCode = 1;
      }
    }
}
