// Boards, and products with their categories.

import type { Of } from "../core/client";
import { href } from "../core/router";
import { count, say } from "../core/text";
import { words } from "../core/words";
import { resource } from "../resource/types";
import { active, created, isActive, updated } from "./common";

export const boards = resource<Of<"Board">, Of<"BoardCreate"> & Of<"BoardUpdate">>({
  path: "crm/boards",
  module: "crm",
  words: {
    many: ["Boards", "Quadros", "Tableros"],
    make: ["New board", "Novo quadro", "Nuevo tablero"],
    lead: ["Where sales are followed as cards. Who works in one of a board's queues sees it.", "Onde as vendas são acompanhadas em cards. Vê o quadro quem trabalha em uma das filas dele.", "Donde se siguen las ventas como tarjetas. Ve el tablero quien trabaja en una de sus colas."],
    empty: ["Create a first board, such as “Sales”, and say whose it is.", "Crie o primeiro quadro, como “Vendas”, e diga de quem é.", "Cree un primer tablero, como «Ventas», y diga de quién es."],
    goesWith: ["Its stages go with it. One that has cards cannot go: archive it instead.", "As etapas vão junto. Um quadro com cards não pode ser excluído: arquive-o.", "Sus etapas se van con él. Uno con tarjetas no puede irse: archívelo."],
  },
  nameOf: (board) => board.name,
  columns: [
    { label: words.name, show: (board) => board.name },
    { label: ["Queues", "Filas", "Colas"], show: (board) => board.queues.map(({ name }) => name).join(", ") },
    updated,
  ],
  filters: [
    {
      name: "archived",
      kind: "choice",
      label: words.state,
      none: words.active,
      options: [["true", ["Archived", "Arquivado", "Archivado"]]],
    },
  ],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "description", kind: "text", label: words.description },
    {
      name: "crmBoardQueues",
      kind: "many",
      label: ["Queues", "Filas", "Colas"],
      hint: ["Who works in one of them sees the board.", "Quem trabalha em uma delas vê o quadro.", "Quien trabaja en una de ellas ve el tablero."],
      of: { path: "/queues" },
      from: (board) => board.queues,
      to: (ids) => (ids as number[]).map((queueId) => ({ queueId })),
    },
    { name: "monthlyGoal", kind: "number", label: ["Goal of a month", "Meta do mês", "Meta del mes"] },
    { name: "yearlyGoal", kind: "number", label: ["Goal of a year", "Meta do ano", "Meta del año"] },
    { name: "archived", kind: "check", label: ["Archived", "Arquivado", "Archivado"], only: "old" },
  ],
});

export const products = resource<Of<"Product">, Of<"ProductCreate">>({
  path: "products",
  module: "products",
  words: {
    many: ["Products", "Produtos", "Productos"],
    make: ["New product", "Novo produto", "Nuevo producto"],
    lead: ["What the company sells, to be put on cards.", "O que a empresa vende, para colocar nos cards.", "Lo que la empresa vende, para ponerlo en tarjetas."],
    empty: ["Create a first product.", "Crie o primeiro produto.", "Cree un primer producto."],
    goesWith: ["Cards keep it with the name and the price it had there.", "Os cards o mantêm com o nome e o preço que tinha.", "Las tarjetas lo conservan con el nombre y el precio que tenía."],
  },
  nameOf: (product) => product.name,
  columns: [
    { label: words.name, show: (product) => product.name },
    { label: ["SKU", "SKU", "SKU"], show: (product) => product.sku },
    { label: ["Category", "Categoria", "Categoría"], show: (product) => product.category?.name },
    { label: ["Price", "Preço", "Precio"], kind: "number", show: (product) => count(Number(product.price), { minimumFractionDigits: 2, maximumFractionDigits: 4 }) },
    active,
  ],
  filters: [isActive, { name: "categoryId", kind: "one", label: ["Category", "Categoria", "Categoría"], of: { path: "/product-categories" } }],
  actions: () => (
    <a class="button" href={href("/product-categories")}>
      {say(productCategories.words.many)}
    </a>
  ),
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "sku", kind: "line", label: ["SKU", "SKU", "SKU"], hint: ["The company's own number of it.", "O código próprio da empresa.", "El código propio de la empresa."] },
    { name: "price", kind: "number", label: ["Price", "Preço", "Precio"] },
    { name: "categoryId", kind: "one", label: ["Category", "Categoria", "Categoría"], of: { path: "/product-categories" }, from: (product) => product.category },
    { name: "description", kind: "text", label: words.description },
    { name: "active", kind: "check", label: words.active, initial: true },
  ],
});

export const productCategories = resource<Of<"ProductCategory">, Of<"ProductCategoryCreate">>({
  path: "product-categories",
  module: "products",
  words: {
    many: ["Product categories", "Categorias de produtos", "Categorías de productos"],
    make: ["New category", "Nova categoria", "Nueva categoría"],
    lead: ["Group products.", "Agrupam produtos.", "Agrupan productos."],
    empty: ["Create a first category.", "Crie a primeira categoria.", "Cree una primera categoría."],
    goesWith: ["Its products stay, without a category.", "Os produtos ficam, sem categoria.", "Sus productos quedan, sin categoría."],
  },
  nameOf: (category) => category.name,
  columns: [{ label: words.name, show: (category) => category.name }, { label: words.description, show: (category) => category.description }, created],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "description", kind: "text", label: words.description },
  ],
});
