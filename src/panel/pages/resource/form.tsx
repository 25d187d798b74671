// The form of any resource: makes a record, changes it, and deletes it after saying what goes with it.

import { get, post, put, Refused, remove, whole } from "../core/client";
import { dropDraft, type Values } from "../core/drafts";
import { useLoaded } from "../core/loaded";
import { notify } from "../core/notices";
import { go, here, href } from "../core/router";
import { may } from "../core/session";
import { say } from "../core/text";
import { words } from "../core/words";
import { confirm } from "../ui/dialog";
import { Form } from "../ui/form";
import { Await, Button, Page } from "../ui/parts";
import { fresh } from "./list";
import { mayWith, type Resource } from "./types";

const ask = {
  title: ["Delete “{name}”?", "Excluir “{name}”?", "¿Eliminar «{name}»?"],
} as const;

/** A record that is shown in its list alone. */
async function inList(of: Resource, id: string): Promise<{ id: number }> {
  const found = (await whole<{ id: number }>(`/${of.path}`)).find((row) => String(row.id) === id);
  if (!found) throw new Refused(404, "ERR_API_NOT_FOUND", "", null, null);
  return found;
}

export function NewPage({ of }: { of: Resource }) {
  const back = { to: `/${of.path}`, text: say(of.words.many) };
  const submit = async (body: Values) => {
    const made = await post<{ id: number }>(`/${of.path}`, body);
    if (of.made) return of.made(made);
    notify(say(words.created));
    // A list that is in an order of its own may have it on any page.
    if (of.branches || of.above || of.beside || of.isOrdered) return go(`/${of.path}/${made.id}`);
    fresh.value = { path: `/${of.path}`, id: made.id };
    go(back.to);
  };
  return (
    <Page title={say(of.words.make)} back={back}>
      <Form
        name={`${of.path}/new`}
        fields={of.fields}
        submit={submit}
        takesFocus
        label={say(words.create)}
        cancel={() => go(back.to)}
        {...(of.preview ? { beside: (values: Values) => of.preview?.(values, undefined) } : {})}
      />
    </Page>
  );
}

export function EditPage({ of, id }: { of: Resource; id: string }) {
  const back = { to: `/${of.path}`, text: say(of.words.many) };
  const read = of.recordPath?.(id) ?? `/${of.path}/${encodeURIComponent(id)}`;
  const written = of.changePath?.(id) ?? read;
  const name = `${of.path}/${id}`;
  const found = useLoaded<{ id: number }>((stop) => (of.isListed ? inList(of, id) : get(read, {}, stop)), [read]);
  const canChange = mayWith(of, "PUT");
  const canDelete = mayWith(of, "DELETE");
  const submit = async (body: Values) => {
    found.data.value = await put<{ id: number }>(written, body);
    notify(say(words.saved));
  };
  const erase = (row: { id: number }) =>
    confirm({
      title: say(ask.title, { name: of.nameOf(row) }),
      text: <p>{say(of.words.goesWith)}</p>,
      yes: say(words.delete),
      act: async () => {
        await remove(`/${of.path}/${row.id}`);
        dropDraft(name);
        notify(say(words.deleted));
        // Unless somebody has gone elsewhere meanwhile.
        if (here.value.path === `/${of.path}/${id}`) go(back.to);
      },
    });
  return (
    <Await what={found} missing={{ title: say(of.words.many), back }}>
      {(row) => (
        <Page
          title={of.nameOf(row)}
          back={back}
          actions={of.branches
            ?.filter(({ module }) => !module || may(module, "GET"))
            .map(({ label, to }) => (
              <a key={to(row)} class="button" href={href(to(row))}>
                {say(label)}
              </a>
            ))}
        >
          {of.above?.(row, found.again)}
          <Form
            name={name}
            fields={of.fields}
            record={row as unknown as Values}
            submit={submit}
            label={say(words.save)}
            cancel={() => go(back.to)}
            isReadOnly={!canChange}
            {...(of.preview ? { beside: (values: Values) => of.preview?.(values, row) } : {})}
            danger={
              canDelete && (
                <Button kind="danger" icon="trash" onClick={() => erase(row)}>
                  {say(words.delete)}
                </Button>
              )
            }
          />
          {of.beside?.(row, found.again)}
        </Page>
      )}
    </Await>
  );
}
