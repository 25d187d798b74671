// Beside a user: the links that let them in.

import { post, type Of } from "../core/client";
import { administers } from "../core/session";
import type { Link } from "../core/shapes";
import { moment, say, type Text } from "../core/text";
import { notify } from "../core/notices";
import { words } from "../core/words";
import { confirm } from "../ui/dialog";
import { Button } from "../ui/parts";
import { reveal } from "../ui/reveal";

const said = {
  title: ["Sign-in", "Acesso", "Acceso"],
  lead: ["Send a link to set a password. Without e-mail, copy it and send it yourself.", "Envie um link para definir a senha. Sem e-mail, copie-o e envie você mesmo.", "Envíe un enlace para definir la contraseña. Sin correo electrónico, cópielo y envíelo usted."],
  sent: ["The link was sent to {email}.", "O link foi enviado para {email}.", "El enlace se envió a {email}."],
  invite: ["Invitation link", "Link de convite", "Enlace de invitación"],
  reset: ["Reset password", "Redefinir senha", "Restablecer contraseña"],
  inactive: ["This person is inactive. Activate them first.", "Essa pessoa está inativa. Ative-a primeiro.", "Esta persona está inactiva. Actívela primero."],
  until: ["Expires {moment}, works once. Copy it now.", "Expira em {moment} e funciona uma única vez. Copie agora.", "Caduca el {moment} y funciona una sola vez. Cópielo ahora."],
  lost: ["Turn off two-step verification", "Desativar verificação em duas etapas", "Desactivar verificación en dos pasos"],
  lostAsk: ["This person will sign in with the password only, until they set it up again. Make sure that they asked for it themselves.", "Essa pessoa vai entrar apenas com a senha até configurá-la de novo. Certifique-se de que foi ela quem pediu.", "Esta persona iniciará sesión solo con la contraseña hasta configurarla de nuevo. Asegúrese de que la solicitud es suya."],
} as const satisfies Record<string, Text>;

export function Invitation({ user }: { user: Of<"User"> }) {
  if (!administers()) return null;
  const make = (kind: "invitation" | "password-reset", title: Text) => async () => {
    const link = await post<Link>(`/users/${user.id}/${kind}`);
    if (link.sentTo !== null) {
      notify(say(said.sent, { email: link.sentTo }));
      return;
    }
    reveal({
      title: say(title),
      text: <p>{say(said.until, { moment: moment(link.expiresAt) })}</p>,
      items: [{ label: say(title), value: link.url, isLong: true }],
    });
  };
  const lost = () =>
    confirm({
      title: say(said.lost),
      text: <p>{say(said.lostAsk)}</p>,
      yes: say(said.lost),
      act: async () => {
        await post(`/users/${user.id}/second-factor/remove`);
        notify(say(words.saved));
      },
    });
  const barred = { isDisabled: !user.active, title: user.active ? undefined : say(said.inactive) };
  return (
    <section class="card">
      <h2>{say(said.title)}</h2>
      <p class="soft">{say(said.lead)}</p>
      <div class="row">
        <Button onClick={make("invitation", said.invite)} {...barred}>
          {say(said.invite)}
        </Button>
        <Button onClick={make("password-reset", said.reset)} {...barred}>
          {say(said.reset)}
        </Button>
        <Button onClick={lost}>{say(said.lost)}</Button>
      </div>
    </section>
  );
}
