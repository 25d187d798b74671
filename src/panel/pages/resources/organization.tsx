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
    lead: ["Mark contacts, to find and to address them together.", "Marcam contatos, para encontrá-los e falar com todos juntos.", "Marcan contactos, para encontrarlos y hablarles juntos."],
    empty: ["Create a first tag, such as “VIP”, and apply it to contacts.", "Crie a primeira etiqueta, como “VIP”, e aplique aos contatos.", "Cree una primera etiqueta, como «VIP», y aplíquela a contactos."],
    goesWith: ["It is taken off every contact that has it. The contacts stay.", "Ela sai de todos os contatos que a têm. Os contatos ficam.", "Se quita de todos los contactos que la tienen. Los contactos quedan."],
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
    lead: ["Where conversations wait for the agents who answer them.", "Onde as conversas esperam pelos agentes que as atendem.", "Donde las conversaciones esperan a los agentes que las atienden."],
    empty: ["Create a first queue, such as “Support”, then add its agents.", "Crie a primeira fila, como “Suporte”, e depois adicione os agentes.", "Cree una primera cola, como «Soporte», y luego añada sus agentes."],
    goesWith: ["It can go only when no ticket is open in it and no channel leads to it. Closed tickets stay, without a queue.", "Só pode ser excluída sem atendimentos abertos e sem canais que levem a ela. Os encerrados ficam, sem fila.", "Solo puede irse sin tickets abiertos y sin canales que lleven a ella. Los cerrados quedan, sin cola."],
  },
  nameOf: (queue) => queue.name,
  columns: [
    { label: words.name, show: (queue) => queue.name },
    { label: ["Distribution", "Distribuição", "Reparto"], show: (queue) => <Distribution is={queue.distribution} /> },
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
      label: ["Who gets new conversations", "Quem recebe novas conversas", "Quién recibe las conversaciones nuevas"],
      initial: "manual",
      options: [
        ["manual", ["Nobody: agents take them", "Ninguém: os agentes pegam", "Nadie: los agentes las toman"]],
        ["round_robin", ["Each active agent in turn", "Cada agente ativo por vez", "Cada agente activo por turno"]],
        ["least_busy", ["Who has the fewest open", "Quem tem menos abertas", "Quien tiene menos abiertas"]],
      ],
    },
    { name: "greeting", kind: "text", label: ["Greeting", "Saudação", "Saludo"], hint: ["Sent when a contact opens a conversation here. It may hold {{firstName}}.", "Enviada quando um contato abre uma conversa aqui. Pode conter {{firstName}}.", "Se envía cuando un contacto abre una conversación aquí. Puede contener {{firstName}}."] },
    { name: "wrapupRequired", kind: "check", label: ["A wrap-up is required to close", "Exige um tipo de encerramento", "Se exige un tipo de cierre"] },
    { name: "active", kind: "check", label: words.active, initial: true },
  ],
});

const DISTRIBUTIONS: Record<string, Text> = {
  manual: ["By hand", "Manual", "Manual"],
  round_robin: ["In turn", "Rodízio", "Por turno"],
  least_busy: ["Fewest open", "Menos ocupado", "Menos ocupado"],
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
    lead: ["Who sees the conversations of this queue, and gets new ones.", "Quem vê as conversas desta fila e recebe as novas.", "Quién ve las conversaciones de esta cola y recibe las nuevas."],
    back: ["Queues", "Filas", "Colas"],
    empty: ["Nobody works in this queue yet. Add its first agent above.", "Ninguém trabalha nesta fila ainda. Adicione o primeiro agente acima.", "Nadie trabaja en esta cola todavía. Añada su primer agente arriba."],
    choose: ["Users to add", "Usuários a adicionar", "Usuarios que añadir"],
    removed: ["They get no new conversations of this queue. Those they have stay theirs.", "Não recebe mais conversas desta fila. As que já tem continuam com a pessoa.", "No recibe más conversaciones de esta cola. Las que ya tiene siguen siendo suyas."],
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
    lead: ["How a conversation ended: chosen when it is closed, counted in reports.", "Como uma conversa terminou: escolhido ao encerrar, contado nos relatórios.", "Cómo terminó una conversación: se elige al cerrar y se cuenta en los informes."],
    empty: ["Create a category first, then a type such as “Solved”.", "Crie antes uma categoria e depois um tipo como “Resolvido”.", "Cree primero una categoría y luego un tipo como «Resuelto»."],
    goesWith: ["One that tickets use cannot go: switch it off instead.", "Um tipo em uso não pode ser excluído: desative-o.", "Uno que se usa no puede irse: desactívelo."],
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
    { name: "queueIds", kind: "many", label: ["Queues", "Filas", "Colas"], hint: ["In which queues it can be chosen.", "Em quais filas pode ser escolhido.", "En qué colas se puede elegir."], of: { path: "/queues" }, from: (type) => type.queues },
    { name: "active", kind: "check", label: words.active, initial: true },
  ],
});

