// What is committed and made of something else.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";

import { bundle } from "../bundle.mjs";

const root = new URL("../../../", import.meta.url);

describe("the bundles", () => {
  it("are what their modules give", async () => {
    const stale = [];
    for (const [file, made] of await bundle()) {
      if ((await readFile(new URL(file, root), "utf8")) !== made) stale.push(file);
    }
    assert.deepEqual(stale, [], "run `make widget panel-pages`");
  });
});
