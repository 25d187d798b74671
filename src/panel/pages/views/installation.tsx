// The health of the installation: plots of those figures of /metrics that show whether an operator has to act.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { get } from "../core/client";
import { explain } from "../core/reasons";
import type { Figures } from "../core/shapes";
import { count, duration, moment, say, type Text } from "../core/text";
import { words } from "../core/words";
import { Page, Trouble, Waiting } from "../ui/parts";
import { Plot } from "../ui/plot";

const POLL_INTERVAL_MS = 5_000;
/** The second reading follows sooner: a rate takes two. */
const SECOND_POLL_DELAY_MS = 1_000;
/** Ten minutes of readings. */
const READINGS_MAX = 120;

/** A reading of all figures. */
interface Reading {
  at: string;
  /** The sum of a figure's samples with these labels; `null` if there is none. */
  sum: (name: string, labels?: Record<string, string>, suffix?: string) => number | null;
}

function readingOf({ at, figures }: Figures): Reading {
  const byName = new Map(figures.map((figure) => [figure.name, figure]));
  return {
    at,
    sum(name, labels = {}, suffix = "") {
      const samples = byName.get(name)?.samples.filter((sample) => sample.suffix === suffix && Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
      return samples?.length ? samples.reduce((sum, { value }) => sum + (value ?? 0), 0) : null;
    },
  };
}

interface PlottedFigure {
  title: Text;
  hint: Text;
  of: (reading: Reading) => number | null;
  /** Whether the growth per second is shown instead of the value. */
  isRate?: boolean;
  write: (value: number) => string;
  limit?: (reading: Reading) => number | null;
}

const whole = (value: number) => count(Math.round(value));
const perSecond = (value: number) => `${count(value, { maximumFractionDigits: 1 })}/s`;
const mebibytes = (value: number) => `${count(value / 1024 / 1024, { maximumFractionDigits: 0 })} MiB`;

const PLOTTED: PlottedFigure[] = [
  {
    title: ["Requests", "Requisições", "Solicitudes"],
    hint: ["Answered per second.", "Respondidas por segundo.", "Respondidas por segundo."],
    of: (reading) => reading.sum("hotline_http_requests_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Unauthorized requests", "Requisições não autorizadas", "Solicitudes no autorizadas"],
    hint: ["If it rises, a revoked token is in use or someone is guessing tokens.", "Se subir, um token revogado está em uso ou alguém tenta adivinhar tokens.", "Si sube, se está usando un token revocado o alguien intenta adivinar tokens."],
    of: (reading) => reading.sum("hotline_http_unauthorized_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Rate-limited requests", "Requisições limitadas", "Solicitudes limitadas"],
    hint: ["If it stays high, a company needs a higher limit or its integration is in a loop.", "Se ficar alto, uma empresa precisa de um limite maior ou sua integração está em loop.", "Si se mantiene alto, una empresa necesita un límite mayor o su integración está en bucle."],
    of: (reading) => reading.sum("hotline_http_rate_limited_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Not yet saved to the database", "Ainda não salvo no banco de dados", "Aún no guardado en la base de datos"],
    hint: ["Age of the oldest change that is only in the journal.", "Idade da alteração mais antiga que só está no journal.", "Antigüedad del cambio más antiguo que solo está en el journal."],
    of: (reading) => reading.sum("hotline_flush_lag_seconds"),
    write: duration,
  },
  {
    title: ["Journal", "Journal", "Journal"],
    hint: ["Size on disk. At the limit, changes are rejected.", "Tamanho em disco. No limite, alterações são recusadas.", "Tamaño en disco. Al llegar al límite, se rechazan los cambios."],
    of: (reading) => reading.sum("hotline_journal_bytes"),
    limit: (reading) => reading.sum("hotline_journal_limit_bytes"),
    write: mebibytes,
  },
  {
    title: ["Database responding", "Banco de dados responde", "Base de datos responde"],
    hint: ["Answers within one second.", "Responde em até um segundo.", "Responde en menos de un segundo."],
    of: (reading) => reading.sum("hotline_database_up"),
    write: (value) => say(value ? words.yes : words.no),
  },
  {
    title: ["Waiting for the database", "Aguardando o banco de dados", "Esperando la base de datos"],
    hint: ["If it stays above zero, a company sends too many requests.", "Se ficar acima de zero, uma empresa envia requisições demais.", "Si se mantiene por encima de cero, una empresa envía demasiadas solicitudes."],
    of: (reading) => reading.sum("hotline_database_waiting"),
    write: whole,
  },
  {
    title: ["Conversations in memory", "Conversas na memória", "Conversaciones en memoria"],
    hint: ["Conversations with recent activity.", "Conversas com atividade recente.", "Conversaciones con actividad reciente."],
    of: (reading) => reading.sum("hotline_actors_hot", { kind: "tickets" }),
    write: whole,
  },
  {
    title: ["Connected visitors", "Visitantes conectados", "Visitantes conectados"],
    hint: ["Open webchat connections.", "Conexões de webchat abertas.", "Conexiones de webchat abiertas."],
    of: (reading) => reading.sum("hotline_sockets_open"),
    write: whole,
  },
  {
    title: ["Outgoing messages", "Mensagens em envio", "Mensajes en envío"],
    hint: ["Messages that their provider has not accepted yet.", "Mensagens que o provedor ainda não aceitou.", "Mensajes que el proveedor aún no ha aceptado."],
    of: (reading) => reading.sum("hotline_outbox_messages"),
    write: whole,
  },
  {
    title: ["Webhook delay", "Atraso dos webhooks", "Retraso de los webhooks"],
    hint: ["How long the oldest event has been waiting.", "Há quanto tempo o evento mais antigo espera.", "Cuánto tiempo lleva esperando el evento más antiguo."],
    of: (reading) => reading.sum("hotline_webhook_lag_seconds"),
    write: duration,
  },
  {
    title: ["Memory", "Memória", "Memoria"],
    hint: ["Used by the process.", "Usada pelo processo.", "Usada por el proceso."],
    of: (reading) => reading.sum("hotline_process_resident_memory_bytes"),
    write: mebibytes,
  },
];

export function InstallationPage() {
  const readings = useSignal<Reading[]>([]);
  const failure = useSignal("");
  useEffect(() => {
    let timer = 0;
    const stop = new AbortController();
    const poll = async () => {
      try {
        const next = readingOf(await get<Figures>("/installation/figures", {}, stop.signal));
        readings.value = [...readings.value.slice(1 - READINGS_MAX), next];
        failure.value = "";
      } catch (error) {
        if (stop.signal.aborted) return;
        failure.value = explain(error);
      }
      timer = window.setTimeout(poll, readings.value.length === 1 ? SECOND_POLL_DELAY_MS : POLL_INTERVAL_MS);
    };
    void poll();
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
            {PLOTTED.map((figure) => {
              const points = valuesOf(figure, all);
              const limit = figure.limit?.(newest);
              return (
                <Plot
                  key={figure.title[0]}
                  title={say(figure.title)}
                  hint={say(figure.hint)}
                  points={points}
                  value={points.length ? figure.write(points.at(-1) ?? 0) : "–"}
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

/** The values of a figure; of a rate, its growth per second between two readings. */
function valuesOf(figure: PlottedFigure, readings: Reading[]): number[] {
  const values = readings.map((reading) => ({ at: Date.parse(reading.at), value: figure.of(reading) }));
  if (!figure.isRate) return values.flatMap(({ value }) => (value === null ? [] : [value]));
  return values.slice(1).flatMap(({ at, value }, index) => {
    const before = values[index];
    if (!before || value === null || before.value === null || at <= before.at) return [];
    return [Math.max(0, value - before.value) / ((at - before.at) / 1000)];
  });
}
