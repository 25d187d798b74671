// Tags, queues, wrap-ups, quick messages, global variables, users and contact lists.

import { post, put, type Of } from "../core/client";
import { href } from "../core/router";
import { count, say, type Text } from "../core/text";
import { words } from "../core/words";
import { resource } from "../resource/types";
import type { MembersOf } from "../resource/members";
import { Swatch } from "../ui/parts";
import { Active } from "../ui/states";
import { Invitation } from "../views/invitation";
import { active, created, isActive, updated } from "./common";

export const tags = resource<Of<"Tag">, Of<"TagCreate">>({
  path: "tags",
  module: "tags",
  words: {
    many: ["Tags", "Etiquetas", "Etiquetas"],
    make: ["New tag", "Nova etiqueta", "Nueva etiqueta"],
    lead: ["Group contacts for search and campaigns.", "Agrupe contatos para buscas e campanhas.", "Agrupe contactos para búsquedas y campañas."],
    empty: ["Create your first tag, such as “VIP”, and add it to contacts.", "Crie sua primeira etiqueta, como “VIP”, e adicione-a a contatos.", "Cree su primera etiqueta, como «VIP», y añádala a contactos."],
    goesWith: ["It is removed from all contacts. The contacts are kept.", "Ela é removida de todos os contatos. Os contatos são mantidos.", "Se quita de todos los contactos. Los contactos se conservan."],
  },
  nameOf: (tag) => tag.name,
  columns: [{ label: words.name, show: (tag) => tag.name }, { label: words.color, show: (tag) => <Swatch color={tag.color} /> }, created],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true, example: "VIP" },
    { name: "color", kind: "color", label: words.color, initial: "#64748b" },
  ],
});

export const queues = resource<Of<"Queue">, Of<"QueueCreate">>({
  path: "queues",
  module: "queues",
  words: {
    many: ["Queues", "Filas", "Colas"],
    make: ["New queue", "Nova fila", "Nueva cola"],
    lead: ["Conversations wait here for an agent to answer.", "As conversas esperam aqui até um agente atender.", "Las conversaciones esperan aquí hasta que un agente las atiende."],
    empty: ["Create your first queue, such as “Support”, then add its agents.", "Crie sua primeira fila, como “Suporte”, e adicione os agentes.", "Cree su primera cola, como «Soporte», y añada sus agentes."],
    goesWith: ["Close or move its open conversations and move its channels first. Closed conversations are kept.", "Antes, encerre ou mova as conversas abertas e mova os canais. As conversas encerradas são mantidas.", "Antes, cierre o mueva sus conversaciones abiertas y mueva sus canales. Las conversaciones cerradas se conservan."],
  },
  nameOf: (queue) => queue.name,
  columns: [
    { label: words.name, show: (queue) => queue.name },
    { label: ["Assignment", "Distribuição", "Asignación"], show: (queue) => <Distribution is={queue.distribution} /> },
    { label: words.color, show: (queue) => <Swatch color={queue.color} /> },
    active,
  ],
  filters: [isActive],
  branches: [{ label: ["Agents", "Agentes", "Agentes"], to: (queue) => `/queues/${queue.id}/users`, module: "queues" }],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "color", kind: "color", label: words.color, initial: "#64748b" },
    {
      name: "distribution",
      kind: "choice",
      label: ["Assignment of new conversations", "Distribuição de novas conversas", "Asignación de conversaciones nuevas"],
      initial: "manual",
      options: [
        ["manual", ["Manual: agents pick", "Manual: os agentes assumem", "Manual: los agentes las toman"]],
        ["round_robin", ["Round robin among active agents", "Rodízio entre agentes ativos", "Por turno entre agentes activos"]],
        ["least_busy", ["Agent with the fewest open conversations", "Agente com menos conversas abertas", "Agente con menos conversaciones abiertas"]],
      ],
    },
    { name: "greeting", kind: "text", label: ["Greeting", "Saudação", "Saludo"], hint: ["Sent when a contact opens a conversation here. You can use {{firstName}}.", "Enviada quando um contato abre uma conversa aqui. Você pode usar {{firstName}}.", "Se envía cuando un contacto abre una conversación aquí. Puede usar {{firstName}}."] },
    { name: "wrapupRequired", kind: "check", label: ["Require a wrap-up when closing", "Exigir um tipo de encerramento", "Exigir un tipo de cierre"] },
    { name: "active", kind: "check", label: words.active, initial: true },
  ],
});

const DISTRIBUTIONS: Record<string, Text> = {
  manual: ["Manual", "Manual", "Manual"],
  round_robin: ["Round robin", "Rodízio", "Por turno"],
  least_busy: ["Least busy", "Menos ocupado", "Menos ocupado"],
};

