// A resource is described by data: its list, its filters, its form and its words. Two pages show them all.

import type { ComponentChildren } from "preact";

import type { Method, Query } from "../core/client";
import type { Values } from "../core/drafts";
import { may } from "../core/session";
import type { Source } from "../core/shapes";
import type { Text } from "../core/text";
import type { Field, Option } from "../ui/fields";

export interface ColumnOf<Row> {
  label: Text;
  show: (row: Row) => ComponentChildren;
  kind?: "number" | "actions";
}

export type Filter = { name: string; label: Text } & ({ kind: "choice"; options: readonly Option[]; /** What is listed when none is chosen. */ none?: Text } | { kind: "one"; of: Source } | { kind: "moment" });

/** What of a row has a page of its own. */
export interface Branch<Row> {
  label: Text;
  to: (row: Row) => string;
  /** The module whose GET it takes, should it be another. */
  module?: string;
}

/** Whether the person may do this with records of a resource. */
export function mayWith(of: Resource, method: Method): boolean {
  const is = { POST: "create", PUT: "update", DELETE: "delete", GET: null } as const;
  const what = is[method];
  if (what && of.cannot?.includes(what)) return false;
  return of.isFor ? of.isFor() : may(of.module, method);
}

export interface Resource<Row extends { id: number } = { id: number }, Written = Values> {
  /** Its path in the panel and in the API. */
  path: string;
  /** Whose permissions it takes. */
  module: string;
  /** Who may do anything with it, where permissions do not matter. */
  isFor?: () => boolean;
  /** Whether a record is read in the list only: it has no path of its own to be read at. */
  isListed?: boolean;
  /** Where a record is read and changed, should it not be below its path. */
  recordPath?: (id: string) => string;
  /** Where it is changed, should it not be where it is read. */
  changePath?: (id: string) => string;
  query?: Query;
  words: {
    many: Text;
    /** "New tag". */
    make: Text;
    lead: Text;
    /** What to do first, where there is nothing yet. */
    empty: Text;
    /** What goes with one that is deleted. */
    goesWith: Text;
  };
  nameOf: (row: Row) => string;
  columns: ColumnOf<Row>[];
  filters?: Filter[];
  isSearched?: boolean;
  fields: Field<Extract<keyof Written, string>>[];
  branches?: Branch<Row>[];
  /** What cannot be changed, is made anew, or is never deleted. */
  cannot?: ("create" | "update" | "delete")[];
  /** Whether its list is in an order that people have given it; other lists have the newest first. */
  isOrdered?: boolean;
  /** What stands above the form of a record that is there: what is to be done next. */
  above?: (row: Row, again: () => void) => ComponentChildren;
  /** What stands beside the form of a record that is there. */
  beside?: (row: Row, again: () => void) => ComponentChildren;
  /** What stands beside the fields as they are typed. */
  preview?: (values: Values, row: Row | undefined) => ComponentChildren;
  /** Shown over the list: buttons besides "new". */
  actions?: () => ComponentChildren;
  /** What is done with the answer to a creation; else its page is shown. */
  made?: (answer: unknown) => void;
}

/** Names a resource with its types, which the collection of all of them forgets. */
export const resource = <Row extends { id: number }, Written>(described: Resource<Row, Written>): Resource => described as unknown as Resource;
