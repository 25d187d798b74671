// What the audit log keeps, as people call it. A test compares it with the API's own document.

import type { Text } from "../core/text";

export const ACTIONS: Record<string, Text> = {
  createToken: ["API token created", "Token da API criado", "Token de API creado"],
  updateToken: ["API token changed", "Token da API alterado", "Token de API cambiado"],
  rotateToken: ["API token given another key", "Token da API com nova chave", "Token de API con otra clave"],
  revokeToken: ["API token revoked", "Token da API revogado", "Token de API revocado"],
  createChannel: ["Channel created", "Canal criado", "Canal creado"],
  updateChannel: ["Channel changed", "Canal alterado", "Canal cambiado"],
  rotateIdentitySecret: ["Identity secret made", "Segredo de identidade criado", "Secreto de identidad creado"],
  createProfile: ["Profile created", "Perfil criado", "Perfil creado"],
  updateProfile: ["Profile changed", "Perfil alterado", "Perfil cambiado"],
  deleteProfile: ["Profile deleted", "Perfil excluído", "Perfil eliminado"],
  createUser: ["User created", "Usuário criado", "Usuario creado"],
  updateUser: ["User changed", "Usuário alterado", "Usuario cambiado"],
  removeUser: ["User removed", "Usuário removido", "Usuario eliminado"],
  inviteUser: ["User invited", "Usuário convidado", "Usuario invitado"],
  resetUserPassword: ["Password link made", "Link de senha criado", "Enlace de contraseña creado"],
  removeUserSecondFactor: ["Second factor of a user removed", "Segundo fator de usuário removido", "Segundo factor de un usuario quitado"],
  createWebhook: ["Webhook created", "Webhook criado", "Webhook creado"],
  updateWebhook: ["Webhook changed", "Webhook alterado", "Webhook cambiado"],
  deleteWebhook: ["Webhook deleted", "Webhook excluído", "Webhook eliminado"],
  rotateWebhookSecret: ["Webhook given another secret", "Webhook com novo segredo", "Webhook con otro secreto"],
  testWebhook: ["Webhook tested", "Webhook testado", "Webhook probado"],
  replayWebhook: ["Events sent again", "Eventos reenviados", "Eventos reenviados"],
  createCompany: ["Company created", "Empresa criada", "Empresa creada"],
  updateCompany: ["Company changed", "Empresa alterada", "Empresa cambiada"],
  updateOwnCompany: ["Company's settings changed", "Configurações da empresa alteradas", "Ajustes de la empresa cambiados"],
  updateAccount: ["Own account changed", "Própria conta alterada", "Cuenta propia cambiada"],
  changePassword: ["Own password changed", "Própria senha alterada", "Contraseña propia cambiada"],
  beginSecondFactor: ["Second factor begun", "Segundo fator iniciado", "Segundo factor iniciado"],
  confirmSecondFactor: ["Second factor set up", "Segundo fator configurado", "Segundo factor configurado"],
  removeSecondFactor: ["Own second factor removed", "Próprio segundo fator removido", "Segundo factor propio quitado"],
  renewRecoveryCodes: ["Recovery codes made", "Códigos de recuperação criados", "Códigos de recuperación creados"],
  endOwnSession: ["Own session ended", "Própria sessão encerrada", "Sesión propia cerrada"],
  endOtherSessions: ["Other sessions ended", "Outras sessões encerradas", "Otras sesiones cerradas"],
  reportTickets: ["Report of tickets exported", "Relatório de atendimentos exportado", "Informe de tickets exportado"],
  reportMessages: ["Report of messages exported", "Relatório de mensagens exportado", "Informe de mensajes exportado"],
  reportWrapups: ["Report of wrap-ups exported", "Relatório de encerramentos exportado", "Informe de cierres exportado"],
  reportSales: ["Report of sales exported", "Relatório de vendas exportado", "Informe de ventas exportado"],
};

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
