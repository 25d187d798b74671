// A message with files as a form. Written here because packages of n8n have no dependencies.

/** A file of a message. */
export interface File {
  content: Buffer;
  fileName: string;
  mimeType: string;
}

/** The bytes of a form; equal fields, files and boundary make equal bytes, as the same key needs them. */
export function toForm(fields: Record<string, unknown>, files: readonly File[], boundary: string): Buffer {
  const chunks: Buffer[] = [];
  const add = (text: string): number => chunks.push(Buffer.from(text));
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue;
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    add(`--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"\r\n\r\n${text}\r\n`);
  }
  for (const { content, fileName, mimeType } of files) {
    const type = /^[\w.+-]+\/[\w.+-]+/.exec(mimeType)?.[0] ?? "application/octet-stream";
    add(`--${boundary}\r\nContent-Disposition: form-data; name="medias"; filename="${quoted(fileName)}"\r\nContent-Type: ${type}\r\n\r\n`);
    chunks.push(content);
    add("\r\n");
  }
  add(`--${boundary}--\r\n`);
  return Buffer.concat(chunks);
}

/** As browsers quote a name in a form. */
function quoted(name: string): string {
  return name.replace(/"/g, "%22").replace(/\r/g, "%0D").replace(/\n/g, "%0A");
}
