// What forms are made of: a field is described by data, shown here, and read into what the service takes.

import type { ComponentChildren } from "preact";

import type { Values } from "../core/drafts";
import type { Named, Permissions, Source } from "../core/shapes";
import { count, say, type Text } from "../core/text";
import { words } from "../core/words";
import { Matrix } from "./matrix";
import { Picker } from "./picker";

export type Option = readonly [value: string, label: Text];

interface Common<Name extends string> {
  name: Name;
  label: Text;
  hint?: Text;
  isRequired?: boolean;
  /** Asked for only when the record is made, or only afterwards. */
  only?: "new" | "old";
  /** Shown once the record is there, and not changed any more. */
  isFixed?: boolean;
  /** Whether the other values ask for it. */
  when?: (values: Values) => boolean;
  /** What it starts with in a new record. */
  initial?: unknown;
  /** Where it is in the record, should it not be under its own name. */
  from?: (record: Values) => unknown;
  /** What is sent for it, should it not be what its kind says. */
  to?: (value: unknown) => unknown;
  example?: string;
}

type Kind =
  | { kind: "line" | "text" | "email" | "url" | "number" | "color" | "password" | "new-password" | "code" | "moment" | "check" | "lines" | "matrix" }
  | { kind: "choice"; options: readonly Option[]; /** What it means when none is chosen, where that may be. */ none?: Text }
  | { kind: "checks"; options: readonly Option[] }
  | { kind: "one" | "many"; of: Source };

export type Field<Name extends string = string> = Common<Name> & Kind;

/** What a form shows of a record. */
export const toValue = (field: Field, record: Values): unknown => shown(field, field.from ? field.from(record) : record[field.name]);

/** What it shows where there is none yet. */
export const initialOf = (field: Field): unknown => shown(field, field.initial);

function shown(field: Field, value: unknown): unknown {
  switch (field.kind) {
    case "check":
      return value ?? false;
    case "one":
      return value ?? null;
    case "many":
    case "checks":
      return value ?? [];
    case "matrix":
      return value ?? {};
    case "lines":
      return Array.isArray(value) ? value.join("\n") : "";
    case "moment":
      return typeof value === "string" ? toLocal(value) : "";
    case "number":
      return value === null || value === undefined || value === "" ? "" : count(Number(value), { useGrouping: false, maximumFractionDigits: 4 });
    default:
      return value === null || value === undefined ? "" : String(value);
  }
}

/** The same as the service takes it. */
export const toBody = (field: Field, value: unknown): unknown => (field.to ? field.to(taken(field, value)) : taken(field, value));

function taken(field: Field, value: unknown): unknown {
  switch (field.kind) {
    case "check":
    case "checks":
    case "matrix":
      return value;
    case "one":
      return (value as Named | null)?.id ?? null;
    case "many":
      return (value as Named[]).map(({ id }) => id);
    case "lines":
      return String(value).split("\n").map((line) => line.trim()).filter(Boolean);
    case "number":
      return toNumber(String(value));
    case "moment":
      return toMoment(String(value));
    case "password":
    case "new-password":
      return value === "" ? null : value;
    default:
      return String(value).trim() === "" ? null : value;
  }
}

/** With a point or a comma; what is no number is left for the service to refuse. */
function toNumber(text: string): number | string | null {
  const plain = text.trim().replace(",", ".");
  if (plain === "") return null;
  return Number.isFinite(Number(plain)) ? Number(plain) : text;
}

/** What a browser's own field of a moment holds, as the service takes it. */
export function toMoment(value: string): string | null {
  return value ? new Date(value).toISOString() : null;
}

