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
  { path: "companies", isFor: () => isAdmin() && !opened.value, from: 1, title: ["Companies", "Empresas", "Empresas"], text: ["Create a company and open it.", "Crie uma empresa e abra-a.", "Cree una empresa y ábrala."] },
  { path: "users", isFor: () => may("users", "GET"), from: 1, title: ["Users", "Usuários", "Usuarios"], text: ["Add who answers, and pass on their invitation links.", "Adicione quem atende e envie os links de convite.", "Añada a quienes atienden y envíe sus enlaces de invitación."] },
  { path: "queues", isFor: () => may("queues", "GET"), from: 1, title: ["Queues", "Filas", "Colas"], text: ["Create a queue and add its agents.", "Crie uma fila e adicione os agentes.", "Cree una cola y añada sus agentes."] },
  { path: "channels", isFor: administers, from: 1, title: ["Channels", "Canais", "Canales"], text: ["Create a webchat, and put its line into your pages.", "Crie um webchat e ponha a linha dele nas suas páginas.", "Cree un webchat y ponga su línea en sus páginas."] },
  { path: "tokens", isFor: administers, from: 1, title: ["API tokens", "Tokens da API", "Tokens de la API"], text: ["Let your other systems in.", "Deixe seus outros sistemas entrarem.", "Deje entrar a sus otros sistemas."] },
  { path: "quick-messages", isFor: () => may("quickMessages", "GET"), from: 1, title: ["Quick messages", "Respostas rápidas", "Respuestas rápidas"], text: ["Write once what is said often.", "Escreva uma vez o que se diz sempre.", "Escriba una vez lo que se dice a menudo."] },
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
      lead={opened.value?.name ?? session.value?.company?.name ?? say(["The installation", "A instalação", "La instalación"])}
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
                      <span class="soft">{say(done[at] ? ["Set up. See them, or add more.", "Pronto. Veja ou adicione mais.", "Listo. Véalos o añada más."] : text)}</span>
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
