// How the installation does: the figures of /metrics that say whether somebody has to do something, as they go.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { get } from "../core/client";
import { explain } from "../core/reasons";
import type { Figures } from "../core/shapes";
import { count, duration, moment, say, type Text } from "../core/text";
import { words } from "../core/words";
import { Page, Trouble, Waiting } from "../ui/parts";
import { Plot } from "../ui/plot";

const ASKED_EVERY_MS = 5_000;
/** The second time comes soon: a rate is known from it on. */
const ASKED_AGAIN_MS = 1_000;
/** Ten minutes. */
const POINTS_MAX = 120;

/** A reading of all figures. */
interface Reading {
  at: string;
  sum: (name: string, labels?: Record<string, string>, suffix?: string) => number | null;
}

function reading({ at, figures }: Figures): Reading {
  const known = new Map(figures.map((figure) => [figure.name, figure]));
  return {
    at,
    sum(name, labels = {}, suffix = "") {
      const samples = known.get(name)?.samples.filter((sample) => sample.suffix === suffix && Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
      return samples?.length ? samples.reduce((sum, { value }) => sum + (value ?? 0), 0) : null;
    },
  };
}

interface Shown {
  title: Text;
  hint: Text;
  of: (now: Reading) => number | null;
  /** Whether its growth a second is shown. */
  isRate?: boolean;
  write: (value: number) => string;
  limit?: (now: Reading) => number | null;
}

const whole = (value: number) => count(Math.round(value));
const perSecond = (value: number) => `${count(value, { maximumFractionDigits: 1 })}/s`;
const mebibytes = (value: number) => `${count(value / 1024 / 1024, { maximumFractionDigits: 0 })} MiB`;

const SHOWN: Shown[] = [
  {
    title: ["Requests", "Requisições", "Solicitudes"],
    hint: ["Answered per second.", "Respondidas por segundo.", "Respondidas por segundo."],
    of: (now) => now.sum("hotline_http_requests_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Unauthorized requests", "Requisições não autorizadas", "Solicitudes no autorizadas"],
    hint: ["If it rises, a revoked token is in use or someone is guessing tokens.", "Se subir, um token revogado está em uso ou alguém tenta adivinhar tokens.", "Si sube, se está usando un token revocado o alguien intenta adivinar tokens."],
    of: (now) => now.sum("hotline_http_unauthorized_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Rate-limited requests", "Requisições limitadas", "Solicitudes limitadas"],
    hint: ["If it stays high, a company needs a higher limit or its integration is in a loop.", "Se ficar alto, uma empresa precisa de um limite maior ou sua integração está em loop.", "Si se mantiene alto, una empresa necesita un límite mayor o su integración está en bucle."],
    of: (now) => now.sum("hotline_http_rate_limited_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Not yet saved to the database", "Ainda não salvo no banco de dados", "Aún no guardado en la base de datos"],
    hint: ["Age of the oldest change that is only in the journal.", "Idade da alteração mais antiga que só está no journal.", "Antigüedad del cambio más antiguo que solo está en el journal."],
    of: (now) => now.sum("hotline_flush_lag_seconds"),
    write: duration,
  },
  {
    title: ["Journal", "Journal", "Journal"],
    hint: ["Size on disk. At the limit, changes are rejected.", "Tamanho em disco. No limite, alterações são recusadas.", "Tamaño en disco. Al llegar al límite, se rechazan los cambios."],
    of: (now) => now.sum("hotline_journal_bytes"),
    limit: (now) => now.sum("hotline_journal_limit_bytes"),
    write: mebibytes,
  },
  {
    title: ["Database responding", "Banco de dados responde", "Base de datos responde"],
    hint: ["Answers within one second.", "Responde em até um segundo.", "Responde en menos de un segundo."],
    of: (now) => now.sum("hotline_database_up"),
    write: (value) => say(value ? words.yes : words.no),
  },
  {
    title: ["Waiting for the database", "Aguardando o banco de dados", "Esperando la base de datos"],
    hint: ["If it stays above zero, a company sends too many requests.", "Se ficar acima de zero, uma empresa envia requisições demais.", "Si se mantiene por encima de cero, una empresa envía demasiadas solicitudes."],
    of: (now) => now.sum("hotline_database_waiting"),
    write: whole,
  },
  {
    title: ["Conversations in memory", "Conversas na memória", "Conversaciones en memoria"],
    hint: ["Conversations with recent activity.", "Conversas com atividade recente.", "Conversaciones con actividad reciente."],
    of: (now) => now.sum("hotline_actors_hot", { kind: "tickets" }),
    write: whole,
  },
  {
    title: ["Connected visitors", "Visitantes conectados", "Visitantes conectados"],
    hint: ["Open webchat connections.", "Conexões de webchat abertas.", "Conexiones de webchat abiertas."],
    of: (now) => now.sum("hotline_sockets_open"),
    write: whole,
  },
  {
    title: ["Outgoing messages", "Mensagens em envio", "Mensajes en envío"],
    hint: ["Messages that their provider has not accepted yet.", "Mensagens que o provedor ainda não aceitou.", "Mensajes que el proveedor aún no ha aceptado."],
    of: (now) => now.sum("hotline_outbox_messages"),
    write: whole,
  },
  {
    title: ["Webhook delay", "Atraso dos webhooks", "Retraso de los webhooks"],
    hint: ["How long the oldest event has been waiting.", "Há quanto tempo o evento mais antigo espera.", "Cuánto tiempo lleva esperando el evento más antiguo."],
    of: (now) => now.sum("hotline_webhook_lag_seconds"),
    write: duration,
  },
  {
    title: ["Memory", "Memória", "Memoria"],
    hint: ["Used by the process.", "Usada pelo processo.", "Usada por el proceso."],
    of: (now) => now.sum("hotline_process_resident_memory_bytes"),
    write: mebibytes,
  },
];

export function InstallationPage() {
  const readings = useSignal<Reading[]>([]);
  const failure = useSignal("");
  useEffect(() => {
    let timer = 0;
    const stop = new AbortController();
    const look = async () => {
      try {
        const found = reading(await get<Figures>("/installation/figures", {}, stop.signal));
        readings.value = [...readings.value.slice(1 - POINTS_MAX), found];
        failure.value = "";
      } catch (failed) {
        if (stop.signal.aborted) return;
        failure.value = explain(failed);
      }
      timer = window.setTimeout(look, readings.value.length === 1 ? ASKED_AGAIN_MS : ASKED_EVERY_MS);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, []);
  const all = readings.value;
  const newest = all.at(-1);
  return (
    <Page
      title={say(["Health", "Saúde", "Salud"])}
      lead={say(["Live since you opened this page.", "Ao vivo desde que você abriu esta página.", "En vivo desde que abrió esta página."])}
    >
      {failure.value && <Trouble text={failure.value} />}
      {newest ? (
        <>
          <p class="soft">
            {moment(newest.at)} · {say(["up for {time}", "no ar há {time}", "en marcha desde hace {time}"], { time: duration(Math.round(newest.sum("hotline_uptime_seconds") ?? 0)) })}
          </p>
          <div class="plots">
            {SHOWN.map((shown) => {
              const points = valuesOf(shown, all);
              const limit = shown.limit?.(newest);
              return (
                <Plot
                  key={shown.title[0]}
                  title={say(shown.title)}
                  hint={say(shown.hint)}
                  points={points}
                  value={points.length ? shown.write(points.at(-1) ?? 0) : "–"}
                  {...(limit ? { limit } : {})}
                />
              );
            })}
          </div>
        </>
      ) : (
        !failure.value && <Waiting />
      )}
    </Page>
  );
}

/** The values of a figure; of a counter, how much it grew a second. */
function valuesOf(shown: Shown, all: Reading[]): number[] {
  const values = all.map((one) => ({ at: Date.parse(one.at), value: shown.of(one) }));
  if (!shown.isRate) return values.flatMap(({ value }) => (value === null ? [] : [value]));
  return values.slice(1).flatMap(({ at, value }, index) => {
    const before = values[index];
    if (!before || value === null || before.value === null || at <= before.at) return [];
    return [Math.max(0, value - before.value) / ((at - before.at) / 1000)];
  });
}
