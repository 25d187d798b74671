// How things stand, in a word and a colour.

import { say, type Text } from "../core/text";
import { words } from "../core/words";
import type { Option } from "./fields";
import { Badge } from "./parts";

export function Active({ is }: { is: boolean }) {
  return <Badge kind={is ? "good" : "off"}>{say(is ? words.active : words.inactive)}</Badge>;
}

const STATES: Record<string, [kind: "good" | "bad" | "off", text: Text]> = {
  active: ["good", words.active],
  revoked: ["off", ["Revoked", "Revogado", "Revocado"]],
  expired: ["off", ["Expired", "Expirado", "Caducado"]],
  connected: ["good", ["Connected", "Conectado", "Conectado"]],
  disconnected: ["off", ["Disconnected", "Desconectado", "Desconectado"]],
  error: ["bad", ["Error", "Erro", "Error"]],
  pending: ["off", ["Pending", "Pendente", "Pendiente"]],
  approved: ["good", ["Approved", "Aprovado", "Aprobada"]],
  paused: ["bad", ["Paused", "Pausado", "Pausada"]],
  disabled: ["bad", ["Disabled", "Desativado", "Desactivada"]],
  rejected: ["bad", ["Rejected", "Rejeitado", "Rechazada"]],
  delivered: ["good", ["Delivered", "Entregue", "Entregado"]],
  failed: ["bad", ["Failed", "Falhou", "Falló"]],
};

/** States to be chosen from, by the words of the API. */
export const optionsOf = (...names: string[]): Option[] => names.map((name) => [name, STATES[name]?.[1] ?? [name, name, name]] as const);

/** The state that the API calls by this word. */
export function State({ is }: { is: string }) {
  const known = STATES[is];
  return known ? <Badge kind={known[0]}>{say(known[1])}</Badge> : <Badge>{is}</Badge>;
}
