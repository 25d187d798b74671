// Files of a form. The body of a form is built here, so that each attempt sends the same bytes under the same key.

import { HotlineError } from "./errors.js";

/** Most that the files of one call may have in all, since they are kept for another attempt. */
export const UPLOAD_BYTES_MAX = 256 * 1024 * 1024;

/** Contents of a file. */
export type Contents = Blob | ArrayBuffer | Uint8Array | string | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** A file to send. A `File` of a browser is one, too. */
export type Upload =
  | Blob
  | {
      data: Contents;
      /** The name that the recipient sees. */
      fileName: string;
      /** The MIME type. Default: the service detects it. */
      mimeType?: string;
    };

/** A body, and its content type. */
export interface Body {
  content: Blob | string;
  contentType: string;
}

/** A form of these fields; objects are JSON text. */
export async function form(fields: object, boundary: string): Promise<Body> {
  const parts: (Blob | string)[] = [];
  let bytes = 0;
  const add = (head: string, content: Blob | string): void => {
    parts.push(`--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n`, content, "\r\n");
  };
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null || name === "medias") continue;
    add(`name="${quoted(name)}"`, typeof value === "string" ? value : textOf(value));
  }
  for (const file of (fields as { medias?: Upload[] }).medias ?? []) {
    const { data, fileName, mimeType } = await read(file, UPLOAD_BYTES_MAX - bytes);
    bytes += data.size;
    add(`name="medias"; filename="${quoted(fileName)}"${mimeType ? `\r\ncontent-type: ${mimeType}` : ""}`, data);
  }
  parts.push(`--${boundary}--\r\n`);
  return { content: new Blob(parts), contentType: `multipart/form-data; boundary=${boundary}` };
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : JSON.stringify(value);
}

function quoted(name: string): string {
  return name.replace(/\r/g, "%0D").replace(/\n/g, "%0A").replace(/"/g, "%22");
}

async function read(file: Upload, left: number): Promise<{ data: Blob; fileName: string; mimeType: string }> {
  const given = file instanceof Blob ? { data: file, fileName: (file as File).name ?? "file", mimeType: file.type } : file;
  const mimeType = (given.mimeType ?? "").replace(/[\r\n]/g, "");
  const data = isStream(given.data) ? await collect(given.data, left) : new Blob([given.data as BlobPart]);
  if (data.size > left) throw tooLarge();
  return { data, fileName: given.fileName, mimeType };
}

function isStream(data: Contents): data is ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> {
  return typeof data === "object" && (Symbol.asyncIterator in data || "getReader" in data);
}

async function collect(stream: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>, left: number): Promise<Blob> {
  const chunks: BlobPart[] = [];
  let size = 0;
  for await (const chunk of iterate(stream)) {
    size += chunk.byteLength;
    if (size > left) throw tooLarge();
    chunks.push(chunk as BlobPart);
  }
  return new Blob(chunks);
}

/** A stream as something to iterate over, which not every browser's is. */
export async function* iterate(
  stream: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!("getReader" in stream)) return yield* stream;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Ends the connection if the reader stops before the end.
    await reader.cancel().catch(() => undefined);
  }
}

function tooLarge(): HotlineError {
  return new HotlineError(`the files of a message are larger than ${UPLOAD_BYTES_MAX} bytes in all`);
}