function Distribution({ is }: { is: string }) {
  return <>{DISTRIBUTIONS[is] ? say(DISTRIBUTIONS[is]) : is}</>;
}

export const queueUsers: MembersOf = {
  path: "queues",
  members: "users",
  module: "queues",
  add: "PUT",
  of: { path: "/users" },
  isSearched: true,
  isRead: true,
  words: {
    many: ["agents", "agentes", "agentes"],
    lead: ["Agents in this queue see its conversations and receive new ones.", "Os agentes desta fila veem as conversas dela e recebem as novas.", "Los agentes de esta cola ven sus conversaciones y reciben las nuevas."],
    back: ["Queues", "Filas", "Colas"],
    empty: ["No agents in this queue yet. Add the first one above.", "Nenhum agente nesta fila ainda. Adicione o primeiro acima.", "Todavía no hay agentes en esta cola. Añada el primero arriba."],
    choose: ["Users to add", "Usuários a adicionar", "Usuarios que añadir"],
    removed: ["This agent receives no new conversations from this queue and keeps the current ones.", "O agente não recebe mais conversas desta fila e mantém as atuais.", "El agente ya no recibe conversaciones de esta cola y conserva las actuales."],
  },
  columns: [
    { label: words.name, show: (user) => user.name },
    { label: words.email, show: (user) => String(user.email ?? "") },
    { label: words.state, show: (user) => <Active is={Boolean(user.active)} /> },
  ],
  join: (path, chosen) => Promise.all(chosen.map(({ id }) => put(`${path}/${id}`))),
};

export const wrapupTypes = resource<Of<"WrapupType">, Of<"WrapupTypeCreate">>({
  path: "wrapup-types",
  module: "wrapupTypes",
  words: {
    many: ["Wrap-up types", "Tipos de encerramento", "Tipos de cierre"],
    make: ["New wrap-up type", "Novo tipo de encerramento", "Nuevo tipo de cierre"],
    lead: ["How conversations end. Agents choose one when closing, and reports count them.", "Como as conversas terminam. Os agentes escolhem um ao encerrar, e os relatórios os contam.", "Cómo terminan las conversaciones. Los agentes eligen uno al cerrar y los informes los cuentan."],
    empty: ["Create a category first, then a type such as “Solved”.", "Crie primeiro uma categoria e depois um tipo, como “Resolvido”.", "Cree primero una categoría y luego un tipo, como «Resuelto»."],
    goesWith: ["You can't delete a type in use: deactivate it instead.", "Um tipo em uso não pode ser excluído: desative-o.", "No se puede eliminar un tipo en uso: desactívelo."],
  },
  nameOf: (type) => type.name,
  columns: [
    { label: words.name, show: (type) => type.name },
    { label: ["Queues", "Filas", "Colas"], show: (type) => type.queues.map(({ name }) => name).join(", ") },
    active,
  ],
  filters: [
    isActive,
    { name: "categoryId", kind: "one", label: ["Category", "Categoria", "Categoría"], of: { path: "/wrapup-categories" } },
    { name: "queueId", kind: "one", label: ["Queue", "Fila", "Cola"], of: { path: "/queues" } },
  ],
  actions: () => (
    <a class="button" href={href("/wrapup-categories")}>
      {say(wrapupCategories.words.many)}
    </a>
  ),
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "categoryId", kind: "one", label: ["Category", "Categoria", "Categoría"], isRequired: true, of: { path: "/wrapup-categories" }, from: (type) => (type.categoryId ? { id: type.categoryId, name: "" } : null) },
    { name: "queueIds", kind: "many", label: ["Queues", "Filas", "Colas"], hint: ["Queues where it can be chosen.", "Filas em que pode ser escolhido.", "Colas en las que se puede elegir."], of: { path: "/queues" }, from: (type) => type.queues },
    { name: "active", kind: "check", label: words.active, initial: true },
  ],
});

export const wrapupCategories = resource<Of<"WrapupCategory">, Of<"WrapupCategoryCreate">>({
  path: "wrapup-categories",
  module: "wrapupTypes",
  words: {
    many: ["Wrap-up categories", "Categorias de encerramento", "Categorías de cierre"],
    make: ["New category", "Nova categoria", "Nueva categoría"],
    lead: ["Group wrap-up types.", "Agrupe os tipos de encerramento.", "Agrupe los tipos de cierre."],
    empty: ["Create your first category, such as “Sales”.", "Crie sua primeira categoria, como “Vendas”.", "Cree su primera categoría, como «Ventas»."],
    goesWith: ["Move its wrap-up types to another category first.", "Antes, mova os tipos de encerramento para outra categoria.", "Antes, mueva sus tipos de cierre a otra categoría."],
  },
  nameOf: (category) => category.name,
  columns: [{ label: words.name, show: (category) => category.name }, created],
  isListed: true,
  fields: [{ name: "name", kind: "line", label: words.name, isRequired: true }],
});

