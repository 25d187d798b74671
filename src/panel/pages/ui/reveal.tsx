// What is shown once, and never again: keys, secrets, codes, links.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { say } from "../core/text";
import { Dialog } from "./dialog";
import { Button, Copyable } from "./parts";

interface Once {
  title: string;
  text: ComponentChildren;
  items: { label: string; value: string; isLong?: boolean }[];
  then?: () => void;
}

const shown = signal<Once | null>(null);

export function reveal(what: Once): void {
  shown.value = what;
}

/** Where it is shown. It goes when somebody says that they have it, not by a key pressed too often. */
export function Revealed() {
  const what = shown.value;
  if (!what) return null;
  const close = () => {
    shown.value = null;
    what.then?.();
  };
  return (
    <Dialog title={what.title} onClose={close} isFirm>
      <div class="words">{what.text}</div>
      {what.items.map((item) => (
        <Copyable key={item.label} {...item} />
      ))}
      <div class="row end">
        <Button kind="primary" onClick={close}>
          {say(["I have stored it", "Já guardei", "Ya lo guardé"])}
        </Button>
      </div>
    </Dialog>
  );
}