/** A moment as a browser's own field takes it; what is none is none there. */
export function toLocal(value: string): string {
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export interface Shown {
  id: string;
  field: Field;
  value: unknown;
  error: string;
  isNew: boolean;
  change: (value: unknown) => void;
}

/** One field with its label, its hint and what is wrong with it. */
export function FieldRow(props: Shown) {
  const { id, field, error } = props;
  const described = [field.hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ") || undefined;
  const isGroup = field.kind === "checks" || field.kind === "matrix";
  const label = (
    <>
      {say(field.label)}
      {field.isRequired && <span class="soft"> ({say(words.required)})</span>}
    </>
  );
  const below = (
    <>
      {field.hint && (
        <p class="hint" id={`${id}-hint`}>
          {say(field.hint)}
        </p>
      )}
      {error && (
        <p class="wrong" id={`${id}-error`}>
          {error}
        </p>
      )}
    </>
  );
  if (field.kind === "check") {
    return (
      <div class="field">
        <label class="check">
          <Input {...props} described={described} />
          <span>{label}</span>
        </label>
        {below}
      </div>
    );
  }
  if (isGroup) {
    return (
      <fieldset class="field" aria-describedby={described}>
        <legend>{label}</legend>
        {below}
        <Input {...props} described={described} />
      </fieldset>
    );
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <Input {...props} described={described} />
      {below}
    </div>
  );
}

/** What browsers may fill in. */
const AUTOCOMPLETE: Partial<Record<Kind["kind"], string>> = {
  password: "current-password",
  "new-password": "new-password",
  code: "one-time-code",
};

const TYPES: Partial<Record<Kind["kind"], "email" | "url" | "password" | "datetime-local">> = {
  email: "email",
  url: "url",
  password: "password",
  "new-password": "password",
  moment: "datetime-local",
};

function Input({ id, field, value, error, isNew, change, described }: Shown & { described: string | undefined }): ComponentChildren {
  const common = {
    id,
    "aria-describedby": described,
    "aria-invalid": error ? true : undefined,
    "aria-required": field.isRequired ? true : undefined,
    readOnly: Boolean(field.isFixed) && !isNew,
    spellcheck: field.kind === "text",
  };
  const typed = (event: { currentTarget: { value: string } }) => change(event.currentTarget.value);
  switch (field.kind) {
    case "text":
      return <textarea {...common} dir="auto" rows={4} value={String(value)} placeholder={field.example} onInput={typed} />;
    case "lines":
      return <textarea {...common} dir="auto" rows={4} value={String(value)} placeholder={field.example} onInput={typed} />;
    case "check":
      return (
        <input
          id={id}
          type="checkbox"
          aria-describedby={described}
          checked={Boolean(value)}
          onChange={(event) => change(event.currentTarget.checked)}
        />
      );
    case "choice": {
      const { options } = field;
      return (
        <select id={id} aria-describedby={described} aria-invalid={common["aria-invalid"]} value={String(value)} disabled={common.readOnly} onChange={typed}>
          {(field.none || !options.some(([known]) => known === value)) && <option value="">{say(field.none ?? words.chooseMany)}</option>}
          {options.map(([known, label]) => (
            <option key={known} value={known}>
              {say(label)}
            </option>
          ))}
        </select>
      );
    }
    case "checks":
      return <Checks id={id} options={field.options} value={value as string[]} change={change} />;
    case "one":
    case "many":
      return (
        <Picker
          id={id}
          source={field.of}
          isMany={field.kind === "many"}
          value={field.kind === "many" ? (value as Named[]) : value ? [value as Named] : []}
          change={(chosen) => change(field.kind === "many" ? chosen : (chosen[0] ?? null))}
          described={described}
          isWrong={Boolean(error)}
          label={say(field.label)}
        />
      );
    case "matrix":
      return <Matrix id={id} value={value as Permissions} change={change} />;
    case "color":
      return <Color {...common} value={String(value)} change={change} label={say(field.label)} placeholder={field.example} />;
    default: {
      return (
        <input
          {...common}
          dir={field.kind === "line" ? "auto" : undefined}
          type={(TYPES[field.kind] ?? "text") as "text"}
          inputMode={field.kind === "number" ? "decimal" : field.kind === "code" ? "numeric" : undefined}
          autoComplete={AUTOCOMPLETE[field.kind] ?? "off"}
          autoCapitalize={field.kind === "line" ? "sentences" : "none"}
          placeholder={field.example}
          value={String(value)}
          onInput={typed}
        />
      );
    }
  }
}

const COLOR = /^#[0-9a-f]{6}$/i;

/** The words of a colour, and the browser's own way to choose one. */
function Color({ label, change, value, ...common }: { id: string; label: string; value: string; change: (value: string) => void; placeholder: string | undefined }) {
  const typed = (event: { currentTarget: { value: string } }) => change(event.currentTarget.value);
  return (
    <div class="row color">
      <input type="color" aria-label={label} value={COLOR.test(value) ? value : (common.placeholder ?? "#64748b")} onInput={typed} />
      <input {...common} type="text" value={value} onInput={typed} autoComplete="off" />
    </div>
  );
}

function Checks(props: { id: string; options: readonly Option[]; value: string[]; change: (value: string[]) => void }) {
  const { id, options, value, change } = props;
  const toggle = (name: string, isOn: boolean) =>
    change(options.map(([known]) => known).filter((known) => (known === name ? isOn : value.includes(known))));
  return (
    <div class="checks" id={id} tabIndex={-1}>
      {options.map(([name, label]) => (
        <label class="check" key={name}>
          <input type="checkbox" checked={value.includes(name)} onChange={(event) => toggle(name, event.currentTarget.checked)} />
          <span>{say(label)}</span>
        </label>
      ))}
    </div>
  );
}
