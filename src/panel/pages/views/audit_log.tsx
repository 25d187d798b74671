// The audit log of a company or of the installation. It is read-only.

import type { AuditEntry } from "../core/shapes";
import { isAdmin, opened } from "../core/session";
import { say, type Text } from "../core/text";
import { PagedList } from "../resource/list";
import { ACTIONS } from "../resources/actions";
import { COMMANDS } from "../resources/commands";
import { Moment } from "../ui/moment";
import { Badge, Page } from "../ui/parts";

const said = {
  title: ["Audit log", "Registro de auditoria", "Registro de auditoría"],
  ofCompany: ["What administrators changed in this company, when, and from where.", "O que os administradores alteraram nesta empresa, quando e de onde.", "Qué cambiaron los administradores en esta empresa, cuándo y desde dónde."],
  ofInstallation: ["What administrators changed on this server, when, and from where.", "O que os administradores alteraram neste servidor, quando e de onde.", "Qué cambiaron los administradores en este servidor, cuándo y desde dónde."],
  when: ["When", "Quando", "Cuándo"],
  who: ["Who", "Quem", "Quién"],
  what: ["Action", "Ação", "Acción"],
  target: ["Target", "Item", "Elemento"],
  address: ["IP address", "Endereço IP", "Dirección IP"],
  from: ["From", "Desde", "Desde"],
  to: ["Until", "Até", "Hasta"],
  result: ["Result", "Resultado", "Resultado"],
  empty: ["No activity yet.", "Nenhuma atividade ainda.", "Todavía no hay actividad."],
} as const satisfies Record<string, Text>;

/** The title of an action; one without a title, as of another release, is shown by its id. */
function actionTitle(action: string) {
  const title = ACTIONS[action] ?? COMMANDS[action];
  return title ? <span class="action">{say(title)}</span> : <code>{action}</code>;
}

/** A name, which may be of any length and in any language. */
function freeName(name: string | null) {
  return name && <span class="called" data-free>{name}</span>;
}

export function AuditLogPage() {
  const isOfInstallation = isAdmin() && !opened.value;
  return (
    <Page title={say(said.title)} lead={say(isOfInstallation ? said.ofInstallation : said.ofCompany)}>
      <PagedList<AuditEntry>
        path={isOfInstallation ? "/installation/audit-log" : "/audit-log"}
        query={{}}
        label={say(said.title)}
        filters={[
          { name: "action", kind: "choice", label: said.what, options: Object.entries({ ...ACTIONS, ...COMMANDS }) },
          { name: "from", kind: "moment", label: said.from },
          { name: "to", kind: "moment", label: said.to },
        ]}
        isSearched
        columns={[
          { label: say(said.when), show: (entry) => <Moment at={entry.at} /> },
          { label: say(said.who), show: (entry) => freeName(entry.actor.name) },
          { label: say(said.what), show: (entry) => actionTitle(entry.action) },
          { label: say(said.target), show: (entry) => entry.target && freeName(entry.target.name ? `${entry.target.name} (${entry.target.id})` : String(entry.target.id)) },
          { label: say(said.address), show: (entry) => <span class="address">{entry.address}</span> },
          { label: say(said.result), show: (entry) => entry.status !== null && <Badge kind={entry.status < 400 ? "good" : "bad"}>{entry.status}</Badge> },
        ]}
        empty={<p>{say(said.empty)}</p>}
      />
    </Page>
  );
}
