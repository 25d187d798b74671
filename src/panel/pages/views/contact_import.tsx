// Contacts from a file: what it holds is shown, each column is given its field, and the rows are sent in parts.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { exchange, Refused, whole, type Of } from "../core/client";
import { readCsv, type CsvRow } from "../core/csv";
import { useLoaded } from "../core/loaded";
import { explain, reason } from "../core/reasons";
import { opened, session } from "../core/session";
import type { Named } from "../core/shapes";
import { count, counted, say, type Counted, type Text } from "../core/text";
import { words } from "../core/words";
import type { Option } from "../ui/fields";
import { Await, Button, Note, Page, Trouble } from "../ui/parts";
import { Picker } from "../ui/picker";
import { Table } from "../ui/table";

/** Rows of one call. */
const PART_ROWS = 200;
const FILE_BYTES_MAX = 32 * 1024 * 1024;
const ROWS_MAX = 200_000;
const PREVIEW_ROWS = 5;
/** Rows that were refused, as far as they are listed. */
const ERRORS_SHOWN_MAX = 200;

const said = {
  title: ["Import contacts", "Importar contatos", "Importar contactos"],
  lead: ["Upload a CSV file. Its first row must have the column names.", "Envie um arquivo CSV. A primeira linha deve ter os nomes das colunas.", "Suba un archivo CSV. La primera fila debe tener los nombres de las columnas."],
  file: ["File", "Arquivo", "Archivo"],
  choose: ["Choose a file…", "Escolher um arquivo…", "Elegir un archivo…"],
  noFile: ["No file chosen", "Nenhum arquivo escolhido", "Ningún archivo elegido"],
  tooLarge: ["The file is too large. The maximum is {rows} rows and {size} MiB.", "O arquivo é grande demais. O máximo é {rows} linhas e {size} MiB.", "El archivo es demasiado grande. El máximo es {rows} filas y {size} MiB."],
  noRows: ["The file has no rows below the column names.", "O arquivo não tem linhas abaixo dos nomes das colunas.", "El archivo no tiene filas debajo de los nombres de las columnas."],
  preview: ["Preview", "Prévia", "Vista previa"],
  rows: {
    one: ["{count} row. Choose a field for each column.", "{count} linha. Escolha um campo para cada coluna.", "{count} fila. Elija un campo para cada columna."],
    other: ["{count} rows. Choose a field for each column.", "{count} linhas. Escolha um campo para cada coluna.", "{count} filas. Elija un campo para cada columna."],
  },
  column: ["Column", "Coluna", "Columna"],
  becomes: ["Field", "Campo", "Campo"],
  examples: ["Examples", "Exemplos", "Ejemplos"],
  nothing: ["Don't import", "Não importar", "No importar"],
  known: ["Existing contacts", "Contatos existentes", "Contactos existentes"],
  update: ["Update", "Atualizar", "Actualizar"],
  skip: ["Keep as they are", "Manter como estão", "Dejar como están"],
  tags: ["Tags for all contacts", "Etiquetas para todos os contatos", "Etiquetas para todos los contactos"],
  start: ["Import", "Importar", "Importar"],
  need: ["Choose a column for the name or the phone number.", "Escolha uma coluna para o nome ou o telefone.", "Elija una columna para el nombre o el teléfono."],
  progress: ["{done} of {all} rows", "{done} de {all} linhas", "{done} de {all} filas"],
  done: ["Created: {created}. Updated: {updated}. Skipped: {skipped}. Rejected: {refused}.", "Criados: {created}. Atualizados: {updated}. Ignorados: {skipped}. Rejeitados: {refused}.", "Creados: {created}. Actualizados: {updated}. Omitidos: {skipped}. Rechazados: {refused}."],
  refused: ["Rejected rows", "Linhas rejeitadas", "Filas rechazadas"],
  line: ["Row", "Linha", "Fila"],
  why: ["Reason", "Motivo", "Motivo"],
  stop: ["Stop", "Parar", "Detener"],
  stopped: ["Stopped. The rows imported so far are kept.", "Parado. As linhas já importadas são mantidas.", "Detenido. Las filas ya importadas se conservan."],
  safe: ["Contacts with a phone number, an e-mail or a code are not created twice if you import the file again.", "Contatos com telefone, e-mail ou código não são criados duas vezes se você importar o arquivo de novo.", "Los contactos con teléfono, correo electrónico o código no se crean dos veces si importa de nuevo el archivo."],
  unsafe: ["If you import the file again, these contacts are created twice.", "Se você importar o arquivo de novo, esses contatos serão criados duas vezes.", "Si importa de nuevo el archivo, esos contactos se crean dos veces."],
  another: ["Another file", "Outro arquivo", "Otro archivo"],
} as const satisfies Record<string, Text | Counted>;

