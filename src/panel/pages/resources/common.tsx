// Columns and filters that more than one resource has.

import { moment, type Text } from "../core/text";
import { words } from "../core/words";
import { Active } from "../ui/states";

export const created = { label: words.createdAt, show: (row: { createdAt: string }) => moment(row.createdAt) };
export const updated = { label: words.updatedAt, show: (row: { updatedAt: string }) => moment(row.updatedAt) };
export const active = { label: words.state, show: (row: { active: boolean }) => <Active is={row.active} /> };

/** Filters by whether it is in use. */
export const isActive = {
  name: "active",
  label: words.state as Text,
  kind: "choice" as const,
  options: [
    ["true", words.active],
    ["false", words.inactive],
  ] as const,
};
