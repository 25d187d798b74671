// Chooses records by their names, of as many as there are: the service is asked while somebody types. It behaves as the
// ARIA Authoring Practices say of a combobox with a list.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { get, whole } from "../core/client";
import { explain } from "../core/reasons";
import type { Named, Source } from "../core/shapes";
import { say } from "../core/text";
import { words } from "../core/words";
import { Icon } from "./icons";

/** How long somebody has stopped typing before the service is asked. */
const TYPING_PAUSE_MS = 200;
const OFFERED_MAX = 30;

export interface PickerProps {
  id: string;
  source: Source;
  isMany: boolean;
  value: Named[];
  change: (value: Named[]) => void;
  label: string;
  described?: string | undefined;
  isWrong?: boolean;
  /** What it means when none is chosen. */
  none?: string;
}

export function Picker({ id, source, isMany, value, change, label, described, isWrong, none }: PickerProps) {
  const text = useSignal<string | null>(null);
  const offered = useSignal<Named[]>([]);
  const isOpen = useSignal(false);
  const at = useSignal(-1);
  const note = useSignal("");
  const field = useRef<HTMLInputElement>(null);

  useEffect(() => {
    if (!isOpen.value) return;
    const stop = new AbortController();
    const ask = () =>
      get<Named[]>(source.path, { ...source.query, search: text.value ?? "", perPage: OFFERED_MAX }, stop.signal)
        .then((found) => {
          offered.value = found;
          at.value = text.value && found.length ? 0 : -1;
          note.value = found.length ? "" : say(words.noOptions);
        })
        .catch((failed: unknown) => {
          if (!stop.signal.aborted) note.value = explain(failed);
        });
    const timer = setTimeout(ask, text.value ? TYPING_PAUSE_MS : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [isOpen.value, text.value, source.path]);

  const isChosen = (it: Named) => value.some((chosen) => chosen.id === it.id);
  const close = () => {
    isOpen.value = false;
    text.value = null;
    at.value = -1;
  };
  /** A click closes the list, because it covers what is pointed at next; after a key it stays open for another choice. */
  const choose = (it: Named, isPointed = false) => {
    const one = { id: it.id, name: it.name };
    if (!isMany) change([one]);
    else change(isChosen(it) ? value.filter((chosen) => chosen.id !== it.id) : [...value, one]);
    if (isMany && !isPointed) text.value = null;
    else close();
  };
  const pressed = (event: KeyboardEvent) => {
    const last = offered.value.length - 1;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen.value) isOpen.value = true;
      else if (event.key === "ArrowDown") at.value = at.value >= last ? 0 : at.value + 1;
      else at.value = at.value <= 0 ? last : at.value - 1;
    } else if (event.key === "Enter" && isOpen.value) {
      event.preventDefault();
      const it = offered.value[at.value];
      if (it) choose(it);
    } else if (event.key === "Escape" && isOpen.value) {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (event.key === "Backspace" && isMany && !text.value && value.length) {
      change(value.slice(0, -1));
    }
  };
  useEffect(() => {
    document.getElementById(`${id}-${at.value}`)?.scrollIntoView({ block: "nearest" });
  }, [at.value]);

  // Of some records only the id is known: their names are in the list.
  const names = useSignal(new Map<number, string>());
  const isNameless = value.some((it) => !it.name);
  useEffect(() => {
    if (!isNameless) return;
    void whole<Named>(source.path, source.query).then((all) => (names.value = new Map(all.map((it) => [it.id, it.name]))));
  }, [isNameless]);
  const nameOf = (it: Named) => it.name || names.value.get(it.id) || `#${it.id}`;

  const single = isMany ? "" : (value[0] ? nameOf(value[0]) : "");
  return (
    <div class="picker">
      {isMany && value.length > 0 && (
        <ul class="chips">
          {value.map((it) => (
            <li key={it.id} class="chip">
              <bdi>{nameOf(it)}</bdi>
              <button type="button" class="bare" aria-label={`${say(words.remove)}: ${nameOf(it)}`} onClick={() => change(value.filter(({ id }) => id !== it.id))}>
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="row tight">
        <input
          ref={field}
          id={id}
          type="text"
          dir="auto"
          role="combobox"
          autoComplete="off"
          aria-expanded={isOpen.value}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={at.value >= 0 && isOpen.value ? `${id}-${at.value}` : undefined}
          aria-describedby={described}
          aria-invalid={isWrong ? true : undefined}
          placeholder={none ?? say(words.chooseMany)}
          value={text.value ?? single}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            // What was found for the letters before is not what is asked for now.
            at.value = -1;
            isOpen.value = true;
          }}
          onClick={() => (isOpen.value = true)}
          onKeyDown={pressed}
          onBlur={close}
        />
        {!isMany && value.length > 0 && (
          <button type="button" class="button" aria-label={`${say(words.remove)}: ${single}`} onClick={() => change([])}>
            <Icon name="close" />
          </button>
        )}
      </div>
      <div class={`offer ${isOpen.value ? "" : "shut"}`}>
        <ul id={`${id}-list`} role="listbox" aria-label={label} aria-multiselectable={isMany ? true : undefined}>
          {isOpen.value &&
            offered.value.map((it, index) => (
              <li
                key={it.id}
                id={`${id}-${index}`}
                role="option"
                aria-selected={isChosen(it)}
                class={index === at.value ? "at" : ""}
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => choose(it, true)}
              >
                <span dir="auto">{it.name}</span>
                {isChosen(it) && <Icon name="check" />}
              </li>
            ))}
        </ul>
        {isOpen.value && note.value && <p class="soft">{note.value}</p>}
      </div>
    </div>
  );
}
