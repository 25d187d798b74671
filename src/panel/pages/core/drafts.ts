// What somebody has typed and not saved: kept while they look at another page, and while they sign in again. In memory
// only, as forms hold secrets too; and for each company apart, as one form serves all that an administrator opens.

export type Values = Record<string, unknown>;

/** Forms of which a draft is kept; the oldest goes first. */
const DRAFTS_MAX = 50;

const drafts = new Map<string, Values>();

let company = "";

/** From now on drafts are of this company's forms. */
export function draftIn(id: number | null): void {
  company = id === null ? "" : String(id);
}

const nameOf = (form: string) => `${company} ${form}`;

export const draft = (form: string): Values | undefined => drafts.get(nameOf(form));

export function keepDraft(form: string, values: Values): void {
  const name = nameOf(form);
  drafts.delete(name);
  drafts.set(name, values);
  const oldest = drafts.keys().next();
  if (drafts.size > DRAFTS_MAX && !oldest.done) drafts.delete(oldest.value);
}

export function dropDraft(form: string): void {
  drafts.delete(nameOf(form));
}

export function dropDrafts(): void {
  drafts.clear();
}
