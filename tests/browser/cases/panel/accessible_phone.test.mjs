// Every page on a phone.

import { describe, it } from "node:test";

import { PHONE } from "../../support/browser.mjs";
import { chosen } from "../../support/extent.mjs";
import { arePagesWhole } from "../../support/pages.mjs";
import { panelEnv } from "../../support/panel.mjs";

describe("the pages on a phone", () => {
  const env = panelEnv();

  for (const colorScheme of chosen(["dark", "light"])) {
    it(`are accessible and whole, ${colorScheme}`, () => arePagesWhole(env, "phone", { size: PHONE, colorScheme, language: "pt", turn: 1 }));
  }
});