/** The fields of a contact, with the names that columns have for them. */
const FIELDS: readonly (readonly [name: string, label: Text, guesses: RegExp])[] = [
  ["name", words.name, /^(full ?name|name|nome( completo)?|nombre( completo)?|contact|contato|contacto)$/i],
  ["number", ["Phone number", "Telefone", "Teléfono"], /(phone|mobile|number|telefone|celular|whatsapp|n[uú]mero|tel[eé]fono|m[oó]vil)/i],
  ["email", words.email, /(e-?mail|correo)/i],
  ["code", ["Code", "Código", "Código"], /^(code|c[oó]digo|id|external ?id)$/i],
  ["cpfCnpj", ["CPF or CNPJ", "CPF ou CNPJ", "CPF o CNPJ"], /(cpf|cnpj)/i],
  ["origin", ["Origin", "Origem", "Origen"], /^(origin|source|origem|origen|fuente)$/i],
  ["socialUsername", ["Social media username", "Usuário nas redes sociais", "Usuario en redes sociales"], /(instagram|username|usu[aá]rio)/i],
];

/** By these the service finds a contact that is there already. */
const KEYS = ["number", "email", "code"];

const CUSTOM = "custom:";

interface Report {
  created: number;
  updated: number;
  skipped: number;
  errors: { index: number; field: string; reason: string }[];
}

export function ContactImportPage() {
  const fields = useLoaded(() => whole<Of<"CustomField">>("/custom-fields", { application: "contact" }).catch(() => []), []);
  return (
    <Page title={say(said.title)} lead={say(said.lead)}>
      <Await what={fields}>{(custom) => <Import custom={custom} />}</Await>
    </Page>
  );
}

