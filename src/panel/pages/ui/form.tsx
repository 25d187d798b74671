// A form: keeps what is typed until it is saved, says at each field what the service refuses of it, and sends what has
// changed.

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
  /** Names the draft: two forms of one name are one. */
  name: string;
  fields: readonly Field[];
  /** The record that is changed; none makes a new one. */
  record?: Values | undefined;
  submit: (body: Values, values: Values) => Promise<unknown>;
  label: string;
  cancel?: (() => void) | undefined;
  /** What stands beside the fields, of their values as they are typed. */
  beside?: (values: Values) => ComponentChildren;
  danger?: ComponentChildren;
  /** Whether it is not to be changed. */
  isReadOnly?: boolean;
  /** Whether everything is sent, not only what has changed. */
  isWhole?: boolean;
  /** Whether somebody has come to fill it in, and types next. */
  takesFocus?: boolean;
}

/** Kinds of fields that no draft holds: who comes next would find them filled in. */
const NEVER_KEPT: readonly Field["kind"][] = ["password", "new-password", "code"];

export function Form(props: FormProps) {
  const { name, fields, record } = props;
  const id = useId();
  const isNew = !record;
  const initial = useMemo(
    () => Object.fromEntries(fields.map((field) => [field.name, record ? toValue(field, record) : initialOf(field)])),
    [record],
  );
  const newest = useRef(initial);
  newest.current = initial;
  const kept = useMemo(() => draft(name), [name]);
  const values = useSignal<Values>({ ...initial, ...kept });
  /** Fields that somebody has typed in and not saved; all others follow the record. */
  const typed = useRef(new Set(Object.keys(kept ?? {})));
  const isRestored = useSignal(Boolean(kept));
  const errors = useSignal<Record<string, string>>({});
  const failure = useSignal("");
  const isBusy = useSignal(false);

  const asked = fields.filter((field) => {
    if (field.only && field.only !== (isNew ? "new" : "old")) return false;
    return !field.when || field.when(values.value);
  });
  const change = (field: Field, value: unknown) => {
    values.value = { ...values.value, [field.name]: value };
    if (errors.value[field.name]) errors.value = { ...errors.value, [field.name]: "" };
    if (JSON.stringify(value) === JSON.stringify(initial[field.name])) typed.current.delete(field.name);
    else typed.current.add(field.name);
    keep();
  };
  const ofTyped = () => Object.fromEntries(Object.entries(values.value).filter(([at]) => typed.current.has(at)));
  /** Of what is not typed over, a draft would undo what others change meanwhile. */
  const keep = () => {
    const secret = fields.filter(({ kind }) => NEVER_KEPT.includes(kind)).map((it) => it.name);
    const kept = Object.entries(ofTyped()).filter(([at]) => !secret.includes(at));
    if (kept.length) keepDraft(name, Object.fromEntries(kept));
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
  const place = (at: string) => document.getElementById(`${id}-${at}`);

  useEffect(() => {
    // On a phone the keyboard would cover the form before it is read.
    if (props.takesFocus && !matchMedia("(pointer: coarse)").matches) place(asked[0]?.name ?? "")?.focus();
  }, []);

  const refused = (failed: unknown) => {
    const found: Record<string, string> = {};
    const elsewhere: string[] = [];
    for (const { field, reason: phrase } of failed instanceof Refused ? failed.fields : []) {
      const owner = asked.find((it) => field === it.name || field.startsWith(`${it.name}.`) || field.startsWith(`${it.name}[`));
      if (!owner) elsewhere.push(`${field} ${phrase}`);
      else found[owner.name] ??= reason(phrase);
    }
    errors.value = found;
    failure.value = [explain(failed), ...elsewhere].join(" ");
    const first = asked.find((field) => found[field.name]);
    // Once the errors are on the page, and are read out with it.
    if (first) requestAnimationFrame(() => place(first.name)?.focus());
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    failure.value = "";
    errors.value = {};
    const body: Values = {};
    for (const field of asked) {
      const [next, before] = [toBody(field, values.value[field.name]), toBody(field, initial[field.name])];
      const isSame = JSON.stringify(next) === JSON.stringify(before);
      const isNothing = isNew && (next === null || (Array.isArray(next) && !next.length));
      if (field.isFixed && !isNew) continue;
      if (props.isWhole ? true : isNew ? !isNothing : !isSame) body[field.name] = next;
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
      // What was typed since it was sent is not saved yet, and stays.
      const later = isNew ? [] : Object.keys(sent).filter((at) => values.value[at] !== sent[at]);
      typed.current = new Set(later);
      keep();
      // Where the record was read anew on the way, its own spelling of what was saved.
      if (newest.current !== initial) values.value = { ...newest.current, ...ofTyped() };
    } catch (failed) {
      refused(failed);
    } finally {
      isBusy.value = false;
    }
  };

  // The record was read anew: what was not typed over follows.
  useEffect(() => {
    values.value = { ...initial, ...ofTyped() };
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
          {asked.map((field) => (
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
