// What all conversations in TypeScript share.

export const origin = process.env.HOTLINE_ORIGIN ?? "";
export const token = process.env.HOTLINE_TOKEN ?? "";

// No two runs may meet the same contact.
export const number = `55119${String(Date.now() % 100_000_000).padStart(8, "0")}`;

export function expect(what: string, is: unknown, wanted: unknown): void {
  if (JSON.stringify(is) !== JSON.stringify(wanted)) {
    throw new Error(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(wanted)}`);
  }
}
