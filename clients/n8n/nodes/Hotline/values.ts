// Turns what a form contains into what the API takes. Values may be of any type: they are often results of expressions.

import type { Kind } from "./operation";

/** The time of a form, which has no zone, in the zone of the workflow. */
export type ToTime = (value: string) => string;

/** A value as the API takes it; an empty number or time is `null`. */
export function toValue(name: string, value: unknown, kind: Kind, toTime: ToTime): unknown {
  if (value === null) return null;
  switch (kind) {
    case "number":
      return toNumber(name, value);
    case "dateTime":
      return value === "" ? null : toTime(String(value));
    case "list":
      return toList(value).map((one) => toNumber(name, one));
    case "json":
      return toJson(name, value);
    default:
      return value;
  }
}

function toNumber(name: string, value: unknown): number | null {
  if (typeof value === "string" && value.trim() === "") return null;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isFinite(number)) throw new TypeError(`${name} must be a number`);
  return number;
}

/** Names or ids separated by commas, or already a list. */
export function toList(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return String(value)
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

function toJson(name: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    throw new TypeError(`${name} must be JSON`);
  }
}

/** A value in the query of a request. */
export function toQuery(value: unknown): string | undefined {
  if (value === null || value === undefined || value === "") return undefined;
  return Array.isArray(value) ? value.join(",") : typeof value === "object" ? JSON.stringify(value) : String(value);
}
