// What is shown once, and never again: keys, secrets, codes, links.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { say } from "../core/text";
import { Dialog } from "./dialog";
import { Button, Copyable, Note } from "./parts";

interface Once {
  title: string;
  text: ComponentChildren;
  /** `null`: it was shown before, in an answer that was lost on its way. */
  items: { label: string; value: string | null; isLong?: boolean }[];
  then?: () => void;
}

const lost = [
  "It was created, but the response was lost and it can't be shown again. Create another one.",
  "Foi criado, mas a resposta se perdeu e não pode ser mostrado de novo. Crie outro.",
  "Se creó, pero la respuesta se perdió y no se puede volver a mostrar. Cree otro.",
] as const;

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
      {what.items.map(({ value, ...item }) => value !== null && <Copyable key={item.label} value={value} {...item} />)}
      {what.items.some(({ value }) => value === null) && <Note kind="warning">{say(lost)}</Note>}
      <div class="row end">
        <Button kind="primary" onClick={close}>
          {say(["Done", "Pronto", "Listo"])}
        </Button>
      </div>
    </Dialog>
  );
}
