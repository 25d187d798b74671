// What the audit log keeps of the command line, as people call it.

import type { Text } from "../core/text";

/** What is done on the command line alone, which the API has no operation for. */
export const COMMANDS: Record<string, Text> = {
  createAdmin: ["Administrator created", "Administrador criado", "Administrador creado"],
  resetAdmin: ["Administrator let in again", "Acesso de administrador redefinido", "Acceso de administrador restablecido"],
  rotateSecretKey: ["Sealing key rotated", "Chave de selagem trocada", "Clave de sellado cambiada"],
  resealSecrets: ["Secrets sealed anew", "Segredos selados de novo", "Secretos sellados de nuevo"],
  forgetSecretKey: ["Sealing key forgotten", "Chave de selagem esquecida", "Clave de sellado olvidada"],
  setRetention: ["Retention set", "Retenção definida", "Retención definida"],
  endRetention: ["Retention ended", "Retenção encerrada", "Retención terminada"],
};
