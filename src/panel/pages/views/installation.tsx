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
    hint: ["Answered a second.", "Respondidas por segundo.", "Respondidas por segundo."],
    of: (now) => now.sum("hotline_http_requests_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Refused keys", "Chaves recusadas", "Claves rechazadas"],
    hint: ["A step up: a revoked token is in use, or somebody guesses.", "Se subir: um token revogado está em uso, ou alguém tenta adivinhar.", "Si sube: se usa un token revocado, o alguien intenta adivinar."],
    of: (now) => now.sum("hotline_http_unauthorized_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Refused for pace", "Recusadas por excesso", "Rechazadas por exceso"],
    hint: ["A steady rate: a company needs a higher limit, or has a loop.", "Se constante: uma empresa precisa de limite maior, ou tem um laço.", "Si es constante: una empresa necesita un límite mayor, o tiene un bucle."],
    of: (now) => now.sum("hotline_http_rate_limited_total"),
    isRate: true,
    write: perSecond,
  },
  {
    title: ["Behind the tables", "Atraso das tabelas", "Retraso de las tablas"],
    hint: ["Age of the oldest change that is only in the journal.", "Idade da mudança mais antiga que só está no journal.", "Edad del cambio más antiguo que solo está en el journal."],
    of: (now) => now.sum("hotline_flush_lag_seconds"),
    write: duration,
  },
  {
    title: ["Journal", "Journal", "Journal"],
    hint: ["Bytes on disk; at the limit, changes are refused.", "Bytes em disco; no limite, mudanças são recusadas.", "Bytes en disco; en el límite se rechazan cambios."],
    of: (now) => now.sum("hotline_journal_bytes"),
    limit: (now) => now.sum("hotline_journal_limit_bytes"),
    write: mebibytes,
  },
  {
    title: ["Database", "Banco de dados", "Base de datos"],
    hint: ["Whether it answers within a second.", "Se responde em um segundo.", "Si responde en un segundo."],
    of: (now) => now.sum("hotline_database_up"),
    write: (value) => say(value ? words.yes : words.no),
  },
  {
    title: ["Waiting for the database", "Esperando o banco", "Esperando la base"],
    hint: ["Above zero for long: a company asks more than its share.", "Acima de zero por muito tempo: uma empresa pede demais.", "Sobre cero mucho tiempo: una empresa pide demasiado."],
    of: (now) => now.sum("hotline_database_waiting"),
    write: whole,
  },
  {
    title: ["Conversations in memory", "Conversas na memória", "Conversaciones en memoria"],
    hint: ["Those that something happens in now.", "Aquelas em que algo acontece agora.", "Aquellas en las que algo pasa ahora."],
    of: (now) => now.sum("hotline_actors_hot", { kind: "tickets" }),
    write: whole,
  },
  {
    title: ["Visitors connected", "Visitantes conectados", "Visitantes conectados"],
    hint: ["Open sockets of webchats.", "Conexões abertas de webchats.", "Conexiones abiertas de webchats."],
    of: (now) => now.sum("hotline_sockets_open"),
    write: whole,
  },
  {
    title: ["On the way to providers", "A caminho dos provedores", "En camino a proveedores"],
    hint: ["Messages that wait for their turn or for an answer.", "Mensagens que esperam a vez ou uma resposta.", "Mensajes que esperan su turno o una respuesta."],
    of: (now) => now.sum("hotline_outbox_messages"),
    write: whole,
  },
  {
    title: ["Webhooks behind", "Atraso dos webhooks", "Retraso de webhooks"],
    hint: ["How long the oldest event waits.", "Quanto espera o evento mais antigo.", "Cuánto espera el evento más antiguo."],
    of: (now) => now.sum("hotline_webhook_lag_seconds"),
    write: duration,
  },
  {
    title: ["Memory", "Memória", "Memoria"],
    hint: ["In use by the process.", "Em uso pelo processo.", "En uso por el proceso."],
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
      lead={say(["How the installation does, from the moment this page was opened.", "Como vai a instalação, desde que esta página foi aberta.", "Cómo va la instalación, desde que se abrió esta página."])}
    >
      {failure.value && <Trouble text={failure.value} />}
      {newest ? (
        <>
          <p class="soft">
            {moment(newest.at)} · {say(["up for {time}", "no ar há {time}", "en marcha hace {time}"], { time: duration(Math.round(newest.sum("hotline_uptime_seconds") ?? 0)) })}
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
