// Makes the one file that is served of the widget's modules. `node bundle.mjs` writes it, `--check` says whether the
// one that is there is what the modules give.

import { build, transform } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const folder = new URL("../../../src/visitors/assets/widget/", import.meta.url);

export const bundlePath = fileURLToPath(new URL("widget.js", folder));

/** The style sheet as a text for the script that adopts it. */
const styles = {
  name: "styles",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

export async function bundle() {
  const { outputFiles } = await build({
    absWorkingDir: fileURLToPath(folder),
    entryPoints: ["source/main.js"],
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2020"],
    charset: "utf8",
    legalComments: "none",
    banner: { js: "/* Hotline webchat. Made of the modules in source/ by `make widget`; MIT or Apache-2.0. */" },
    plugins: [styles],
    write: false,
  });
  return outputFiles[0].text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const made = await bundle();
  if (!process.argv.includes("--check")) await writeFile(bundlePath, made);
  else if ((await readFile(bundlePath, "utf8").catch(() => "")) !== made) {
    console.error("widget.js is not what its modules give: run `make widget`");
    process.exit(1);
  }
}
