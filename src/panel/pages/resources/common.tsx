// Columns and filters that more than one resource has.

import type { Text } from "../core/text";
import { words } from "../core/words";
import { Moment } from "../ui/moment";
import { Active } from "../ui/states";

export const created = { label: words.createdAt, show: (row: { createdAt: string }) => <Moment at={row.createdAt} /> };
export const updated = { label: words.updatedAt, show: (row: { updatedAt: string }) => <Moment at={row.updatedAt} /> };
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