function Import({ custom }: { custom: Of<"CustomField">[] }) {
  const rows = useSignal<CsvRow[]>([]);
  const name = useSignal("");
  const mapping = useSignal<string[]>([]);
  const failure = useSignal("");
  const onConflict = useSignal("update");
  const tags = useSignal<Named[]>([]);
  const done = useSignal(0);
  const report = useSignal<Report | null>(null);
  const isRunning = useSignal(false);
  const isStopped = useSignal(false);
  // Who leaves the page sees no more of it.
  useEffect(() => () => void (isStopped.value = true), []);

  const options: Option[] = [
    ...FIELDS.map(([name, label]) => [name, label] as const),
    ...custom.map((field) => [CUSTOM + field.key, [field.name, field.name, field.name]] as const),
  ];
  const guess = (header: string) => {
    const plain = header.trim();
    const own = custom.find(({ key, name }) => [key, name].some((it) => it.toLowerCase() === plain.toLowerCase()));
    return own ? CUSTOM + own.key : (FIELDS.find(([, , pattern]) => pattern.test(plain))?.[0] ?? "");
  };
  const choose = async (file: File | undefined) => {
    failure.value = "";
    report.value = null;
    rows.value = [];
    name.value = file?.name ?? "";
    if (!file) return;
    const large = say(said.tooLarge, { rows: count(ROWS_MAX), size: FILE_BYTES_MAX / 1024 / 1024 });
    if (file.size > FILE_BYTES_MAX) return void (failure.value = large);
    const read = readCsv(decode(await file.arrayBuffer()));
    if (read.length > ROWS_MAX + 1) failure.value = large;
    else if (read.length < 2) failure.value = say(said.noRows);
    else {
      rows.value = read;
      const taken = new Set<string>();
      mapping.value = read[0]!.cells.map((header) => {
        const found = guess(header);
        if (taken.has(found)) return "";
        taken.add(found);
        return found;
      });
    }
  };
  const contact = ({ cells }: CsvRow) => {
    const made: Record<string, unknown> = {};
    const values: { key: string; value: string }[] = [];
    for (const [at, name] of mapping.value.entries()) {
      const value = cells[at]?.trim();
      if (!name || !value) continue;
      if (name.startsWith(CUSTOM)) values.push({ key: name.slice(CUSTOM.length), value });
      else made[name] = value;
    }
    if (values.length) made.customFields = values;
    if (tags.value.length) made.tagIds = tags.value.map(({ id }) => id);
    return made;
  };
  const start = async () => {
    const body = rows.value.slice(1);
    // The rows are for the company that was open when it began.
    const company = opened.value?.id ?? session.value?.company?.id ?? null;
    const sum: Report = { created: 0, updated: 0, skipped: 0, errors: [] };
    isRunning.value = true;
    isStopped.value = false;
    failure.value = "";
    report.value = null;
    done.value = 0;
    try {
      for (let from = 0; from < body.length && !isStopped.value; from += PART_ROWS) {
        const contacts = body.slice(from, from + PART_ROWS).map(contact);
        const part = await send({ contacts, onConflict: onConflict.value }, company);
        sum.created += part.created;
        sum.updated += part.updated;
        sum.skipped += part.skipped;
        sum.errors.push(...part.errors.map((error) => ({ ...error, index: body[from + error.index]!.number })));
        done.value = Math.min(body.length, from + PART_ROWS);
      }
    } catch (failed) {
      failure.value = explain(failed);
    }
    report.value = sum;
    isRunning.value = false;
  };
  /** As the pages call a field that the service names. */
  const called = (field: string) => {
    const known = options.find(([name]) => name === field);
    return known ? say(known[1]) : field;
  };
  const isMapped = mapping.value.includes("name") || mapping.value.includes("number");
  const isSafe = mapping.value.some((name) => KEYS.includes(name));
  const [first, ...body] = rows.value;
  const headers = first?.cells ?? [];
  const end = report.value;

  return (
    <div class="stack wide">
      {!isRunning.value && (
        <div class="field">
          <label for="file">{say(end ? said.another : said.file)}</label>
          <div class="file">
            <span class="button" aria-hidden="true">
              {say(said.choose)}
            </span>
            <span data-free>{name.value || <span class="soft">{say(said.noFile)}</span>}</span>
            <input id="file" type="file" accept=".csv,.tsv,.txt,text/csv" onChange={(event) => choose(event.currentTarget.files?.[0])} />
          </div>
        </div>
      )}
      {failure.value && <Trouble text={failure.value} />}
      {headers.length > 0 && !isRunning.value && !end && (
        <>
          <section class="card">
            <h2>{say(said.preview)}</h2>
            <p class="soft">{counted(body.length, said.rows)}</p>
            <Table
              label={say(said.preview)}
              rows={headers.map((header, at) => ({ header, at }))}
              keyOf={({ at }) => at}
              columns={[
                { label: say(said.column), show: ({ header }) => header },
                {
                  label: say(said.becomes),
                  show: ({ header, at }) => (
                    <select
                      aria-label={`${say(said.becomes)}: ${header}`}
                      value={mapping.value[at]}
                      onChange={(event) => {
                        const chosen = event.currentTarget.value;
                        mapping.value = mapping.value.map((name, other) => (other === at ? chosen : name === chosen ? "" : name));
                      }}
                    >
                      <option value="">{say(said.nothing)}</option>
                      {options.map(([name, label]) => (
                        <option key={name} value={name}>
                          {say(label)}
                        </option>
                      ))}
                    </select>
                  ),
                },
                { label: say(said.examples), show: ({ at }) => <span class="clamp">{body.slice(0, PREVIEW_ROWS).map(({ cells }) => cells[at] ?? "").filter(Boolean).join(" · ")}</span> },
              ]}
            />
          </section>
          <div class="field">
            <label for="conflict">{say(said.known)}</label>
            <select id="conflict" value={onConflict.value} onChange={(event) => (onConflict.value = event.currentTarget.value)}>
              <option value="update">{say(said.update)}</option>
              <option value="skip">{say(said.skip)}</option>
            </select>
          </div>
          <div class="field">
            <label for="tags">{say(said.tags)}</label>
            <Picker id="tags" source={{ path: "/tags" }} isMany value={tags.value} change={(next) => (tags.value = next)} label={say(said.tags)} />
          </div>
          {!isMapped && <Note kind="warning">{say(said.need)}</Note>}
          <div class="row">
            <Button kind="primary" isDisabled={!isMapped} onClick={start}>
              {say(said.start)}
            </Button>
          </div>
        </>
      )}
      {(isRunning.value || end) && (
        <div class="field">
          <label for="progress">{say(said.progress, { done: count(done.value), all: count(body.length) })}</label>
          <progress id="progress" value={done.value} max={body.length} />
          {isRunning.value && <Button onClick={() => (isStopped.value = true)}>{say(said.stop)}</Button>}
        </div>
      )}
      {end && (
        <>
          <div role="status">
            <Note kind={end.errors.length || isStopped.value ? "warning" : "good"}>
              {say(said.done, { created: count(end.created), updated: count(end.updated), skipped: count(end.skipped), refused: count(new Set(end.errors.map(({ index }) => index)).size) })}
              {isStopped.value && ` ${say(said.stopped)} ${say(isSafe ? said.safe : said.unsafe)}`}
            </Note>
          </div>
          {end.errors.length > 0 && (
            <section class="card">
              <h2>{say(said.refused)}</h2>
              <Table
                label={say(said.refused)}
                rows={end.errors.slice(0, ERRORS_SHOWN_MAX).map((error, at) => ({ ...error, at }))}
                keyOf={({ at }) => at}
                columns={[
                  { label: say(said.line), show: ({ index }) => count(index) },
                  { label: say(said.column), show: ({ field }) => called(field) },
                  { label: say(said.why), show: (error) => reason(error.reason) },
                ]}
              />
            </section>
          )}
        </>
      )}
    </div>
  );
}

/** How often a part is sent that the service could not take now, or whose answer was lost. */
const TRIES_MAX = 6;

/** A part of the rows, again after the pause the service asks for. One whose answer was lost keeps its key, and is stored once. */
async function send(body: unknown, company: number | null): Promise<Report> {
  for (let tries = 1; ; tries++) {
    try {
      return ((await exchange("POST", "/contacts/import", { body, company })) as { data: Report }).data;
    } catch (failed) {
      const isPassing = failed instanceof Refused && [0, 429, 503].includes(failed.status);
      if (!isPassing || tries >= TRIES_MAX) throw failed;
      await new Promise((wait) => setTimeout(wait, (failed.retryAfterS ?? 2) * 1000));
    }
  }
}

/** Older spreadsheets write Windows' letters. */
function decode(bytes: ArrayBuffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}
