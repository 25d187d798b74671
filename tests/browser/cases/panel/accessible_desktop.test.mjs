// Every page on a desktop.

import { describe, it } from "node:test";

import { DESKTOP } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { arePagesWhole } from "../../support/pages.mjs";
import { panelEnv } from "../../support/panel.mjs";

describe("the pages on a desktop", () => {
  const env = panelEnv();

  for (const colorScheme of chosen(["light", "dark"])) {
    it(`are accessible and whole, ${colorScheme}`, () => arePagesWhole(env, "desktop", { size: DESKTOP, colorScheme, language: "en", turn: 0 }));
  }
});
