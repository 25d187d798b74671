// Who belongs to something: the agents of a queue, the contacts of a list. They are added by name, and removed.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { get, remove } from "../core/client";
import { useLoaded } from "../core/loaded";
import { notify } from "../core/notices";
import { may } from "../core/session";
import type { Named, Source } from "../core/shapes";
import { say, type Text } from "../core/text";
import { words } from "../core/words";
import { confirm } from "../ui/dialog";
import { Await, Button, Page } from "../ui/parts";
import { Picker } from "../ui/picker";
import type { Column } from "../ui/table";
import { PagedList } from "./list";

export interface MembersOf {
  /** The resource they belong to. */
  path: string;
  /** What they are below it. */
  members: string;
  module: string;
  /** Permission to add and to remove one. */
  add: "POST" | "PUT";
  of: Source;
  isSearched: boolean;
  /** Whether one of `path` is read alone. */
  isRead: boolean;
  words: { many: Text; lead: Text; back: Text; empty: Text; choose: Text; removed: Text };
  columns: { label: Text; show: (row: Named & Record<string, unknown>) => ComponentChildren }[];
  join: (path: string, chosen: Named[]) => Promise<unknown>;
  /** Another way to add them: all that something else has. */
  joinAll?: { of: Source; choose: Text; join: (path: string, chosen: Named) => Promise<string> };
}

export function MembersPage({ what, id }: { what: MembersOf; id: string }) {
  const base = `/${what.path}/${encodeURIComponent(id)}`;
  const owner = useLoaded<Named>(
    async (stop) => {
      if (what.isRead) return get<Named>(base, {}, stop);
      const known = (await get<Named[]>(`/${what.path}`, { perPage: 100 }, stop)).find((it) => String(it.id) === id);
      return known ?? { id: Number(id), name: `#${id}` };
    },
    [base],
  );
  const chosen = useSignal<Named[]>([]);
  const version = useSignal(0);
  const join = async () => {
    if (!chosen.value.length) return;
    await what.join(`${base}/${what.members}`, chosen.value);
    chosen.value = [];
    version.value += 1;
    notify(say(words.saved));
  };
  const whole = useSignal<Named[]>([]);
  const joinAll = async () => {
    const [one] = whole.value;
    if (!one || !what.joinAll) return;
    notify(await what.joinAll.join(`${base}/${what.members}`, one));
    whole.value = [];
    version.value += 1;
  };
  const leave = (row: Named) =>
    confirm({
      title: `${say(words.remove)}: ${row.name}`,
      text: <p>{say(what.words.removed)}</p>,
      yes: say(words.remove),
      act: async () => {
        await remove(`${base}/${what.members}/${row.id}`);
        version.value += 1;
        notify(say(words.saved));
      },
    });
  const columns: Column<Named & Record<string, unknown>>[] = what.columns.map(({ label, show }) => ({ label: say(label), show }));
  if (may(what.module, "DELETE")) {
    columns.push({
      label: say(words.actions),
      kind: "actions",
      show: (row) => (
        <Button label={`${say(words.remove)}: ${row.name}`} onClick={() => leave(row)}>
          {say(words.remove)}
        </Button>
      ),
    });
  }
  return (
    <Await what={owner} missing={{ title: say(what.words.many), back: { to: `/${what.path}`, text: say(what.words.back) } }}>
      {(record) => (
        <Page
          title={`${record.name}: ${say(what.words.many)}`}
          lead={say(what.words.lead)}
          back={{ to: what.isRead ? base : `/${what.path}`, text: what.isRead ? record.name : say(what.words.back) }}
        >
          {may(what.module, what.add) && (
            <div class="adder">
              <div class="field">
                <label for="member">{say(what.words.choose)}</label>
                <Picker id="member" source={what.of} isMany value={chosen.value} change={(next) => (chosen.value = next)} label={say(what.words.choose)} />
              </div>
              <Button kind="primary" icon="plus" isDisabled={!chosen.value.length} onClick={join}>
                {say(words.add)}
              </Button>
            </div>
          )}
          {what.joinAll && may(what.module, what.add) && (
            <div class="adder">
              <div class="field">
                <label for="members-of">{say(what.joinAll.choose)}</label>
                <Picker id="members-of" source={what.joinAll.of} isMany={false} value={whole.value} change={(next) => (whole.value = next)} label={say(what.joinAll.choose)} />
              </div>
              <Button icon="plus" isDisabled={!whole.value.length} onClick={joinAll} label={`${say(words.add)}: ${say(what.joinAll.choose)}`}>
                {say(words.add)}
              </Button>
            </div>
          )}
          <PagedList
            path={`${base}/${what.members}`}
            query={{}}
            label={say(what.words.many)}
            columns={columns}
            filters={[]}
            isSearched={what.isSearched}
            empty={<p>{say(what.words.empty)}</p>}
            version={version.value}
          />
        </Page>
      )}
    </Await>
  );
}
