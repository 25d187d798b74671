// Every page on a phone.

import { PHONE } from "../../support/browser.mjs";
import { arePagesWhole } from "../../support/pages.mjs";

arePagesWhole("phone", PHONE);
