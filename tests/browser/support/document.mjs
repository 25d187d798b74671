// The document of the panel's API, as the code that is tested has it.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

import { target } from "./service.mjs";

/** It has 1 MB. */
const DOCUMENT_BYTES_MAX = 64 * 1024 ** 2;

/** What `examples/openapi.rs` prints; `make` builds it with the binary. */
export async function panelDocument() {
  const example = join(target, "debug/examples/openapi");
  const { stdout } = await promisify(execFile)(example, ["panel"], { maxBuffer: DOCUMENT_BYTES_MAX });
  return JSON.parse(stdout);
}
