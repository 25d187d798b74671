// Signing in: a password, a company when there are several, a second factor; and the same over a page whose session has
// ended, where nothing of it is lost.

import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren, Ref } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { exchange, Refused, type Of } from "../core/client";
import { explain } from "../core/reasons";
import { here } from "../core/router";
import { enter, forget, isEnded, leave, resume, session, stage } from "../core/session";
import type { SignIn } from "../core/shapes";
import { counted, say, type Counted, type Text } from "../core/text";
import { words } from "../core/words";
import { Dialog } from "../ui/dialog";
import { Languages } from "../ui/languages";
import { Button, Note, Trouble } from "../ui/parts";

const said = {
  title: ["Sign in", "Entrar", "Iniciar sesión"],
  lead: ["Customer service, in one place.", "Atendimento em um só lugar.", "Atención al cliente, en un solo lugar."],
  wrong: ["Wrong e-mail or password.", "E-mail ou senha incorretos.", "Correo electrónico o contraseña incorrectos."],
  wrongCode: ["Wrong code.", "Código incorreto.", "Código incorrecto."],
  slow: {
    one: ["Too many attempts. Wait {count} second.", "Muitas tentativas seguidas. Aguarde {count} segundo.", "Demasiados intentos. Espere {count} segundo."],
    other: ["Too many attempts. Wait {count} seconds.", "Muitas tentativas seguidas. Aguarde {count} segundos.", "Demasiados intentos. Espere {count} segundos."],
  },
  choose: ["Choose a company", "Escolha uma empresa", "Elija una empresa"],
  installation: ["All companies", "Todas as empresas", "Todas las empresas"],
  factor: ["Two-step verification", "Verificação em duas etapas", "Verificación en dos pasos"],
  factorLead: ["Enter the six-digit code from your authenticator app.", "Digite o código de seis dígitos do seu aplicativo autenticador.", "Escriba el código de seis dígitos de su aplicación de autenticación."],
  code: ["Code", "Código", "Código"],
  recovery: ["Recovery code", "Código de recuperação", "Código de recuperación"],
  useRecovery: ["Use a recovery code", "Usar um código de recuperação", "Usar un código de recuperación"],
  useApp: ["Use the authenticator app", "Usar o aplicativo autenticador", "Usar la aplicación de autenticación"],
  continue: ["Continue", "Continuar", "Continuar"],
  another: ["Use another account", "Usar outra conta", "Usar otra cuenta"],
  forgotten: ["Forgot your password? Ask an administrator for a link.", "Esqueceu a senha? Peça um link a um administrador.", "¿Olvidó la contraseña? Pida un enlace a un administrador."],
  forgot: ["Forgot your password?", "Esqueceu a senha?", "¿Olvidó la contraseña?"],
  forgotTitle: ["Reset your password", "Redefinir sua senha", "Restablecer su contraseña"],
  forgotLead: ["We'll e-mail you a link to choose a new password.", "Enviaremos por e-mail um link para escolher uma nova senha.", "Le enviaremos por correo electrónico un enlace para elegir una contraseña nueva."],
  send: ["Send link", "Enviar link", "Enviar enlace"],
  sent: ["If {email} has an account, we've sent it a link. If you don't see it in a few minutes, check spam.", "Se {email} tiver uma conta, enviamos um link. Se não o vir em alguns minutos, verifique a caixa de spam.", "Si {email} tiene una cuenta, le hemos enviado un enlace. Si no lo ve en unos minutos, revise el correo no deseado."],
  notEmail: ["Enter a valid e-mail address.", "Digite um e-mail válido.", "Escriba un correo electrónico válido."],
  back: ["Back to sign-in", "Voltar ao login", "Volver al inicio de sesión"],
  ended: ["Your session has ended", "Sua sessão terminou", "Su sesión terminó"],
  endedLead: ["Sign in again to continue. Your changes on this page are kept.", "Entre de novo para continuar. Suas alterações nesta página foram mantidas.", "Vuelva a iniciar sesión para continuar. Sus cambios en esta página se conservan."],
} as const satisfies Record<string, Text | Counted>;

interface TypedProps {
  label: Text;
  value: Signal<string>;
  field: Ref<HTMLInputElement>;
  type: "email" | "password" | "text";
  autoComplete: "username" | "current-password" | "one-time-code";
  inputMode?: "text" | "numeric";
  readOnly?: boolean;
  "aria-describedby"?: string;
}

