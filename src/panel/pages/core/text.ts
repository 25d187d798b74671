// What the pages say, in the language of who reads them. A text is written once, in all three languages side by side:
// the type does not let one be forgotten.

import { signal } from "@preact/signals";

export const LANGUAGES = ["en", "pt", "es"] as const;
export type Language = (typeof LANGUAGES)[number];

/** English, Portuguese, Spanish. */
export type Text = readonly [en: string, pt: string, es: string];

const KEPT = "hotline-panel-language";

function first(): Language {
  const wanted = [localStorage.getItem(KEPT), ...navigator.languages];
  for (const name of wanted) {
    const found = LANGUAGES.find((language) => name?.toLowerCase().startsWith(language));
    if (found) return found;
  }
  return "en";
}

export const language = signal<Language>(first());

/** Speaks this language from now on, in this browser. */
export function speak(next: Language): void {
  localStorage.setItem(KEPT, next);
  language.value = next;
}

/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** What somebody wrote, in the middle of a sentence: its direction does not change that of the sentence. */
const apart = (value: string | number) => (RIGHT_TO_LEFT.test(String(value)) ? `\u2068${value}\u2069` : String(value));

/** The text in the language of now; `{name}` is replaced by the value of that name. */
export function say(text: Text, values: Record<string, string | number> = {}): string {
  const at = LANGUAGES.indexOf(language.value);
  return (text[at] ?? text[0]).replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? apart(values[name] ?? "") : whole));
}

/** A text for one, and the text for any other number of it. */
export interface Counted {
  one: Text;
  other: Text;
}

/** A number with what it counts, as the language inflects it; the texts say `{count}`. */
export function counted(number: number, { one, other }: Counted, values: Record<string, string | number> = {}): string {
  // Portuguese and Spanish have a form for millions as well, which differs by a word before the noun that is not said here.
  const isOne = new Intl.PluralRules(language.value).select(number) === "one";
  return say(isOne ? one : other, { count: count(number), ...values });
}

/** The language of now with the reader's region, by which dates and numbers are written: who reads English in London reads no American dates. */
function locale(): string {
  const spoken = language.value;
  const own = navigator.languages.find((tag) => tag.toLowerCase().split("-")[0] === spoken);
  if (own) return own;
  try {
    const { region } = new Intl.Locale(navigator.language);
    return region ? `${spoken}-${region}` : spoken;
  } catch {
    return spoken;
  }
}

/** A moment as people write it: where it takes two lines, the day stands in one and the hour in the other. */
export function moment(value: string | null | undefined): string {
  if (!value) return "";
  const at = new Date(value);
  const parts = [{ dateStyle: "medium" }, { timeStyle: "short" }] as const;
  return parts.map((part) => new Intl.DateTimeFormat(locale(), part).format(at).replace(/\s/g, "\u00a0")).join(", ");
}

/** The same at length, with the second and the time zone of this browser. */
export function exactMoment(value: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "full", timeStyle: "full" }).format(new Date(value));
}

/** Seconds in the unit that people would take. */
export function duration(seconds: number): string {
  const [unit, value] = seconds < 120 ? ["s", seconds] : seconds < 7_200 ? ["min", seconds / 60] : ["h", seconds / 3_600];
  return `${count(value, { maximumFractionDigits: unit === "s" ? 2 : 1 })} ${unit}`;
}

/** A number as people write it. */
export function count(value: number, options: Intl.NumberFormatOptions = {}): string {
  return new Intl.NumberFormat(locale(), options).format(value);
}

/** `a, b and c`. */
export function list(values: string[]): string {
  return new Intl.ListFormat(language.value).format(values);
}
