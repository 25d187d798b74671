// Every page on a desktop.

import { describe, it } from "node:test";

import { DESKTOP } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { arePagesWhole } from "../../support/pages.mjs";
import { panel } from "../../support/panel.mjs";

describe("the pages on a desktop", () => {
  const at = panel();

  for (const colorScheme of chosen(["light", "dark"])) {
    it(`are accessible and whole, ${colorScheme}`, () => arePagesWhole(at, "desktop", { size: DESKTOP, colorScheme, language: "en", turn: 0 }));
  }
});
