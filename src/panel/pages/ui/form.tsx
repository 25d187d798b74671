// A form. Input is kept as a draft until it is saved, only changed fields are sent, and the errors of a refused request
// are shown at their fields.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";

import { Refused } from "../core/client";
import { draft, dropDraft, keepDraft, type Values } from "../core/drafts";
import { notify } from "../core/notices";
import { explain, reason } from "../core/reasons";
import { say } from "../core/text";
import { words } from "../core/words";
import { FieldRow, initialOf, toBody, toValue, type Field } from "./fields";
import { Button, Note, Trouble } from "./parts";

export interface FormProps {
  /** The name of the draft; forms with the same name share it. */
  name: string;
  fields: readonly Field[];
  /** The record to change; without one, the form creates a record. */
  record?: Values | undefined;
  submit: (body: Values, values: Values) => Promise<unknown>;
  label: string;
  cancel?: (() => void) | undefined;
  /** Content beside the fields, rendered from their current values. */
  beside?: (values: Values) => ComponentChildren;
  danger?: ComponentChildren;
  /** Whether the fields are disabled, and there is no submit button. */
  isReadOnly?: boolean;
  /** Whether all fields are sent, not only changed ones. */
  isWhole?: boolean;
  /** Whether the first field gets the focus: for pages that were opened to fill in the form. */
  takesFocus?: boolean;
}

/** Fields of these kinds are not in drafts: the next person at this browser would find them filled in. */
const NOT_IN_DRAFTS: readonly Field["kind"][] = ["password", "new-password", "code"];

export function Form(props: FormProps) {
  const { name, fields, record } = props;
  const id = useId();
  const isNew = !record;
  const initial = useMemo(
    () => Object.fromEntries(fields.map((field) => [field.name, record ? toValue(field, record) : initialOf(field)])),
    [record],
  );
  const newestInitial = useRef(initial);
  newestInitial.current = initial;
  const restored = useMemo(() => draft(name), [name]);
  const values = useSignal<Values>({ ...initial, ...restored });
  /** Names of the fields with unsaved input; all others follow the record. */
  const typed = useRef(new Set(Object.keys(restored ?? {})));
  const isRestored = useSignal(Boolean(restored));
  const errors = useSignal<Record<string, string>>({});
  const failure = useSignal("");
  const isBusy = useSignal(false);

  const shownFields = fields.filter((field) => {
    if (field.only && field.only !== (isNew ? "new" : "old")) return false;
    return !field.when || field.when(values.value);
  });
  const change = (field: Field, value: unknown) => {
    values.value = { ...values.value, [field.name]: value };
    if (errors.value[field.name]) errors.value = { ...errors.value, [field.name]: "" };
    if (JSON.stringify(value) === JSON.stringify(initial[field.name])) typed.current.delete(field.name);
    else typed.current.add(field.name);
    saveDraft();
  };
  const typedValues = () => Object.fromEntries(Object.entries(values.value).filter(([field]) => typed.current.has(field)));
  /** Keeps only unsaved input: other values in a draft would undo changes that others make meanwhile. */
  const saveDraft = () => {
    const secrets = fields.filter(({ kind }) => NOT_IN_DRAFTS.includes(kind)).map((field) => field.name);
    const entries = Object.entries(typedValues()).filter(([field]) => !secrets.includes(field));
    if (entries.length) keepDraft(name, Object.fromEntries(entries));
    else dropDraft(name);
  };
  const discard = () => {
    dropDraft(name);
    typed.current.clear();
    values.value = initial;
    isRestored.value = false;
    errors.value = {};
    failure.value = "";
  };
  const findInput = (field: string) => document.getElementById(`${id}-${field}`);

  useEffect(() => {
    // Not on a phone: its keyboard would cover the form before it is read.
    if (props.takesFocus && !matchMedia("(pointer: coarse)").matches) findInput(shownFields[0]?.name ?? "")?.focus();
  }, []);

  const showErrors = (error: unknown) => {
    const fieldErrors: Record<string, string> = {};
    const otherErrors: string[] = [];
    for (const { field, reason: phrase } of error instanceof Refused ? error.fields : []) {
      // The error may name a part of a field, such as `address.city` or `tags[1]`.
      const owner = shownFields.find((shown) => field === shown.name || field.startsWith(`${shown.name}.`) || field.startsWith(`${shown.name}[`));
      if (!owner) otherErrors.push(`${field} ${phrase}`);
      else fieldErrors[owner.name] ??= reason(phrase);
    }
    errors.value = fieldErrors;
    failure.value = [explain(error), ...otherErrors].join(" ");
    const first = shownFields.find((field) => fieldErrors[field.name]);
    // In the next frame the error is on the page, so a screen reader reads it with its field.
    if (first) requestAnimationFrame(() => findInput(first.name)?.focus());
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    failure.value = "";
    errors.value = {};
    const body: Values = {};
    for (const field of shownFields) {
      const [next, before] = [toBody(field, values.value[field.name]), toBody(field, initial[field.name])];
      const isSame = JSON.stringify(next) === JSON.stringify(before);
      const isEmpty = next === null || (Array.isArray(next) && !next.length);
      if (field.isFixed && !isNew) continue;
      if (props.isWhole || (isNew ? !isEmpty : !isSame)) body[field.name] = next;
    }
    if (!isNew && !props.isWhole && !Object.keys(body).length) {
      discard();
      isBusy.value = false;
      return notify(say(words.nothingChanged));
    }
    const sent = values.value;
    try {
      await props.submit(body, sent);
      isRestored.value = false;
      // Input during the request is not saved yet.
      const unsaved = isNew ? [] : Object.keys(sent).filter((field) => values.value[field] !== sent[field]);
      typed.current = new Set(unsaved);
      saveDraft();
      // If the record was reloaded meanwhile, show the saved values as the service has normalized them.
      if (newestInitial.current !== initial) values.value = { ...newestInitial.current, ...typedValues() };
    } catch (error) {
      showErrors(error);
    } finally {
      isBusy.value = false;
    }
  };

  // The record was reloaded: fields without unsaved input follow.
  useEffect(() => {
    values.value = { ...initial, ...typedValues() };
  }, [initial]);

  return (
    <form class={`form ${props.beside ? "two" : ""}`} onSubmit={submit} noValidate aria-busy={isBusy.value}>
      <div class="fields">
        {isRestored.value && (
          <Note>
            {say(words.draftKept)} <Button onClick={discard}>{say(words.discard)}</Button>
          </Note>
        )}
        <fieldset class="bare" disabled={Boolean(props.isReadOnly)}>
          {shownFields.map((field) => (
            <FieldRow
              key={field.name}
              id={`${id}-${field.name}`}
              field={field}
              value={values.value[field.name]}
              error={errors.value[field.name] ?? ""}
              isNew={isNew}
              change={(value) => change(field, value)}
            />
          ))}
        </fieldset>
        {failure.value && <Trouble text={failure.value} />}
        {(!props.isReadOnly || props.danger) && (
          <div class="row">
            {!props.isReadOnly && (
              <Button submit kind="primary">
                {isBusy.value ? say(words.working) : props.label}
              </Button>
            )}
            {props.cancel && !props.isReadOnly && (
              <Button
                onClick={() => {
                  discard();
                  props.cancel?.();
                }}
              >
                {say(words.cancel)}
              </Button>
            )}
            {props.danger && <span class="push">{props.danger}</span>}
          </div>
        )}
      </div>
      {props.beside && <div class="beside">{props.beside(values.value)}</div>}
    </form>
  );
}
