// One's own account: name and language, password, second factor, sessions.

import { useSignal } from "@preact/signals";

import { get, post, put, remove, page } from "../core/client";
import { dropDraft } from "../core/drafts";
import { useLoaded } from "../core/loaded";
import { notify } from "../core/notices";
import { leave, look } from "../core/session";
import type { Account, OwnSession } from "../core/shapes";
import { moment, say, type Text } from "../core/text";
import { words } from "../core/words";
import { confirm, Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { Moment } from "../ui/moment";
import { Await, Badge, Button, Copyable, Note, Page } from "../ui/parts";
import { QrCode } from "../ui/qr";
import { reveal } from "../ui/reveal";
import { Table } from "../ui/table";
import { Gate } from "./sign_in";

const said = {
  title: ["Your account", "Sua conta", "Su cuenta"],
  about: ["About you", "Sobre você", "Sobre usted"],
  language: ["Language", "Idioma", "Idioma"],
  change: ["Change password", "Alterar senha", "Cambiar contraseña"],
  current: ["Current password", "Senha atual", "Contraseña actual"],
  next: ["New password", "Nova senha", "Nueva contraseña"],
  nextHint: ["At least 12 characters. Your other sessions will end.", "Pelo menos 12 caracteres. Suas outras sessões serão encerradas.", "Al menos 12 caracteres. Se cerrarán sus otras sesiones."],
  factor: ["Two-step verification", "Verificação em duas etapas", "Verificación en dos pasos"],
  factorLead: ["A code from your phone as well as your password.", "Um código do seu celular, além da senha.", "Un código de su teléfono, además de la contraseña."],
  isOn: ["On. Recovery codes left: {count}.", "Ativada. Códigos de recuperação restantes: {count}.", "Activada. Códigos de recuperación restantes: {count}."],
  isOff: ["Not set up.", "Não configurada.", "Sin configurar."],
  setUp: ["Set up", "Configurar", "Configurar"],
  turnOff: ["Turn off", "Desativar", "Desactivar"],
  newCodes: ["New recovery codes", "Novos códigos de recuperação", "Nuevos códigos de recuperación"],
  codes: ["Recovery codes", "Códigos de recuperação", "Códigos de recuperación"],
  codesLead: ["Each code signs you in once without your phone. Keep them somewhere safe.", "Cada código permite entrar uma vez sem o celular. Guarde-os em um lugar seguro.", "Cada código permite iniciar sesión una vez sin el teléfono. Guárdelos en un lugar seguro."],
  scan: ["Scan this code with your authenticator app, or enter the key.", "Escaneie este código com seu aplicativo autenticador ou digite a chave.", "Escanee este código con su aplicación de autenticación o escriba la clave."],
  key: ["Key", "Chave", "Clave"],
  digits: ["Six-digit code", "Código de seis dígitos", "Código de seis dígitos"],
  confirm: ["Confirm", "Confirmar", "Confirmar"],
  continue: ["Continue", "Continuar", "Continuar"],
  must: ["Two-step verification is required here. Set it up to continue.", "A verificação em duas etapas é obrigatória aqui. Configure-a para continuar.", "Aquí la verificación en dos pasos es obligatoria. Configúrela para continuar."],
  sessions: ["Sessions", "Sessões", "Sesiones"],
  sessionsLead: ["Devices where you are signed in.", "Dispositivos em que você está conectado.", "Dispositivos en los que tiene la sesión abierta."],
  device: ["Browser", "Navegador", "Navegador"],
  address: ["IP address", "Endereço IP", "Dirección IP"],
  seen: ["Last active", "Última atividade", "Última actividad"],
  until: ["Expires", "Expira em", "Caduca"],
  this: ["this session", "esta sessão", "esta sesión"],
  endOne: ["End", "Encerrar", "Cerrar"],
  end: ["End session", "Encerrar sessão", "Cerrar sesión"],
  endOthers: ["End all other sessions", "Encerrar todas as outras sessões", "Cerrar todas las demás sesiones"],
  endOthersAsk: ["You will have to sign in again everywhere else.", "Você precisará entrar de novo em todos os outros dispositivos.", "Tendrá que volver a iniciar sesión en los demás dispositivos."],
  removeAsk: ["You will sign in with your password only.", "Você vai entrar apenas com a senha.", "Iniciará sesión solo con la contraseña."],
  codesAsk: ["Your old codes stop working.", "Seus códigos antigos deixam de funcionar.", "Sus códigos anteriores dejan de funcionar."],
} as const satisfies Record<string, Text>;

const passwordField = { name: "password", kind: "password", label: said.current, isRequired: true } as const;

export function AccountPage() {
  const account = useLoaded<Account>((stop) => get("/account", {}, stop), []);
  const save = async (body: Record<string, unknown>) => {
    account.data.value = await put<Account>("/account", body);
    await look();
    notify(say(words.saved));
  };
  const changePassword = async (body: Record<string, unknown>) => {
    await put("/account/password", { currentPassword: body.currentPassword ?? "", password: body.password ?? "" });
    dropDraft("account/password");
    notify(say(words.saved));
    version.value += 1;
  };
  const version = useSignal(0);
  return (
    <Page title={say(said.title)}>
      <Await what={account}>
        {(own) => (
          <div class="cards">
            <section class="card">
              <h2>{say(said.about)}</h2>
              <p class="soft">{own.email}</p>
              <Form
                name="account"
                record={own as unknown as Record<string, unknown>}
                fields={[
                  { name: "name", kind: "line", label: words.name, isRequired: true },
                  {
                    name: "language",
                    kind: "choice",
                    label: said.language,
                    none: ["Browser default", "Padrão do navegador", "Predeterminado del navegador"],
                    options: [
                      ["en", ["English", "English", "English"]],
                      ["pt", ["Português", "Português", "Português"]],
                      ["es", ["Español", "Español", "Español"]],
                    ],
                  },
                ]}
                submit={save}
                label={say(words.save)}
              />
            </section>
            <section class="card">
              <h2>{say(said.change)}</h2>
              <Form
                key={version.value}
                name="account/password"
                fields={[
                  { name: "currentPassword", kind: "password", label: said.current, isRequired: true },
                  { name: "password", kind: "new-password", label: said.next, hint: said.nextHint, isRequired: true },
                ]}
                submit={changePassword}
                label={say(said.change)}
              />
            </section>
            <SecondFactor account={own} again={account.again} />
            <Sessions version={version.value} />
          </div>
        )}
      </Await>
    </Page>
  );
}

const showCodes = (codes: string[], then: () => void) =>
  reveal({ title: say(said.codes), text: <p>{say(said.codesLead)}</p>, items: [{ label: say(said.codes), value: codes.join("\n"), isLong: true }], then });

function SecondFactor({ account, again }: { account: Account; again: () => void }) {
  const asked = useSignal<"" | "set" | "remove" | "codes">("");
  const close = () => (asked.value = "");
  const drop = async (body: Record<string, unknown>) => {
    await post("/account/second-factor/remove", body);
    close();
    again();
    notify(say(words.saved));
  };
  const renew = async (body: Record<string, unknown>) => {
    const { recoveryCodes } = await post<{ recoveryCodes: string[] }>("/account/second-factor/recovery-codes", body);
    close();
    showCodes(recoveryCodes, again);
  };
  return (
    <section class="card wide">
      <h2>{say(said.factor)}</h2>
      <p class="soft">{say(said.factorLead)}</p>
      <p>{account.secondFactor ? <Badge kind="good">{say(said.isOn, { count: account.recoveryCodesLeft ?? 0 })}</Badge> : <Badge kind="off">{say(said.isOff)}</Badge>}</p>
      <div class="row">
        {account.secondFactor ? (
          <>
            <Button onClick={() => (asked.value = "codes")}>{say(said.newCodes)}</Button>
            <Button kind="danger" onClick={() => (asked.value = "remove")}>
              {say(said.turnOff)}
            </Button>
          </>
        ) : (
          <Button kind="primary" onClick={() => (asked.value = "set")}>
            {say(said.setUp)}
          </Button>
        )}
      </div>
      {asked.value === "set" && (
        <Dialog title={say(said.factor)} onClose={close}>
          <Enrolment
            done={(codes) => {
              close();
              showCodes(codes, again);
            }}
          />
        </Dialog>
      )}
      {(asked.value === "remove" || asked.value === "codes") && (
        <Dialog title={say(asked.value === "remove" ? said.turnOff : said.newCodes)} onClose={close}>
          <p>{say(asked.value === "remove" ? said.removeAsk : said.codesAsk)}</p>
          <Form
            name={`account/${asked.value}`}
            fields={[passwordField]}
            isWhole
            submit={asked.value === "remove" ? drop : renew}
            label={say(said.continue)}
            cancel={close}
          />
        </Dialog>
      )}
    </section>
  );
}

/** A second factor is set up: the password, then what the app is given, then what it shows. */
function Enrolment({ done }: { done: (recoveryCodes: string[]) => void }) {
  const given = useSignal<{ secret: string; uri: string } | null>(null);
  const start = async (body: Record<string, unknown>) => {
    given.value = await post<{ secret: string; uri: string }>("/account/second-factor", body);
  };
  const finish = async (body: Record<string, unknown>) => {
    const { recoveryCodes } = await post<{ recoveryCodes: string[] }>("/account/second-factor/confirm", { code: String(body.code ?? "").replace(/\s/g, "") });
    done(recoveryCodes);
  };
  if (!given.value) {
    return <Form key="password" takesFocus name="account/enrol" fields={[passwordField]} isWhole submit={start} label={say(said.continue)} />;
  }
  return (
    <div class="stack">
      <p>{say(said.scan)}</p>
      <QrCode text={given.value.uri} label={say(said.factor)} />
      <Copyable label={say(said.key)} value={given.value.secret} />
      <Form key="code" takesFocus name="account/confirm" fields={[{ name: "code", kind: "code", label: said.digits, isRequired: true }]} isWhole submit={finish} label={say(said.confirm)} />
    </div>
  );
}

/** The same before anything else, where it is required. */
export function EnrolPage() {
  return (
    <Gate title={say(said.factor)}>
      <Note>{say(said.must)}</Note>
      <Enrolment done={(codes) => showCodes(codes, () => void look())} />
      <Button kind="plain" onClick={leave}>
        {say(words.cancel)}
      </Button>
    </Gate>
  );
}

function Sessions({ version }: { version: number }) {
  const found = useLoaded(async (stop) => (await page<OwnSession>("/account/sessions", { perPage: 100 }, stop)).data, [version]);
  const end = (one: OwnSession) =>
    confirm({
      title: say(said.end),
      text: <p>{one.userAgent ? browserOf(one.userAgent) : one.address}</p>,
      yes: say(said.end),
      act: async () => {
        await remove(`/account/sessions/${one.id}`);
        if (one.current) return leave();
        found.again();
      },
    });
  const endOthers = () =>
    confirm({
      title: say(said.endOthers),
      text: <p>{say(said.endOthersAsk)}</p>,
      yes: say(said.endOthers),
      act: async () => {
        await post("/account/sessions/end-others");
        found.again();
      },
    });
  return (
    <section class="card wide">
      <h2>{say(said.sessions)}</h2>
      <p class="soft">{say(said.sessionsLead)}</p>
      <Await what={found}>
        {(all) => (
          <>
            <Table
              label={say(said.sessions)}
              rows={all}
              keyOf={(one) => one.id}
              columns={[
                {
                  label: say(said.device),
                  show: (one) => (
                    <>
                      {browserOf(one.userAgent ?? "")} {one.current && <Badge kind="good">{say(said.this)}</Badge>}
                    </>
                  ),
                },
                { label: say(said.address), show: (one) => <span class="address">{one.address}</span> },
                { label: say(said.seen), show: (one) => <Moment at={one.lastSeenAt} /> },
                { label: say(said.until), show: (one) => <Moment at={one.expiresAt} /> },
                {
                  label: say(words.actions),
                  kind: "actions",
                  show: (one) => (
                    <Button onClick={() => end(one)} label={`${say(said.end)}: ${browserOf(one.userAgent ?? "")}, ${moment(one.lastSeenAt)}`}>
                      {say(said.endOne)}
                    </Button>
                  ),
                },
              ]}
            />
            {all.length > 1 && <Button onClick={endOthers}>{say(said.endOthers)}</Button>}
          </>
        )}
      </Await>
    </section>
  );
}

/** What people call a browser that calls itself many things. */
function browserOf(agent: string): string {
  const name = [/Edg\//, /OPR\//, /Firefox\//, /Chrome\//, /Safari\//].findIndex((mark) => mark.test(agent));
  const names = ["Edge", "Opera", "Firefox", "Chrome", "Safari"];
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(agent)?.[0] ?? "";
  return [names[name] ?? (agent.slice(0, 40) || "?"), system].filter(Boolean).join(", ");
}

