// The small pieces that every page is made of.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Loaded } from "../core/loaded";
import { dismiss, notices, notify } from "../core/notices";
import { explain } from "../core/reasons";
import { href, type Scope } from "../core/router";
import { say } from "../core/text";
import { words } from "../core/words";
import { Icon, type IconName } from "./icons";

/** A page: its name, what can be done with it, and what it holds. */
export function Page(props: {
  title: string;
  lead?: ComponentChildren;
  back?: { to: string; text: string };
  actions?: ComponentChildren;
  children?: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${props.title} · ${say(words.product)}`;
  }, [props.title]);
  // A screen reader reads the heading that has the focus; a field that takes the focus itself keeps it.
  useEffect(() => {
    if (!document.querySelector("main :focus, dialog[open]")) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="page">
      {props.back && (
        <a class="back" href={href(props.back.to)}>
          <Icon name="back" />
          <bdi>{props.back.text}</bdi>
        </a>
      )}
      <div class="top">
        <h1 tabIndex={-1} ref={heading} dir="auto">
          {props.title}
        </h1>
        {props.actions && <div class="row">{props.actions}</div>}
      </div>
      {props.lead && <p class="lead">{props.lead}</p>}
      {props.children}
    </div>
  );
}

export function Button(props: {
  children: ComponentChildren;
  onClick?: () => unknown;
  kind?: "primary" | "danger" | "plain";
  submit?: boolean;
  icon?: IconName;
  label?: string;
  isDisabled?: boolean;
  /** Why it is disabled, for example. */
  title?: string | undefined;
  form?: string;
}) {
  const isBusy = useSignal(false);
  const press = async () => {
    if (!props.onClick || isBusy.value) return;
    isBusy.value = true;
    try {
      await props.onClick();
    } catch (failed) {
      notify(explain(failed), true);
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <button
      type={props.submit ? "submit" : "button"}
      class={`button ${props.kind ?? ""}`}
      onClick={press}
      aria-busy={isBusy.value}
      aria-label={props.label}
      disabled={props.isDisabled}
      title={props.title}
      form={props.form}
    >
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </button>
  );
}

/** Goes to a page of the panel, and looks like a button. */
export function LinkButton(props: { to: string; children: ComponentChildren; kind?: "primary"; icon?: IconName; scope?: Scope }) {
  return (
    <a class={`button ${props.kind ?? ""}`} href={props.scope === undefined ? href(props.to) : href(props.to, props.scope)}>
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </a>
  );
}

/** A page that leads back, for what its address names and could not be read. */
function Missing({ what, title, back }: { what: Loaded<unknown>; title: string; back: { to: string; text: string } }) {
  return (
    <Page title={what.isGone.value ? what.error.value : title} back={back}>
      {!what.isGone.value && <Trouble text={what.error.value} again={what.again} />}
    </Page>
  );
}

/**
 * Shows what was asked for, once it is there; while it is not, what is the matter. Where the page itself depends on it, `missing` is the name
 * and the way back of the one that stands there instead.
 */
export function Await<T>(props: {
  what: Loaded<T>;
  missing?: { title: string; back: { to: string; text: string } };
  children: (data: T) => ComponentChildren;
}) {
  const { data, error, isGone, again } = props.what;
  if (data.value === undefined) {
    if (!error.value) return <Waiting />;
    if (props.missing) return <Missing what={props.what} {...props.missing} />;
    return <Trouble text={error.value} {...(isGone.value ? {} : { again })} />;
  }
  return (
    <>
      {error.value && <Trouble text={error.value} again={again} />}
      {props.children(data.value)}
    </>
  );
}

export function Waiting() {
  return (
    <p class="waiting" role="status">
      {say(words.loading)}
    </p>
  );
}

export function Trouble({ text, again }: { text: string; again?: () => void }) {
  return (
    <div class="note error" role="alert">
      <Icon name="alert" />
      <span dir="auto">{text}</span>
      {again && <Button onClick={again}>{say(words.retry)}</Button>}
    </div>
  );
}

export function Note(props: { children: ComponentChildren; kind?: "warning" | "good" }) {
  return (
    <div class={`note ${props.kind ?? ""}`}>
      <span>{props.children}</span>
    </div>
  );
}

export function Badge(props: { children: ComponentChildren; kind?: "good" | "bad" | "off" }) {
  return <span class={`badge ${props.kind ?? ""}`}>{props.children}</span>;
}

/** A colour, and its name for those who do not see it. */
export function Swatch({ color }: { color: string }) {
  return (
    <span class="swatch">
      <span class="spot" style={{ background: color }} aria-hidden="true" />
      {color}
    </span>
  );
}

/** Something to be carried elsewhere, with a button that copies it. */
export function Copyable({ label, value, isLong = false }: { label: string; value: string; isLong?: boolean }) {
  const text = useRef<HTMLElement>(null);
  const copy = async () => {
    // Browsers lend their clipboard to secure contexts alone; elsewhere the text is selected, to be copied by hand.
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(value);
      notify(say(words.copied));
    } else if (text.current) {
      getSelection()?.selectAllChildren(text.current);
      notify(say(words.copyByHand));
    }
  };
  return (
    <div class="copyable">
      <span class="label">{label}</span>
      <div class="row">
        <code ref={text} class={isLong ? "long" : ""} tabIndex={0} role="group" aria-label={label}>
          {value}
        </code>
        <Button onClick={copy} label={`${say(words.copy)}: ${label}`}>
          {say(words.copy)}
        </Button>
      </div>
    </div>
  );
}

/** What is said in passing. */
export function Notices() {
  return (
    <div class="notices">
      <div role="status">
        {notices.value.filter((it) => !it.isError).map((it) => <NoticeLine key={it.id} {...it} />)}
      </div>
      <div role="alert">
        {notices.value.filter((it) => it.isError).map((it) => <NoticeLine key={it.id} {...it} />)}
      </div>
    </div>
  );
}

function NoticeLine({ id, text, isError }: { id: number; text: string; isError: boolean }) {
  return (
    <div class={`notice ${isError ? "error" : ""}`}>
      <Icon name={isError ? "alert" : "check"} />
      <span dir="auto">{text}</span>
      <button type="button" class="bare" aria-label={say(words.close)} onClick={() => dismiss(id)}>
        <Icon name="close" />
      </button>
    </div>
  );
}
