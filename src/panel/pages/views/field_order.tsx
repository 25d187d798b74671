// The order of custom fields: dragged, or moved by the arrow keys of the grip.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { put, whole, type Of } from "../core/client";
import { useLoaded } from "../core/loaded";
import { explain } from "../core/reasons";
import { notify } from "../core/notices";
import { ask, here } from "../core/router";
import { say, type Text } from "../core/text";
import { Icon } from "../ui/icons";
import { Await, LinkButton, Page } from "../ui/parts";

const said = {
  title: ["Field order", "Ordem dos campos", "Orden de los campos"],
  lead: ["Drag a field to move it, or select its handle and press the arrow keys. Changes are saved automatically.", "Arraste um campo para movê-lo, ou selecione a alça e use as setas. As alterações são salvas automaticamente.", "Arrastre un campo para moverlo, o seleccione su asa y use las flechas. Los cambios se guardan automáticamente."],
  of: ["Fields for", "Campos de", "Campos de"],
  contact: ["Contacts", "Contatos", "Contactos"],
  card: ["Cards", "Cards", "Tarjetas"],
  fields: ["Custom fields", "Campos personalizados", "Campos personalizados"],
  grip: ["{name}, position {at} of {count}. Use the arrow keys to move it.", "{name}, posição {at} de {count}. Use as setas para mover.", "{name}, posición {at} de {count}. Use las flechas para moverlo."],
  moved: ["{name} is now at position {at} of {count}.", "{name} agora está na posição {at} de {count}.", "{name} está ahora en la posición {at} de {count}."],
  make: ["New field", "Novo campo", "Nuevo campo"],
  none: ["No fields here yet.", "Nenhum campo aqui ainda.", "Todavía no hay campos aquí."],
} as const satisfies Record<string, Text>;

type Row = Of<"CustomField">;

export function FieldOrderPage() {
  const application = here.value.query.get("application") === "card" ? "card" : "contact";
  const found = useLoaded(() => whole<Row>("/custom-fields", { application }), [application]);
  return (
    <Page title={say(said.title)} lead={say(said.lead)} back={{ to: "/custom-fields", text: say(said.fields) }}>
      <div class="filters">
        <div class="field">
          <label for="application">{say(said.of)}</label>
          <select id="application" value={application} onChange={(event) => ask({ application: event.currentTarget.value })}>
            <option value="contact">{say(said.contact)}</option>
            <option value="card">{say(said.card)}</option>
          </select>
        </div>
      </div>
      <Await what={found}>{(rows) => (rows.length ? <Sortable key={application} rows={rows} application={application} /> : <Nothing />)}</Await>
    </Page>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <p>{say(said.none)}</p>
      <LinkButton to="/custom-fields/new" icon="plus">
        {say(said.make)}
      </LinkButton>
    </div>
  );
}

function Sortable({ rows, application }: { rows: Row[]; application: string }) {
  const order = useSignal(rows);
  const saved = useSignal(rows);
  const held = useSignal<number | null>(null);
  const voice = useSignal("");
  const list = useRef<HTMLOListElement>(null);
  const grips = () => [...(list.current?.querySelectorAll<HTMLButtonElement>(".grip") ?? [])];

  // One save after the other, the last order last.
  const last = useRef<Promise<void>>(Promise.resolve());
  const save = () => {
    const wanted = order.value;
    last.current = last.current.then(async () => {
      if (wanted !== order.value) return;
      try {
        await put<Row[]>("/custom-fields/order", { application, orderedIds: wanted.map(({ id }) => id) });
        saved.value = wanted;
      } catch (failed) {
        order.value = saved.value;
        notify(explain(failed), true);
      }
    });
  };
  const move = (from: number, to: number) => {
    const row = order.value[from];
    if (!row || to < 0 || to >= order.value.length || from === to) return false;
    const next = order.value.filter((_, at) => at !== from);
    next.splice(to, 0, row);
    order.value = next;
    voice.value = say(said.moved, { name: row.name, at: to + 1, count: next.length });
    return true;
  };
  const pressed = (event: KeyboardEvent, at: number) => {
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: order.value.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (move(at, to)) {
      save();
      requestAnimationFrame(() => grips()[to]?.focus());
    }
  };
  const grab = (event: PointerEvent, id: number) => {
    if (event.button) return;
    held.value = id;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
  };
  const drag = (event: PointerEvent) => {
    if (held.value === null || !list.current) return;
    const from = order.value.findIndex(({ id }) => id === held.value);
    const boxes = [...list.current.children].map((it) => it.getBoundingClientRect());
    const to = boxes.findIndex(({ top, bottom }) => event.clientY >= top && event.clientY < bottom);
    if (to >= 0) move(from, to);
  };
  const drop = () => {
    if (held.value === null) return;
    held.value = null;
    if (order.value !== saved.value) save();
  };
  useEffect(() => {
    addEventListener("pointerup", drop);
    addEventListener("pointercancel", drop);
    return () => {
      removeEventListener("pointerup", drop);
      removeEventListener("pointercancel", drop);
    };
  }, []);
  return (
    <>
      <ol class="sortable" ref={list} onPointerMove={drag}>
        {order.value.map((row, at) => (
          <li key={row.id} class={held.value === row.id ? "held" : ""}>
            <button
              type="button"
              class="grip bare"
              aria-label={say(said.grip, { name: row.name, at: at + 1, count: order.value.length })}
              onPointerDown={(event) => grab(event, row.id)}
              onKeyDown={(event) => pressed(event, at)}
            >
              <Icon name="grip" />
            </button>
            <span>{row.name}</span>
            <code>{row.key}</code>
            <span class="row tight push">
              <button type="button" class="bare" aria-label={`${row.name}: ${say(["move up", "mover para cima", "mover arriba"])}`} disabled={at === 0} onClick={() => move(at, at - 1) && save()}>
                <Icon name="up" />
              </button>
              <button type="button" class="bare" aria-label={`${row.name}: ${say(["move down", "mover para baixo", "mover abajo"])}`} disabled={at === order.value.length - 1} onClick={() => move(at, at + 1) && save()}>
                <Icon name="down" />
              </button>
            </span>
          </li>
        ))}
      </ol>
      <p class="unseen" role="status">
        {voice.value}
      </p>
    </>
  );
}

