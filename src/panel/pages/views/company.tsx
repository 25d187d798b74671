// The company's own settings.

import { get, put } from "../core/client";
import { useLoaded } from "../core/loaded";
import { notify } from "../core/notices";
import { administers, look, opened } from "../core/session";
import type { Company } from "../core/shapes";
import { say } from "../core/text";
import { words } from "../core/words";
import { Form } from "../ui/form";
import { Await, Page } from "../ui/parts";

export function CompanyPage() {
  const company = useLoaded<Company>((stop) => get("/company", {}, stop), []);
  const save = async (body: Record<string, unknown>) => {
    company.data.value = await put<Company>("/company", body);
    await look();
    if (opened.value) opened.value = { id: opened.value.id, name: company.data.value.name };
    notify(say(words.saved));
  };
  return (
    <Page title={say(["Company", "Empresa", "Empresa"])}>
      <Await what={company}>
        {(found) => (
          <Form
            name={`company/${found.id}`}
            record={found as unknown as Record<string, unknown>}
            isReadOnly={!administers()}
            fields={[
              { name: "name", kind: "line", label: words.name, isRequired: true },
              { name: "timeZone", kind: "line", label: ["Time zone", "Fuso horário", "Zona horaria"], example: "America/Sao_Paulo", isRequired: true, hint: ["Days and months of reports are counted in it.", "Dias e meses dos relatórios são contados nele.", "Los días y meses de los informes se cuentan en ella."] },
              { name: "stopWords", kind: "lines", label: ["Words that end marketing", "Palavras que encerram o marketing", "Palabras que terminan el marketing"], hint: ["One a line. A contact who writes one alone gets no more campaigns.", "Uma por linha. O contato que escrever só isso não recebe mais campanhas.", "Una por línea. El contacto que escriba solo eso no recibe más campañas."] },
              { name: "secondFactorRequired", kind: "check", label: ["Everybody needs a second factor", "Todos precisam do segundo fator", "Todos necesitan un segundo factor"] },
            ]}
            submit={save}
            label={say(words.save)}
          />
        )}
      </Await>
    </Page>
  );
}
