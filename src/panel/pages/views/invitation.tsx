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
  title: ["Signing in", "Acesso", "Acceso"],
  lead: ["A link lets this person choose a password. It is sent by mail where that is set up; if you are shown it, pass it on yourself: whoever has it can use it.", "Um link permite que a pessoa escolha a senha. Ele é enviado por e-mail, se configurado; se aparecer aqui, envie você mesmo: quem o tiver pode usá-lo.", "Un enlace permite que la persona elija su contraseña. Se envía por correo si está configurado; si aparece aquí, envíelo usted: quien lo tenga puede usarlo."],
  sent: ["A letter with the link is on its way to {email}.", "Um e-mail com o link está a caminho de {email}.", "Un correo con el enlace va en camino a {email}."],
  invite: ["Invitation link", "Link de convite", "Enlace de invitación"],
  reset: ["Reset the password", "Redefinir a senha", "Restablecer la contraseña"],
  until: ["Good until {moment}, and once. It is not shown again.", "Vale até {moment}, uma única vez. Não será mostrado de novo.", "Vale hasta {moment}, una sola vez. No se mostrará de nuevo."],
  lost: ["Remove the second factor", "Remover o segundo fator", "Quitar el segundo factor"],
  lostAsk: ["They sign in with the password alone until they set up another. Do it only when you know that it is them who ask.", "A pessoa entra só com a senha até configurar outro. Faça só se souber que é ela quem pede.", "Entrará solo con la contraseña hasta configurar otro. Hágalo solo si sabe que es quien lo pide."],
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
      yes: say(words.remove),
      act: async () => {
        await post(`/users/${user.id}/second-factor/remove`);
        notify(say(words.saved));
      },
    });
  return (
    <section class="card">
      <h2>{say(said.title)}</h2>
      <p class="soft">{say(said.lead)}</p>
      <div class="row">
        <Button onClick={make("invitation", said.invite)}>{say(said.invite)}</Button>
        <Button onClick={make("password-reset", said.reset)}>{say(said.reset)}</Button>
        <Button onClick={lost}>{say(said.lost)}</Button>
      </div>
    </section>
  );
}