/** What somebody types to be let in. */
function Typed({ label, value, field, type, ...input }: TypedProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{say(label)}</label>
      <input {...input} type={type as "text"} ref={field} id={id} value={value.value} onInput={(event) => (value.value = event.currentTarget.value)} />
    </div>
  );
}

interface Steps {
  /** Whose session has ended: only they go on. */
  email?: string;
  done: (answer: SignIn) => void;
}

/** What to say of a step that was refused. */
function whyNot(failed: unknown, wrong: Text): string {
  if (failed instanceof Refused && failed.status === 429) return counted(failed.retryAfterS ?? 60, said.slow);
  if (failed instanceof Refused && (failed.status === 401 || failed.status === 422)) return say(wrong);
  return explain(failed);
}

function Steps({ email: fixed, done }: Steps) {
  const step = useSignal<"password" | "choose" | "factor">(stage.value === "secondFactor" && !fixed ? "factor" : "password");
  const email = useSignal(fixed ?? "");
  const password = useSignal("");
  const choices = useSignal<SignIn["choices"]>([]);
  const code = useSignal("");
  const isRecovery = useSignal(false);
  const failure = useSignal("");
  const isBusy = useSignal(false);
  const id = useId();
  const first = useRef<HTMLInputElement>(null);
  const secret = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), [step.value, isRecovery.value]);
  /** What is most likely wrong is typed again. */
  const again = () => {
    const field = secret.current ?? first.current;
    field?.focus();
    field?.select();
  };

  const take = (answer: SignIn) => {
    failure.value = "";
    if (answer.state === "choose") {
      choices.value = answer.choices;
      const same = fixed && answer.choices.find((it) => (session.value?.person?.kind === "admin" ? it.admin : it.companyId === session.value?.company?.id));
      if (same) return void signIn(same);
      // A link says in which company it is to be seen.
      const { scope } = here.value;
      const named = answer.choices.find((it) => (scope === "server" ? it.admin : it.companyId === scope && scope !== null));
      if (named && !fixed) return void signIn(named);
      step.value = "choose";
    } else if (answer.state === "secondFactor" && fixed) step.value = "factor";
    else done(answer);
  };
  const send = async (path: string, body: unknown, wrong: Text) => {
    if (isBusy.value) return;
    isBusy.value = true;
    try {
      const answer = ((await exchange("POST", path, { body, quiet: true })) as { data: SignIn }).data;
      isBusy.value = false;
      take(answer);
    } catch (failed) {
      failure.value = whyNot(failed, wrong);
      // Too many wrong codes have ended the session that waited for one.
      if (failed instanceof Refused && failed.code === "ERR_API_UNAUTHORIZED") {
        if (fixed) step.value = "password";
        else forget();
      }
      again();
    } finally {
      isBusy.value = false;
    }
  };
  const signIn = (choice?: SignIn["choices"][number]) => {
    const where = choice ? (choice.admin ? { admin: true } : { companyId: choice.companyId }) : {};
    return send("/session", { email: email.value.trim(), password: password.value, ...where }, said.wrong);
  };
  const confirm = () => {
    const given = code.value.trim();
    return send("/session/second-factor", isRecovery.value ? { recoveryCode: given } : { code: given.replace(/\s/g, "") }, said.wrongCode);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void (step.value === "factor" ? confirm() : signIn());
  };

  if (step.value === "choose") {
    return (
      <div class="stack">
        <p>{say(said.choose)}</p>
        {choices.value.map((choice) => (
          <Button key={choice.companyId ?? "admin"} onClick={() => signIn(choice)}>
            {choice.admin ? say(said.installation) : choice.companyName}
          </Button>
        ))}
        {failure.value && <Trouble text={failure.value} />}
      </div>
    );
  }
  const isFactor = step.value === "factor";
  return (
    <form class="stack" onSubmit={submit} noValidate aria-busy={isBusy.value}>
      {isFactor ? (
        <>
          <p class="soft" id={`${id}-lead`}>
            {say(said.factorLead)}
          </p>
          <Typed
            label={isRecovery.value ? said.recovery : said.code}
            value={code}
            field={first}
            type="text"
            inputMode={isRecovery.value ? "text" : "numeric"}
            autoComplete="one-time-code"
            aria-describedby={`${id}-lead`}
          />
        </>
      ) : (
        <>
          <Typed label={words.email} value={email} field={fixed ? null : first} type="email" autoComplete="username" readOnly={Boolean(fixed)} />
          <Typed label={words.password} value={password} field={fixed ? first : secret} type="password" autoComplete="current-password" />
        </>
      )}
      {failure.value && <Trouble text={failure.value} />}
      <Button submit kind="primary">
        {say(isBusy.value ? words.working : isFactor ? said.continue : said.title)}
      </Button>
      {isFactor && (
        <Button
          kind="plain"
          onClick={() => {
            isRecovery.value = !isRecovery.value;
            code.value = "";
            failure.value = "";
          }}
        >
          {say(isRecovery.value ? said.useApp : said.useRecovery)}
        </Button>
      )}
    </form>
  );
}

