// The types are those of the widget: its methods, and the attributes it reads.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";

const ts = createRequire(new URL("../../typescript/package.json", import.meta.url))("typescript");
const read = (path) => readFile(new URL(path, import.meta.url), "utf8");
const source = await read("../../../src/visitors/assets/widget/source/main.js");
const declared = ts.createSourceFile("index.d.ts", await read("../index.d.ts"), ts.ScriptTarget.ES2022);

function membersOf(name) {
  const found = declared.statements.find((each) => ts.isInterfaceDeclaration(each) && each.name.text === name);
  return found.members.map((member) => member.name.text).sort();
}

test("a page may call what the widget has", () => {
  const methods = [...source.matchAll(/^ {4}(\w+): later\(/gm)].map(([, name]) => name);
  assert.ok(methods.length > 0);
  assert.deepEqual(membersOf("HotlineWebchat"), methods.sort());
});

test("the line may have the attributes that the widget reads", () => {
  const read = [...source.matchAll(/script\.dataset\.(\w+)|"(\w+)" in script\.dataset/g)].map(([, name, other]) => name ?? other);
  assert.deepEqual(membersOf("HotlineWebchatAttributes"), [...new Set(read)].sort());
});

test("the event and the element have the widget's name", () => {
  const [, tag] = /const TAG = "([^"]+)"/.exec(source);
  assert.ok(source.includes(`dispatchEvent(new Event("${tag}"))`));
  assert.equal(declared.text.split(`"${tag}": `).length - 1, 2);
});
