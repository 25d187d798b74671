// The first page: what is to be set up, in the order in which it makes sense, and how far it has come.

import { page } from "../core/client";
import { useLoaded } from "../core/loaded";
import { href } from "../core/router";
import { administers, isAdmin, may, opened, session } from "../core/session";
import { say, type Text } from "../core/text";
import { Icon } from "../ui/icons";
import { Await, Page } from "../ui/parts";

interface Step {
  path: string;
  isFor: () => boolean;
  title: Text;
  text: Text;
  /** With how many there is something: a company has some from its beginning. */
  from: number;
}

const STEPS: Step[] = [
  { path: "companies", isFor: () => isAdmin() && !opened.value, from: 1, title: ["Companies", "Empresas", "Empresas"], text: ["Create a company and go to it", "Crie uma empresa e acesse-a", "Cree una empresa y acceda a ella"] },
  { path: "users", isFor: () => may("users", "GET"), from: 1, title: ["Users", "Usuários", "Usuarios"], text: ["Invite your team", "Convide sua equipe", "Invite a su equipo"] },
  { path: "queues", isFor: () => may("queues", "GET"), from: 1, title: ["Queues", "Filas", "Colas"], text: ["Create a queue and add its agents", "Crie uma fila e adicione os agentes", "Cree una cola y añada sus agentes"] },
  { path: "channels", isFor: administers, from: 1, title: ["Channels", "Canais", "Canales"], text: ["Add the chat to your website", "Adicione o chat ao seu site", "Añada el chat a su sitio web"] },
  { path: "tokens", isFor: administers, from: 1, title: ["API tokens", "Tokens da API", "Tokens de la API"], text: ["Connect another system (optional)", "Conecte outro sistema (opcional)", "Conecte otro sistema (opcional)"] },
  { path: "quick-messages", isFor: () => may("quickMessages", "GET"), from: 1, title: ["Quick messages", "Respostas rápidas", "Respuestas rápidas"], text: ["Save replies you send often", "Salve as respostas que você envia sempre", "Guarde las respuestas que envía a menudo"] },
];

export function HomePage() {
  const steps = STEPS.filter(({ isFor }) => isFor());
  const found = useLoaded(
    (stop) => Promise.all(steps.map(async ({ path, from }) => (await page(`/${path}`, { perPage: from }, stop)).data.length >= from)),
    [opened.value?.id],
  );
  const name = session.value?.person?.name ?? "";
  return (
    <Page
      title={say(["Hello, {name}", "Olá, {name}", "Hola, {name}"], { name })}
      lead={opened.value?.name ?? session.value?.company?.name ?? say(["All companies", "Todas as empresas", "Todas las empresas"])}
    >
      {steps.length > 0 && (
        <Await what={found}>
          {(done) => (
            <ol class="steps">
              {steps.map(({ path, title, text }, at) => (
                <li key={path}>
                  <a class="card step" href={href(`/${path}`)}>
                    <span class={`mark ${done[at] ? "done" : ""}`}>{done[at] ? <Icon name="check" /> : at + 1}</span>
                    <span>
                      <strong>{say(title)}</strong>
                      <span class="soft">{say(done[at] ? ["Done", "Pronto", "Listo"] : text)}</span>
                    </span>
                  </a>
                </li>
              ))}
            </ol>
          )}
        </Await>
      )}
    </Page>
  );
}
