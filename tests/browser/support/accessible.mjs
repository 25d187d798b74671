// What everybody can use: axe-core, the sizes of what is pressed, words that are not cut.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** WCAG 2.2 up to AA, and what axe recommends besides. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** WCAG 2.2, 2.5.8. */
export const TARGET_PX_MIN = 24;

/** No violation of WCAG; half-way through a movement colours are mixed, so it is waited for. */
export async function checkPage(page, what) {
  await page.evaluate(() => {
    const passing = document.getAnimations().filter((it) => it.effect.getComputedTiming().iterations !== Infinity);
    return Promise.all(passing.map((it) => it.finished.then(() => {}, () => {})));
  });
  await checkWith(page, null, what);
}

/** No violation within this part of a page; none: the whole of it. */
export async function checkWith(page, part, what) {
  // Evaluated by the debugger: the page's own policy lets no foreign script in. It stays as long as the document does.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  // Of what is right, that it was looked at is enough: half of the time would go into describing it.
  const options = { runOnly: RULES, resultTypes: ["violations"] };
  const { violations, passes } = await page.evaluate(
    async ([within, how]) => {
      const { violations, passes } = await window.axe.run(within ?? document, how);
      return { violations, passes: passes.length };
    },
    [part, options],
  );
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join("\n")}`);
  assert.deepEqual(found, [], what);
  assert.ok(passes > 5, `axe looked at ${what}`);
}

/** Nothing reaches over the side, no word is broken, nothing that is pressed is too small. */
export async function checkLayout(page, what) {
  const found = await page.evaluate((min) => {
    const wrong = [];
    const over = document.documentElement.scrollWidth - innerWidth;
    if (over > 0) wrong.push(`${over} px over the side`);
    const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(".unseen, code, option, [data-free]");
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.parentElement || !isSeen(node.parentElement)) continue;
      for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]{2,24}/gu)) {
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) wrong.push(`“${word}” is broken`);
      }
    }
    for (const element of document.querySelectorAll("button, label, h1, h2, th, nav a, .badge, select")) {
      if (!isSeen(element)) continue;
      if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== "inline") {
        wrong.push(`“${element.textContent.slice(0, 40)}” is wider than its place`);
      }
    }
    for (const element of document.querySelectorAll("button, select, input:not([type=checkbox]), textarea, nav a, a.button, label.check")) {
      const { width, height } = element.getBoundingClientRect();
      if (isSeen(element) && !element.closest("[inert]") && (width < min || height < min)) {
        wrong.push(`“${element.textContent || element.id}” is ${Math.round(width)} by ${Math.round(height)}`);
      }
    }
    return wrong;
  }, TARGET_PX_MIN);
  assert.deepEqual(found, [], what);
}
