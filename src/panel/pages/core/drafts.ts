// What somebody has typed and not saved: kept while they look at another page, and while they sign in again. In memory
// only, as forms hold secrets too.

export type Values = Record<string, unknown>;

/** Forms of which a draft is kept; the oldest goes first. */
const DRAFTS_MAX = 50;

const drafts = new Map<string, Values>();

export const draft = (name: string): Values | undefined => drafts.get(name);

export function keepDraft(name: string, values: Values): void {
  drafts.delete(name);
  drafts.set(name, values);
  const oldest = drafts.keys().next();
  if (drafts.size > DRAFTS_MAX && !oldest.done) drafts.delete(oldest.value);
}

export function dropDraft(name: string): void {
  drafts.delete(name);
}

export function dropDrafts(): void {
  drafts.clear();
}