export const wrapupCategories = resource<Of<"WrapupCategory">, Of<"WrapupCategoryCreate">>({
  path: "wrapup-categories",
  module: "wrapupTypes",
  words: {
    many: ["Wrap-up categories", "Categorias de encerramento", "Categorías de cierre"],
    make: ["New category", "Nova categoria", "Nueva categoría"],
    lead: ["Group wrap-up types.", "Agrupam tipos de encerramento.", "Agrupan tipos de cierre."],
    empty: ["Create a first category, such as “Sales”.", "Crie a primeira categoria, como “Vendas”.", "Cree una primera categoría, como «Ventas»."],
    goesWith: ["One that has types cannot go: move its types first.", "Uma categoria com tipos não pode ser excluída: mova os tipos antes.", "Una con tipos no puede irse: mueva antes sus tipos."],
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
    lead: ["What agents write often, behind a short word.", "O que os agentes escrevem sempre, atrás de uma palavra curta.", "Lo que los agentes escriben a menudo, tras una palabra corta."],
    empty: ["Create a first one, such as “hello”.", "Crie a primeira, como “ola”.", "Cree una primera, como «hola»."],
    goesWith: ["Messages that were sent with it stay as they are.", "Mensagens já enviadas ficam como estão.", "Los mensajes ya enviados quedan como están."],
  },
  nameOf: (quick) => quick.shortcut,
  columns: [
    { label: ["Shortcut", "Atalho", "Atajo"], show: (quick) => <code>{quick.shortcut}</code> },
    { label: ["Message", "Mensagem", "Mensaje"], show: (quick) => <span class="clamp">{quick.message}</span> },
    updated,
  ],
  fields: [
    { name: "shortcut", kind: "line", label: ["Shortcut", "Atalho", "Atajo"], isRequired: true, hint: ["One word, without spaces.", "Uma palavra, sem espaços.", "Una palabra, sin espacios."] },
    { name: "message", kind: "text", label: ["Message", "Mensagem", "Mensaje"], isRequired: true, hint: ["It may hold variables such as {{firstName}}.", "Pode conter variáveis como {{firstName}}.", "Puede contener variables como {{firstName}}."] },
  ],
});

