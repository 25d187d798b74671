// What generated code says of an operation.

import type { IHttpRequestMethods } from "n8n-workflow";

/** How the form gives a value. */
export type Kind = "string" | "number" | "boolean" | "dateTime" | "options" | "multiOptions" | "list" | "json";

/** A request that the node can make. */
export interface Operation {
  /** As the API document names it. */
  id: string;
  method: IHttpRequestMethods | string;
  /** With the names of parameters in braces. */
  path: string;
  /** Fields of the body that have a parameter of their own. */
  required: readonly string[];
  /** Optional ones that have, too. */
  prominent: readonly string[];
  body: Readonly<Record<string, Kind>>;
  query: Readonly<Record<string, Kind>>;
  /** `data`, `page` (a list with a cursor) or `none`. */
  result: string;
  /** Whether it takes an `Idempotency-Key`. */
  isKeyed: boolean;
}