export const quickMessages = resource<Of<"QuickMessage">, Of<"QuickMessageCreate">>({
  path: "quick-messages",
  module: "quickMessages",
  words: {
    many: ["Quick messages", "Respostas rápidas", "Respuestas rápidas"],
    make: ["New quick message", "Nova resposta rápida", "Nueva respuesta rápida"],
    lead: ["Saved replies, inserted by shortcut.", "Respostas prontas, inseridas por um atalho.", "Respuestas guardadas que se insertan con un atajo."],
    empty: ["Create your first quick message, such as “hello”.", "Crie sua primeira resposta rápida, como “ola”.", "Cree su primera respuesta rápida, como «hola»."],
    goesWith: ["Messages that were already sent don't change.", "As mensagens já enviadas não mudam.", "Los mensajes ya enviados no cambian."],
  },
  nameOf: (quick) => quick.shortcut,
  columns: [
    { label: ["Shortcut", "Atalho", "Atajo"], show: (quick) => <code>{quick.shortcut}</code> },
    { label: ["Message", "Mensagem", "Mensaje"], show: (quick) => <span class="clamp">{quick.message}</span> },
    updated,
  ],
  fields: [
    { name: "shortcut", kind: "line", label: ["Shortcut", "Atalho", "Atajo"], isRequired: true, hint: ["One word, without spaces.", "Uma palavra, sem espaços.", "Una palabra, sin espacios."] },
    { name: "message", kind: "text", label: ["Message", "Mensagem", "Mensaje"], isRequired: true, hint: ["You can use variables such as {{firstName}}.", "Você pode usar variáveis como {{firstName}}.", "Puede usar variables como {{firstName}}."] },
  ],
});

export const globalVariables = resource<Of<"GlobalVariable">, Of<"GlobalVariableCreate">>({
  path: "global-variables",
  module: "customFields",
  words: {
    many: ["Global variables", "Variáveis globais", "Variables globales"],
    make: ["New variable", "Nova variável", "Nueva variable"],
    lead: ["Text you insert as {{key}}.", "Textos que você insere como {{chave}}.", "Textos que se insertan como {{clave}}."],
    empty: ["Create your first variable, such as “address”.", "Crie sua primeira variável, como “endereco”.", "Cree su primera variable, como «direccion»."],
    goesWith: ["Future messages will have nothing in its place. Messages already sent don't change.", "As próximas mensagens ficarão sem nada no lugar dela. As já enviadas não mudam.", "Los próximos mensajes no tendrán nada en su lugar. Los ya enviados no cambian."],
  },
  nameOf: (variable) => variable.key,
  columns: [
    { label: ["Key", "Chave", "Clave"], show: (variable) => <code>{`{{${variable.key}}}`}</code> },
    { label: ["Value", "Valor", "Valor"], show: (variable) => <span class="clamp">{variable.value}</span> },
    updated,
  ],
  fields: [
    { name: "key", kind: "line", label: ["Key", "Chave", "Clave"], isRequired: true, isFixed: true, hint: ["Start with a letter, then use letters, digits and _. You can't change it later.", "Comece com uma letra e use letras, dígitos e _. Não pode ser alterada depois.", "Empiece por una letra y use letras, dígitos y _. No se puede cambiar después."] },
    { name: "value", kind: "text", label: ["Value", "Valor", "Valor"], isRequired: true },
    { name: "description", kind: "line", label: words.description },
  ],
});

