// What a page has asked the service for.

import { useSignal, type Signal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";

import { Refused } from "./client";
import { explain } from "./reasons";

export interface Loaded<T> {
  /** Undefined until it is there. */
  data: Signal<T | undefined>;
  error: Signal<string>;
  /** Whether there is no such thing: to ask again changes nothing. */
  isGone: Signal<boolean>;
  isLoading: Signal<boolean>;
  /** Asks again; what is there stays until the answer. */
  again: () => void;
}

/** Asks when the page is shown, and again when what it depends on has changed. */
export function useLoaded<T>(ask: (signal: AbortSignal) => Promise<T>, on: readonly unknown[]): Loaded<T> {
  const data = useSignal<T | undefined>(undefined);
  const error = useSignal("");
  const isGone = useSignal(false);
  const isLoading = useSignal(true);
  const times = useSignal(0);
  useEffect(() => {
    const stop = new AbortController();
    isLoading.value = true;
    ask(stop.signal)
      .then((answer) => {
        if (stop.signal.aborted) return;
        data.value = answer;
        error.value = "";
        isGone.value = false;
        isLoading.value = false;
      })
      .catch((failed: unknown) => {
        if (stop.signal.aborted) return;
        error.value = explain(failed);
        isGone.value = failed instanceof Refused && failed.status === 404;
        isLoading.value = false;
      });
    return () => stop.abort();
  }, [...on, times.value]);
  const again = useCallback(() => void (times.value += 1), []);
  return { data, error, isGone, isLoading, again };
}
