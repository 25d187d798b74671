// The list of any resource: search, filters, pages, and what to do first where there is nothing.

import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { get, page, type Page as Listed } from "../core/client";
import { useLoaded } from "../core/loaded";
import { ask, here, href } from "../core/router";
import { may } from "../core/session";
import type { Named } from "../core/shapes";
import { say, type Text } from "../core/text";
import { words } from "../core/words";
import { toLocal, toMoment } from "../ui/fields";
import { Icon } from "../ui/icons";
import { Await, Button, LinkButton, Page } from "../ui/parts";
import { Picker } from "../ui/picker";
import { Table, type Column } from "../ui/table";
import { mayWith, type Filter, type Resource } from "./types";

const PER_PAGE = 25;
const TYPING_PAUSE_MS = 250;

/** What was just made, until its list has shown it. */
export const fresh = signal<{ path: string; id: number | string } | null>(null);

export function ListPage({ of }: { of: Resource }) {
  const make = mayWith(of, "POST") && (
    <LinkButton to={`/${of.path}/new`} kind="primary" icon="plus">
      {say(of.words.make)}
    </LinkButton>
  );
  const columns: Column<{ id: number }>[] = of.columns.map((column, at) => ({
    label: say(column.label),
    ...(column.kind ? { kind: column.kind } : {}),
    show: (row) => (at === 0 ? <a href={href(`/${of.path}/${row.id}`)}>{column.show(row)}</a> : column.show(row)),
  }));
  const branches = of.branches?.filter(({ module }) => !module || may(module, "GET")) ?? [];
  if (branches.length) {
    columns.push({
      label: say(words.actions),
      kind: "actions",
      show: (row) => (
        <span class="row tight">
          {branches.map(({ label, to }) => (
            <a key={to(row)} href={href(to(row))} aria-label={`${say(label)}: ${of.nameOf(row)}`}>
              {say(label)}
            </a>
          ))}
        </span>
      ),
    });
  }
  return (
    <Page
      title={say(of.words.many)}
      lead={say(of.words.lead)}
      actions={
        <>
          {of.actions?.()}
          {make}
        </>
      }
    >
      <PagedList
        path={`/${of.path}`}
        query={of.query ?? {}}
        label={say(of.words.many)}
        columns={columns}
        filters={of.filters ?? []}
        isSearched={of.isSearched ?? true}
        isOrdered={of.isOrdered ?? false}
        empty={
          <>
            <p>{say(of.words.empty)}</p>
            {make}
          </>
        }
      />
    </Page>
  );
}

interface PagedListProps<Row extends { id: number | string }> {
  path: string;
  query: Record<string, string | number | boolean | null | undefined>;
  label: string;
  columns: Column<Row>[];
  filters: Filter[];
  isSearched: boolean;
  empty: ComponentChildren;
  /** Whether it is in an order of its own; otherwise the newest come first, unless somebody turns it round. */
  isOrdered?: boolean;
  /** Changes when the list is to be asked for again. */
  version?: number;
}

/** A list whose search, filters and page stand in the address. */
export function PagedList<Row extends { id: number | string }>(props: PagedListProps<Row>) {
  const { query } = here.value;
  const names = props.filters.map(({ name }) => name);
  const asked = Object.fromEntries(["search", ...names].map((name) => [name, query.get(name) ?? ""]));
  const order = props.isOrdered ? "" : query.get("order") === "asc" ? "asc" : "desc";
  const at = Math.max(1, Number(query.get("page")) || 1);
  const isFiltered = Object.values(asked).some(Boolean);
  const found = useLoaded<Listed<Row>>(
    (stop) => page<Row>(props.path, { ...props.query, ...asked, order, page: at, perPage: PER_PAGE }, stop),
    [props.path, JSON.stringify(asked), order, at, props.version],
  );
  // A new record is scrolled to and has the focus, because the next step usually concerns it.
  const made = fresh.value?.path === props.path ? fresh.value.id : null;
  useEffect(() => {
    if (made === null || !found.data.value) return;
    const link = document.querySelector<HTMLElement>("tr.fresh a");
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  }, [made, found.data.value]);
  useEffect(() => () => void (fresh.value = null), []);
  return (
    <>
      {(props.isSearched || props.filters.length > 0) && (
        <Filters filters={props.filters} isSearched={props.isSearched} asked={asked} order={order} />
      )}
      <Await what={found}>
        {({ data, meta }) => (
          <div aria-busy={found.isLoading.value}>
            {data.length > 0 ? (
              <Table label={props.label} columns={props.columns} rows={data} keyOf={(row) => row.id} fresh={made} />
            ) : at > 1 ? (
              <div class="empty" role="status">
                <p>{say(words.emptyPage)}</p>
                <Button onClick={() => ask({ page: "" })}>{say(words.firstPage)}</Button>
              </div>
            ) : isFiltered ? (
              <div class="empty" role="status">
                <p>{say(words.nothingFound)}</p>
                <Button onClick={() => ask({ page: "", search: "", ...Object.fromEntries(names.map((name) => [name, ""])) })}>
                  {say(words.clearFilters)}
                </Button>
              </div>
            ) : (
              <div class="empty">{props.empty}</div>
            )}
            {(at > 1 || meta.hasMore) && (
              <nav class="pages" aria-label={say(words.pages)}>
                <Button icon="back" isDisabled={at <= 1} onClick={() => ask({ page: at > 2 ? String(at - 1) : "" })}>
                  {say(words.previous)}
                </Button>
                <span aria-live="polite">{say(words.page, { page: at })}</span>
                <Button isDisabled={!meta.hasMore} onClick={() => ask({ page: String(at + 1) })}>
                  {say(words.next)}
                  <Icon name="forward" />
                </Button>
              </nav>
            )}
          </div>
        )}
      </Await>
    </>
  );
}