/** A page before anybody is in. */
export function Gate({ title, children }: { title: string; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · ${say(words.product)}`;
  }, [title]);
  return (
    <main class="gate">
      <div class="box">
        <p class="brand" translate={false}>
          Hotline
        </p>
        <h1>{title}</h1>
        {children}
      </div>
      <Languages />
    </main>
  );
}

/** Asks for a link by mail. What is answered does not tell whether there is anybody, and neither does the page. */
function Forgotten({ back }: { back: () => void }) {
  const email = useSignal("");
  const sentTo = useSignal("");
  const failure = useSignal("");
  const isBusy = useSignal(false);
  const id = useId();
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (isBusy.value) return;
    isBusy.value = true;
    failure.value = "";
    const asked = email.value.trim();
    try {
      await exchange("POST", "/links/forgotten", { body: { email: asked }, quiet: true });
      sentTo.value = asked;
    } catch (failed) {
      failure.value = whyNot(failed, said.notEmail);
      first.current?.focus();
    } finally {
      isBusy.value = false;
    }
  };
  return (
    <Gate title={say(said.forgotTitle)}>
      {sentTo.value ? (
        <Note kind="good">{say(said.sent, { email: sentTo.value })}</Note>
      ) : (
        <form class="stack" onSubmit={submit} noValidate aria-busy={isBusy.value}>
          <p class="soft" id={`${id}-lead`}>
            {say(said.forgotLead)}
          </p>
          <Typed label={words.email} value={email} field={first} type="email" autoComplete="username" aria-describedby={`${id}-lead`} />
          {failure.value && <Trouble text={failure.value} />}
          <Button submit kind="primary">
            {say(isBusy.value ? words.working : said.send)}
          </Button>
        </form>
      )}
      <Button kind="plain" onClick={back}>
        {say(said.back)}
      </Button>
    </Gate>
  );
}

export function SignInPage() {
  const isFactor = stage.value === "secondFactor";
  const isForgotten = useSignal(false);
  const sendsMail = useSignal(false);
  useEffect(() => {
    exchange("GET", "/session/options", { quiet: true }).then(
      (answer) => (sendsMail.value = (answer as { data: Of<"SignInOptions"> }).data.resetsByMail),
      // If the service cannot be reached, signing in shows that.
      () => {},
    );
  }, []);
  if (isForgotten.value && !isFactor) return <Forgotten back={() => (isForgotten.value = false)} />;
  return (
    <Gate title={say(isFactor ? said.factor : said.title)}>
      <Steps key={stage.value} done={enter} />
      {isFactor ? (
        <Button kind="plain" onClick={leave}>
          {say(said.another)}
        </Button>
      ) : sendsMail.value ? (
        <Button kind="plain" onClick={() => (isForgotten.value = true)}>
          {say(said.forgot)}
        </Button>
      ) : (
        <p class="hint">{say(said.forgotten)}</p>
      )}
    </Gate>
  );
}

/** Over a page whose session has ended. */
export function SignInAgain() {
  if (!isEnded.value) return null;
  return (
    <Dialog title={say(said.ended)} onClose={() => {}} isFirm>
      <Note>{say(said.endedLead)}</Note>
      <Steps email={session.value?.person?.email ?? ""} done={resume} />
      <Button kind="plain" onClick={forget}>
        {say(said.another)}
      </Button>
    </Dialog>
  );
}
