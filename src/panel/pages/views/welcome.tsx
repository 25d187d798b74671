// Behind an invitation or a reset link: a password is chosen. The link's token is in the fragment, which no server and no
// log sees.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { exchange, Refused } from "../core/client";
import type { LinkTarget } from "../core/shapes";
import { leave } from "../core/session";
import { say, type Text } from "../core/text";
import { explain } from "../core/reasons";
import { words } from "../core/words";
import { Form } from "../ui/form";
import { LinkButton, Note, Trouble, Waiting } from "../ui/parts";
import { Gate } from "./sign_in";

const said = {
  title: ["Choose a password", "Escolha uma senha", "Elija una contraseña"],
  invitation: ["Welcome, {name}. You will sign in to {company} as {email}.", "Boas-vindas, {name}. Você vai entrar em {company} com {email}.", "Le damos la bienvenida, {name}. Iniciará sesión en {company} con {email}."],
  reset: ["{name}, choose a new password for {email}.", "{name}, escolha uma nova senha para {email}.", "{name}, elija una nueva contraseña para {email}."],
  hint: ["At least 12 characters. A few unrelated words are easy to remember.", "Pelo menos 12 caracteres. Algumas palavras sem relação são fáceis de lembrar.", "Al menos 12 caracteres. Unas cuantas palabras sin relación se recuerdan bien."],
  expired: ["This link has been used or has expired. Ask for a new one.", "Este link já foi usado ou expirou. Peça um novo.", "Este enlace ya se usó o caducó. Pida uno nuevo."],
  done: ["Your password is set.", "Sua senha está definida.", "Su contraseña está definida."],
  signIn: ["Sign in", "Entrar", "Iniciar sesión"],
  set: ["Set password", "Definir senha", "Definir contraseña"],
} as const satisfies Record<string, Text>;

const isExpired = (failed: unknown) => failed instanceof Refused && failed.code === "ERR_API_LINK_EXPIRED";

export function WelcomePage() {
  const token = useSignal(location.hash.slice(1));
  const target = useSignal<LinkTarget | null>(null);
  const failure = useSignal("");
  const isDone = useSignal(false);
  const refuse = (failed: unknown) => (failure.value = isExpired(failed) ? say(said.expired) : explain(failed));
  useEffect(() => {
    // Not kept in the history, where the next one at this computer finds it.
    history.replaceState(null, "", location.pathname);
    exchange("POST", "/links/read", { body: { token: token.value }, quiet: true }).then(
      (answer) => (target.value = (answer as { data: LinkTarget }).data),
      refuse,
    );
  }, []);
  const submit = async (body: Record<string, unknown>) => {
    try {
      await exchange("POST", "/links/use", { body: { token: token.value, password: body.password ?? "" }, quiet: true });
    } catch (failed) {
      if (!isExpired(failed)) throw failed;
      target.value = null;
      refuse(failed);
      return;
    }
    isDone.value = true;
    // The link may be for another person than the one who is signed in in this browser.
    await leave();
  };
  const found = target.value;
  return (
    <Gate title={say(said.title)}>
      {failure.value && <Trouble text={failure.value} />}
      {isDone.value ? (
        <>
          <Note kind="good">{say(said.done)}</Note>
          <LinkButton to="/" kind="primary">
            {say(said.signIn)}
          </LinkButton>
        </>
      ) : found ? (
        <>
          <p>{say(found.kind === "invitation" ? said.invitation : said.reset, { name: found.name, email: found.email, company: found.companyName ?? say(words.product) })}</p>
          <input type="email" class="unseen" autoComplete="username" value={found.email} readOnly tabIndex={-1} aria-hidden="true" />
          <Form
            name="welcome"
            takesFocus
            fields={[{ name: "password", kind: "new-password", label: words.password, hint: said.hint, isRequired: true }]}
            submit={submit}
            label={say(said.set)}
          />
        </>
      ) : failure.value ? (
        <LinkButton to="/">{say(said.signIn)}</LinkButton>
      ) : (
        <Waiting />
      )}
    </Gate>
  );
}

/** Whether the address is the page's. */
export const isWelcome = ({ scope, path }: { scope: unknown; path: string }) => scope === null && path === "/welcome";
