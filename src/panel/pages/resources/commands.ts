// Titles of the audit log's entries for the command line.

import type { Text } from "../core/text";

/** Actions of the command line for which the API has no operation. */
export const COMMANDS: Record<string, Text> = {
  createAdmin: ["Administrator created", "Administrador criado", "Administrador creado"],
  resetAdmin: ["Administrator access reset", "Acesso de administrador redefinido", "Acceso de administrador restablecido"],
  deleteAdmin: ["Administrator deleted", "Administrador excluído", "Administrador eliminado"],
  rotateSecretKey: ["Encryption key rotated", "Chave de criptografia trocada", "Clave de cifrado rotada"],
  resealSecrets: ["Secrets re-encrypted", "Segredos recriptografados", "Secretos cifrados de nuevo"],
  forgetSecretKey: ["Encryption key removed", "Chave de criptografia removida", "Clave de cifrado eliminada"],
  setRetention: ["Retention period set", "Período de retenção definido", "Período de retención definido"],
  endRetention: ["Retention period removed", "Período de retenção removido", "Período de retención eliminado"],
};
