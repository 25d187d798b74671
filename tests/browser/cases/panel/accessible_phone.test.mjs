// Every page on a phone.

import { describe, it } from "node:test";

import { PHONE } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { arePagesWhole } from "../../support/pages.mjs";
import { panel } from "../../support/panel.mjs";

describe("the pages on a phone", () => {
  const at = panel();

  for (const colorScheme of chosen(["dark", "light"])) {
    it(`are accessible and whole, ${colorScheme}`, () => arePagesWhole(at, "phone", { size: PHONE, colorScheme, language: "pt", turn: 1 }));
  }
});
