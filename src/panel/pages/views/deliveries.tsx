// What became of the events a webhook was sent, and sending them again.

import { useSignal } from "@preact/signals";

import { get, post, type Of } from "../core/client";
import { useLoaded } from "../core/loaded";
import { notify } from "../core/notices";
import { may } from "../core/session";
import { count, counted, say, type Counted, type Text } from "../core/text";
import { words } from "../core/words";
import { PagedList } from "../resource/list";
import { confirm } from "../ui/dialog";
import { Moment } from "../ui/moment";
import { Await, Button, Page } from "../ui/parts";
import { optionsOf, State } from "../ui/states";

const said = {
  title: ["Deliveries", "Entregas", "Entregas"],
  event: ["Event", "Evento", "Evento"],
  happened: ["Date", "Data", "Fecha"],
  attempts: ["attempt {count}", "tentativa {count}", "intento {count}"],
  last: ["Last response", "Última resposta", "Última respuesta"],
  next: ["next attempt:", "próxima tentativa:", "próximo intento:"],
  from: ["From", "Desde", "Desde"],
  to: ["Until", "Até", "Hasta"],
  again: ["Resend", "Reenviar", "Reenviar"],
  failed: ["Resend today's failures", "Reenviar as falhas de hoje", "Reenviar los fallos de hoy"],
  failedText: ["Every delivery that failed since midnight is sent again.", "Todas as entregas que falharam desde a meia-noite são reenviadas.", "Se reenvían todas las entregas que fallaron desde la medianoche."],
  planned: {
    one: ["{count} delivery will be resent.", "{count} entrega será reenviada.", "{count} entrega se reenviará."],
    other: ["{count} deliveries will be resent.", "{count} entregas serão reenviadas.", "{count} entregas se reenviarán."],
  },
  empty: ["No deliveries yet. The first event will appear here.", "Nenhuma entrega ainda. O primeiro evento aparecerá aqui.", "Todavía no hay entregas. El primer evento aparecerá aquí."],
} as const satisfies Record<string, Text | Counted>;

export function DeliveriesPage({ id }: { id: string }) {
  const base = `/webhooks/${encodeURIComponent(id)}`;
  const hook = useLoaded<Of<"Webhook">>((stop) => get(base, {}, stop), [base]);
  const version = useSignal(0);
  const replay = async (body: unknown) => {
    const { deliveries } = await post<Of<"WebhookReplayed">>(`${base}/replay`, body);
    version.value += 1;
    notify(counted(deliveries, said.planned));
  };
  const replayFailed = () =>
    confirm({
      title: say(said.failed),
      text: <p>{say(said.failedText)}</p>,
      yes: say(said.again),
      isDangerous: false,
      act: () => replay({ failedSince: new Date(new Date().setHours(0, 0, 0, 0)).toISOString() }),
    });
  const canReplay = may("webhooks", "POST");
  return (
    <Await what={hook} missing={{ title: say(said.title), back: { to: "/webhooks", text: say(words.back) } }}>
      {(webhook) => (
        <Page
          title={say(said.title)}
          lead={webhook.url}
          back={{ to: base, text: webhook.description ?? webhook.url }}
          actions={canReplay && <Button onClick={replayFailed}>{say(said.failed)}</Button>}
        >
          <PagedList<Of<"WebhookDelivery">>
            path={`${base}/deliveries`}
            query={{}}
            label={say(said.title)}
            isSearched={false}
            version={version.value}
            filters={[
              {
                name: "status",
                kind: "choice",
                label: words.state,
                options: optionsOf("pending", "delivered", "failed"),
              },
              { name: "createdFrom", kind: "moment", label: said.from },
              { name: "createdTo", kind: "moment", label: said.to },
            ]}
            columns={[
              { label: say(said.event), show: (it) => `${it.type} #${it.eventId}` },
              { label: say(said.happened), show: (it) => <Moment at={it.createdAt} /> },
              {
                label: say(words.state),
                show: (it) => (
                  <>
                    <State is={it.status} />
                    {it.nextAttemptAt && (
                      <span class="below soft">
                        {say(said.next)} <Moment at={it.nextAttemptAt} />
                      </span>
                    )}
                  </>
                ),
              },
              { label: say(said.last), show: (it) => lastOf(it) },
              {
                label: say(words.actions),
                kind: "actions",
                show: (it) =>
                  canReplay && (
                    <Button label={`${say(said.again)}: ${it.type} #${it.eventId}`} onClick={() => replay({ deliveryId: it.id })}>
                      {say(said.again)}
                    </Button>
                  ),
              },
            ]}
            empty={<p>{say(said.empty)}</p>}
          />
        </Page>
      )}
    </Await>
  );
}

function lastOf({ attempts }: Of<"WebhookDelivery">): string {
  const last = attempts.at(-1);
  if (!last) return "";
  return `${last.error ?? `${last.status ?? ""} (${count(last.durationMs)} ms)`} · ${say(said.attempts, { count: count(attempts.length) })}`;
}