export const users = resource<Of<"User">, Of<"UserCreate">>({
  path: "users",
  module: "users",
  words: {
    many: ["Users", "Usuários", "Usuarios"],
    make: ["New user", "Novo usuário", "Nuevo usuario"],
    lead: ["Invite your team and choose what each person can do.", "Convide sua equipe e escolha o que cada pessoa pode fazer.", "Invite a su equipo y elija qué puede hacer cada persona."],
    empty: ["Add the first user, then send them an invitation link.", "Adicione o primeiro usuário e envie o link de convite.", "Añada al primer usuario y envíele el enlace de invitación."],
    goesWith: ["This person can no longer sign in. Open conversations become unassigned; closed ones keep the name.", "Essa pessoa não poderá mais entrar. As conversas abertas ficam sem agente; as encerradas mantêm o nome.", "Esta persona ya no podrá iniciar sesión. Las conversaciones abiertas quedan sin agente; las cerradas conservan el nombre."],
  },
  nameOf: (user) => user.name,
  columns: [
    { label: words.name, show: (user) => user.name },
    { label: words.email, show: (user) => user.email },
    { label: ["Profile", "Perfil", "Perfil"], show: (user) => user.profile?.name },
    { label: ["Queues", "Filas", "Colas"], show: (user) => user.queues.map(({ name }) => name).join(", ") },
    active,
  ],
  filters: [
    isActive,
    { name: "queueId", kind: "one", label: ["Queue", "Fila", "Cola"], of: { path: "/queues" } },
    { name: "profileId", kind: "one", label: ["Profile", "Perfil", "Perfil"], of: { path: "/profiles" } },
  ],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "email", kind: "email", label: words.email, isRequired: true },
    { name: "profileId", kind: "one", label: ["Profile", "Perfil", "Perfil"], hint: ["Decides what they can do. Default: Agent.", "Define o que a pessoa pode fazer. Padrão: Agent.", "Define qué puede hacer. Valor predeterminado: Agent."], of: { path: "/profiles" }, from: (user) => user.profile },
    { name: "queueIds", kind: "many", label: ["Queues", "Filas", "Colas"], of: { path: "/queues" }, from: (user) => user.queues },
    { name: "password", kind: "new-password", label: words.password, only: "new", hint: ["At least 12 characters. Leave empty to send an invitation.", "Pelo menos 12 caracteres. Deixe vazio para enviar um convite.", "Al menos 12 caracteres. Déjelo vacío para enviar una invitación."] },
    { name: "active", kind: "check", label: words.active, initial: true },
  ],
  beside: (user) => <Invitation user={user} />,
});

export const contactLists = resource<Of<"RecipientList">, Of<"RecipientListCreate">>({
  path: "contact-lists",
  module: "campaigns",
  words: {
    many: ["Contact lists", "Listas de contatos", "Listas de contactos"],
    make: ["New list", "Nova lista", "Nueva lista"],
    lead: ["Contacts for your campaigns.", "Contatos para suas campanhas.", "Contactos para sus campañas."],
    empty: ["Create your first list, then add contacts one by one or by tag.", "Crie sua primeira lista e adicione contatos, um a um ou por etiqueta.", "Cree su primera lista y añada contactos, uno a uno o por etiqueta."],
    goesWith: ["Only the list is deleted. Its contacts are kept.", "Só a lista é excluída. Os contatos são mantidos.", "Solo se elimina la lista. Los contactos se conservan."],
  },
  nameOf: (list) => list.name,
  columns: [
    { label: words.name, show: (list) => list.name },
    { label: ["Contacts", "Contatos", "Contactos"], kind: "number", show: (list) => count(list.contactsCount) },
    created,
  ],
  isListed: true,
  cannot: ["update"],
  branches: [{ label: ["Contacts", "Contatos", "Contactos"], to: (list) => `/contact-lists/${list.id}/contacts` }],
  fields: [{ name: "name", kind: "line", label: words.name, isRequired: true }],
});

export const listContacts: MembersOf = {
  path: "contact-lists",
  members: "contacts",
  module: "campaigns",
  add: "POST",
  of: { path: "/contacts" },
  isSearched: true,
  isRead: false,
  words: {
    many: ["contacts", "contatos", "contactos"],
    lead: ["Duplicates are ignored.", "Contatos repetidos são ignorados.", "Los contactos repetidos se ignoran."],
    back: ["Contact lists", "Listas de contatos", "Listas de contactos"],
    empty: ["No contacts in this list yet. Add them above.", "Nenhum contato nesta lista ainda. Adicione-os acima.", "Todavía no hay contactos en esta lista. Añádalos arriba."],
    choose: ["Contacts to add", "Contatos a adicionar", "Contactos que añadir"],
    removed: ["The contact is only removed from this list.", "O contato só é removido desta lista.", "El contacto solo se quita de esta lista."],
  },
  columns: [
    { label: words.name, show: (contact) => contact.name },
    { label: ["Phone number", "Telefone", "Teléfono"], show: (contact) => String(contact.number ?? "") },
    { label: words.email, show: (contact) => String(contact.email ?? "") },
  ],
  join: (path, chosen) => post(path, { contactIds: chosen.map(({ id }) => id) }),
  joinAll: {
    of: { path: "/tags" },
    choose: ["All contacts with the tag", "Todos os contatos com a etiqueta", "Todos los contactos con la etiqueta"],
    join: async (path, tag) => {
      const { added, alreadyThere } = await post<Of<"Added">>(path, { tagId: tag.id });
      return say(["Added: {added}. Already in the list: {there}.", "Adicionados: {added}. Já estavam na lista: {there}.", "Añadidos: {added}. Ya estaban en la lista: {there}."], { added: count(added), there: count(alreadyThere) });
    },
  },
};
