// What permissions are given for: each module, and what can be done with what it holds. A test compares it with the
// API's own document.

import type { Method } from "./client";
import type { Text } from "./text";

export const METHODS: readonly Method[] = ["GET", "POST", "PUT", "DELETE"];

export const METHOD_NAMES: Record<Method, Text> = {
  GET: ["Read", "Ler", "Leer"],
  POST: ["Create", "Criar", "Crear"],
  PUT: ["Edit", "Editar", "Editar"],
  DELETE: ["Delete", "Excluir", "Eliminar"],
};

const every = METHODS;

export interface Module {
  name: string;
  label: Text;
  methods: readonly Method[];
}

export const MODULES: readonly Module[] = [
  { name: "contacts", label: ["Contacts", "Contatos", "Contactos"], methods: every },
  { name: "tickets", label: ["Conversations", "Conversas", "Conversaciones"], methods: ["GET", "POST", "PUT"] },
  { name: "messages", label: ["Messages", "Mensagens", "Mensajes"], methods: ["GET", "POST", "PUT", "DELETE"] },
  { name: "channels", label: ["Channels", "Canais", "Canales"], methods: ["GET"] },
  { name: "webchat", label: ["Webchat", "Webchat", "Webchat"], methods: ["GET", "POST"] },
  { name: "tags", label: ["Tags", "Etiquetas", "Etiquetas"], methods: every },
  { name: "queues", label: ["Queues", "Filas", "Colas"], methods: every },
  { name: "wrapupTypes", label: ["Wrap-ups", "Encerramentos", "Cierres"], methods: every },
  { name: "users", label: ["Users", "Usuários", "Usuarios"], methods: every },
  { name: "profiles", label: ["Profiles", "Perfis", "Perfiles"], methods: ["GET"] },
  { name: "schedules", label: ["Scheduled messages", "Mensagens agendadas", "Mensajes programados"], methods: every },
  { name: "quickMessages", label: ["Quick messages", "Respostas rápidas", "Respuestas rápidas"], methods: every },
  { name: "campaigns", label: ["Campaigns and lists", "Campanhas e listas", "Campañas y listas"], methods: every },
  { name: "crm", label: ["Boards and cards", "Quadros e cards", "Tableros y tarjetas"], methods: every },
  { name: "products", label: ["Products", "Produtos", "Productos"], methods: every },
  { name: "customFields", label: ["Fields and variables", "Campos e variáveis", "Campos y variables"], methods: every },
  { name: "webhooks", label: ["Webhooks", "Webhooks", "Webhooks"], methods: every },
  { name: "reports", label: ["Reports", "Relatórios", "Informes"], methods: ["GET"] },
  { name: "events", label: ["Events", "Eventos", "Eventos"], methods: ["GET"] },
];
