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

/** The text in the language of now; `{name}` is replaced by the value of that name. */
export function say(text: Text, values: Record<string, string | number> = {}): string {
  const at = LANGUAGES.indexOf(language.value);
  return (text[at] ?? text[0]).replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A moment as people write it: where it takes two lines, the day stands in one and the hour in the other. */
export function moment(value: string | null | undefined): string {
  if (!value) return "";
  const at = new Date(value);
  const parts = [{ dateStyle: "medium" }, { timeStyle: "short" }] as const;
  return parts.map((part) => new Intl.DateTimeFormat(language.value, part).format(at).replace(/\s/g, "\u00a0")).join(", ");
}

/** Seconds in the unit that people would take. */
export function duration(seconds: number): string {
  const [unit, value] = seconds < 120 ? ["s", seconds] : seconds < 7_200 ? ["min", seconds / 60] : ["h", seconds / 3_600];
  return `${count(value, { maximumFractionDigits: unit === "s" ? 2 : 1 })} ${unit}`;
}

/** A number as people write it. */
export function count(value: number, options: Intl.NumberFormatOptions = {}): string {
  return new Intl.NumberFormat(language.value, options).format(value);
}

/** `a, b and c`. */
export function list(values: string[]): string {
  return new Intl.ListFormat(language.value).format(values);
}
