// Every page on a desktop.

import { DESKTOP } from "../../support/browser.mjs";
import { arePagesWhole } from "../../support/pages.mjs";

arePagesWhole("desktop", DESKTOP);
