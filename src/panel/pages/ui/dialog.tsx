// Questions that come before anything else. The browser's own dialog keeps the focus in.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

import { notify } from "../core/notices";
import { explain } from "../core/reasons";
import { say } from "../core/text";
import { words } from "../core/words";
import { Button, Trouble } from "./parts";

export function Dialog(props: {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
  /** Whether it stays until it is answered. */
  isFirm?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const title = useId();
  // Before what is in it takes the focus, which nothing can take that is not shown.
  useLayoutEffect(() => {
    const from = document.activeElement;
    element.current?.showModal();
    return () => {
      // While it is there, nothing below it takes the focus.
      requestAnimationFrame(() => {
        if (from instanceof HTMLElement && from.isConnected) from.focus();
      });
    };
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    if (!props.isFirm) props.onClose();
  };
  // The browser closes a dialog whose closing was refused twice: it is opened again.
  const closed = () => {
    if (!element.current?.isConnected) return;
    if (props.isFirm) element.current.showModal();
    else props.onClose();
  };
  return (
    <dialog ref={element} aria-labelledby={title} onCancel={cancel} onClose={closed}>
      <h2 id={title} dir="auto">
        {props.title}
      </h2>
      {props.children}
    </dialog>
  );
}

interface Question {
  title: string;
  text: ComponentChildren;
  yes: string;
  /** What is done; the question stays when it fails, and says why. */
  act: () => Promise<void>;
  isDangerous: boolean;
}

const question = signal<Question | null>(null);
const failure = signal("");

/** Asks, and then acts. */
export function confirm(asked: Omit<Question, "isDangerous"> & { isDangerous?: boolean }): void {
  failure.value = "";
  question.value = { isDangerous: true, ...asked };
}

/** Where questions are shown. */
export function Questions() {
  const asked = question.value;
  if (!asked) return null;
  // By the time something is done, another question may stand in its place.
  const close = () => {
    if (question.value === asked) question.value = null;
  };
  const act = async () => {
    failure.value = "";
    try {
      await asked.act();
      close();
    } catch (failed) {
      if (question.value === asked) failure.value = explain(failed);
      else notify(explain(failed), true);
    }
  };
  return (
    <Dialog title={asked.title} onClose={close}>
      <div class="words">{asked.text}</div>
      {failure.value && <Trouble text={failure.value} />}
      <div class="row end">
        <Button onClick={close}>{say(words.cancel)}</Button>
        <Button kind={asked.isDangerous ? "danger" : "primary"} onClick={act}>
          {asked.yes}
        </Button>
      </div>
    </Dialog>
  );
}
