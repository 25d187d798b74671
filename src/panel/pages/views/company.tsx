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
              { name: "timeZone", kind: "line", label: ["Time zone", "Fuso horário", "Zona horaria"], example: "America/Sao_Paulo", isRequired: true, hint: ["Reports count days and months in this time zone.", "Os relatórios contam dias e meses neste fuso horário.", "Los informes cuentan días y meses en esta zona horaria."] },
              { name: "stopWords", kind: "lines", label: ["Opt-out words", "Palavras de descadastro", "Palabras para darse de baja"], hint: ["One per line. A contact whose message is one of these words receives no more campaigns.", "Uma por linha. O contato cuja mensagem for uma dessas palavras não recebe mais campanhas.", "Una por línea. El contacto cuyo mensaje sea una de estas palabras no recibe más campañas."] },
              { name: "secondFactorRequired", kind: "check", label: ["Require two-step verification for everyone", "Exigir verificação em duas etapas para todos", "Exigir la verificación en dos pasos a todos"] },
            ]}
            submit={save}
            label={say(words.save)}
          />
        )}
      </Await>
    </Page>
  );
}
