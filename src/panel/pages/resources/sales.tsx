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
    lead: ["Track sales as cards. Each board is visible to the agents of its queues.", "Acompanhe vendas em cards. Cada quadro é visível para os agentes das suas filas.", "Siga las ventas con tarjetas. Cada tablero es visible para los agentes de sus colas."],
    empty: ["Create your first board, such as “Sales”, and choose its queues.", "Crie seu primeiro quadro, como “Vendas”, e escolha as filas.", "Cree su primer tablero, como «Ventas», y elija sus colas."],
    goesWith: ["Its stages are deleted too. You can't delete a board with cards: archive it instead.", "As etapas também são excluídas. Um quadro com cards não pode ser excluído: arquive-o.", "También se eliminan sus etapas. No se puede eliminar un tablero con tarjetas: archívelo."],
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
      hint: ["Visible to the agents of these queues.", "Visível para os agentes dessas filas.", "Visible para los agentes de estas colas."],
      of: { path: "/queues" },
      from: (board) => board.queues,
      to: (ids) => (ids as number[]).map((queueId) => ({ queueId })),
    },
    { name: "monthlyGoal", kind: "number", label: ["Monthly goal", "Meta mensal", "Meta mensual"] },
    { name: "yearlyGoal", kind: "number", label: ["Yearly goal", "Meta anual", "Meta anual"] },
    { name: "archived", kind: "check", label: ["Archived", "Arquivado", "Archivado"], only: "old" },
  ],
});

export const products = resource<Of<"Product">, Of<"ProductCreate">>({
  path: "products",
  module: "products",
  words: {
    many: ["Products", "Produtos", "Productos"],
    make: ["New product", "Novo produto", "Nuevo producto"],
    lead: ["What you sell. Add products to cards.", "O que você vende. Adicione produtos aos cards.", "Lo que vende. Añada productos a las tarjetas."],
    empty: ["Create your first product.", "Crie seu primeiro produto.", "Cree su primer producto."],
    goesWith: ["Cards that include it keep its name and price.", "Os cards que o incluem mantêm o nome e o preço.", "Las tarjetas que lo incluyen conservan su nombre y precio."],
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
    { name: "sku", kind: "line", label: ["SKU", "SKU", "SKU"], hint: ["Your own product code.", "Seu próprio código de produto.", "Su propio código de producto."] },
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
    lead: ["Group products.", "Agrupe os produtos.", "Agrupe los productos."],
    empty: ["Create your first category.", "Crie sua primeira categoria.", "Cree su primera categoría."],
    goesWith: ["Its products are kept, without a category.", "Os produtos são mantidos, sem categoria.", "Sus productos se conservan, sin categoría."],
  },
  nameOf: (category) => category.name,
  columns: [{ label: words.name, show: (category) => category.name }, { label: words.description, show: (category) => category.description }, created],
  fields: [
    { name: "name", kind: "line", label: words.name, isRequired: true },
    { name: "description", kind: "text", label: words.description },
  ],
});