export const globalVariables = resource<Of<"GlobalVariable">, Of<"GlobalVariableCreate">>({
  path: "global-variables",
  module: "customFields",
  words: {
    many: ["Global variables", "Variáveis globais", "Variables globales"],
    make: ["New variable", "Nova variável", "Nueva variable"],
    lead: ["Values that messages put in place of {{key}}.", "Valores que as mensagens põem no lugar de {{chave}}.", "Valores que los mensajes ponen en lugar de {{clave}}."],
    empty: ["Create a first one, such as “address”.", "Crie a primeira, como “endereco”.", "Cree una primera, como «direccion»."],
    goesWith: ["Messages written from now on have nothing in its place. Those that were sent stay.", "As próximas mensagens ficam sem nada no lugar. As enviadas ficam.", "Los próximos mensajes quedan sin nada en su lugar. Los enviados quedan."],
  },
  nameOf: (variable) => variable.key,
  columns: [
    { label: ["Key", "Chave", "Clave"], show: (variable) => <code>{`{{${variable.key}}}`}</code> },
    { label: ["Value", "Valor", "Valor"], show: (variable) => <span class="clamp">{variable.value}</span> },
    updated,
  ],
  fields: [
    { name: "key", kind: "line", label: ["Key", "Chave", "Clave"], isRequired: true, isFixed: true, hint: ["A letter, then letters, digits and _. It cannot be changed.", "Uma letra, depois letras, dígitos e _. Não pode ser alterada.", "Una letra, luego letras, dígitos y _. No se puede cambiar."] },
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
    lead: ["Who works here, and what they may do.", "Quem trabalha aqui e o que pode fazer.", "Quién trabaja aquí y qué puede hacer."],
    empty: ["Add the first person, then pass on the invitation link.", "Adicione a primeira pessoa e envie o link de convite.", "Añada a la primera persona y envíele el enlace de invitación."],
    goesWith: ["They cannot sign in any more. Their open conversations have no agent then; closed ones keep the name.", "A pessoa não entra mais. As conversas abertas ficam sem agente; as encerradas mantêm o nome.", "Ya no podrá entrar. Sus conversaciones abiertas quedan sin agente; las cerradas conservan el nombre."],
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
    { name: "profileId", kind: "one", label: ["Profile", "Perfil", "Perfil"], hint: ["What they may do. Without one: Agent.", "O que a pessoa pode fazer. Sem perfil: Agent.", "Qué puede hacer. Sin perfil: Agent."], of: { path: "/profiles" }, from: (user) => user.profile },
    { name: "queueIds", kind: "many", label: ["Queues", "Filas", "Colas"], of: { path: "/queues" }, from: (user) => user.queues },
    { name: "password", kind: "new-password", label: words.password, only: "new", hint: ["At least 12 characters. Leave it out, and pass on an invitation link instead.", "Pelo menos 12 caracteres. Ou deixe em branco e envie um link de convite.", "Al menos 12 caracteres. O déjelo vacío y envíe un enlace de invitación."] },
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
    lead: ["Whom a campaign writes to.", "Para quem uma campanha escreve.", "A quién escribe una campaña."],
    empty: ["Create a first list, then add contacts, one by one or by tag.", "Crie a primeira lista e adicione contatos, um a um ou por etiqueta.", "Cree una primera lista y añada contactos, uno a uno o por etiqueta."],
    goesWith: ["The contacts stay; they are only in this list no more.", "Os contatos ficam; só deixam de estar nesta lista.", "Los contactos quedan; solo dejan de estar en esta lista."],
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
    lead: ["Each is in the list once, however often added.", "Cada um está na lista uma vez, por mais que seja adicionado.", "Cada uno está una vez en la lista, por más que se añada."],
    back: ["Contact lists", "Listas de contatos", "Listas de contactos"],
    empty: ["Nobody is in this list yet. Add contacts above.", "Ninguém nesta lista ainda. Adicione contatos acima.", "Nadie en esta lista todavía. Añada contactos arriba."],
    choose: ["Contacts to add", "Contatos a adicionar", "Contactos que añadir"],
    removed: ["The contact stays; it is only in this list no more.", "O contato fica; só deixa de estar nesta lista.", "El contacto queda; solo deja de estar en esta lista."],
  },
  columns: [
    { label: words.name, show: (contact) => contact.name },
    { label: ["Number", "Número", "Número"], show: (contact) => String(contact.number ?? "") },
    { label: words.email, show: (contact) => String(contact.email ?? "") },
  ],
  join: (path, chosen) => post(path, { contactIds: chosen.map(({ id }) => id) }),
  joinAll: {
    of: { path: "/tags" },
    choose: ["All with the tag", "Todos com a etiqueta", "Todos con la etiqueta"],
    join: async (path, tag) => {
      const { added, alreadyThere } = await post<Of<"Added">>(path, { tagId: tag.id });
      return say(["Added: {added}. Already there: {there}.", "Adicionados: {added}. Já estavam: {there}.", "Añadidos: {added}. Ya estaban: {there}."], { added: count(added), there: count(alreadyThere) });
    },
  },
};
