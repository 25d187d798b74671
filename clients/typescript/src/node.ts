// What only Node has: files by their path.

import { readFile } from "node:fs/promises";
import { basename } from "node:path";

/** A file on disk, to send: `medias: [await fromPath("invoice.pdf")]`. */
export async function fromPath(
  path: string,
  options: { fileName?: string; mimeType?: string } = {},
): Promise<{ data: Blob; fileName: string; mimeType?: string }> {
  const data = new Blob([await readFile(path)]);
  const fileName = options.fileName ?? basename(path);
  return options.mimeType === undefined ? { data, fileName } : { data, fileName, mimeType: options.mimeType };
}
