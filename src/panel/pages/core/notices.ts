// What is said in passing: seen at the edge of the page, and read out.

import { signal } from "@preact/signals";

export interface Notice {
  id: number;
  text: string;
  isError: boolean;
}

const SHOWN_MS = 6_000;

export const notices = signal<Notice[]>([]);

let last = 0;

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Says it; an error stays until it is put away. */
export function notify(text: string, isError = false): void {
  const id = (last += 1);
  notices.value = [...notices.value.slice(-2), { id, text, isError }];
  if (!isError) setTimeout(() => dismiss(id), SHOWN_MS);
}