function Filters({ filters, isSearched, asked, order }: { filters: Filter[]; isSearched: boolean; asked: Record<string, string>; order: string }) {
  const text = useSignal(asked.search ?? "");
  useEffect(() => {
    text.value = asked.search ?? "";
  }, [asked.search]);
  useEffect(() => {
    if (text.value === asked.search) return;
    const timer = setTimeout(() => ask({ search: text.value, page: "" }), TYPING_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text.value]);
  return (
    <form class="filters" role="search" aria-label={say(words.filters)} onSubmit={(event) => event.preventDefault()}>
      {isSearched && (
        <div class="field search">
          <label for="search">{say(words.search)}</label>
          <input id="search" type="search" dir="auto" autoComplete="off" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
        </div>
      )}
      {filters.map((filter) => (
        <div class="field" key={filter.name}>
          <label for={`filter-${filter.name}`}>{say(filter.label)}</label>
          {filter.kind === "choice" ? (
            <select
              id={`filter-${filter.name}`}
              value={asked[filter.name]}
              onChange={(event) => ask({ [filter.name]: event.currentTarget.value, page: "" })}
            >
              <option value="">{say(filter.none ?? words.all)}</option>
              {filter.options.map(([value, label]) => (
                <option key={value} value={value}>
                  {say(label)}
                </option>
              ))}
            </select>
          ) : filter.kind === "moment" ? (
            <input
              id={`filter-${filter.name}`}
              type="datetime-local"
              value={asked[filter.name] ? toLocal(asked[filter.name] ?? "") : ""}
              onChange={(event) => ask({ [filter.name]: toMoment(event.currentTarget.value) ?? "", page: "" })}
            />
          ) : (
            <NamedFilter filter={filter} id={asked[filter.name] ?? ""} label={filter.label} />
          )}
        </div>
      ))}
      {order && (
        <div class="field">
          <label for="order">{say(words.order)}</label>
          <select id="order" value={order} onChange={(event) => ask({ order: event.currentTarget.value === "asc" ? "asc" : "", page: "" })}>
            <option value="desc">{say(words.newestFirst)}</option>
            <option value="asc">{say(words.oldestFirst)}</option>
          </select>
        </div>
      )}
    </form>
  );
}

/** A filter by a record: its name is asked for when the address has only its id. */
function NamedFilter({ filter, id, label }: { filter: Filter & { kind: "one" }; id: string; label: Text }) {
  const chosen = useSignal<Named | null>(null);
  useEffect(() => {
    if (!id) chosen.value = null;
    else if (String(chosen.value?.id) !== id) {
      get<Named>(`${filter.of.path}/${encodeURIComponent(id)}`).then(
        (found) => (chosen.value = found),
        // What is read in its list alone has its name from there.
        () => (chosen.value = { id: Number(id), name: Number(id) ? "" : id }),
      );
    }
  }, [id]);
  return (
    <Picker
      id={`filter-${filter.name}`}
      source={filter.of}
      isMany={false}
      none={say(words.all)}
      label={say(label)}
      value={chosen.value ? [chosen.value] : []}
      change={([next]) => {
        chosen.value = next ?? null;
        ask({ [filter.name]: next ? String(next.id) : "", page: "" });
      }}
    />
  );
}
