// Only compiled: what a user's editor knows.

import { ConflictError, Hotline, SecretLost, webhooks, type CompanyEvent, type Contact, type Ticket } from "../src/index.js";
import { fromPath } from "../src/node.js";

const hotline = new Hotline({ url: "https://hotline.example", apiKey: "sk_live_x", timeout: 5_000 });

export async function uses(): Promise<void> {
  const contact: Contact = await hotline.contacts.create({ name: "Maria", customFields: [{ key: "plan", value: "gold" }] });
  const ticket: Ticket = await hotline.tickets.close(7, { wrapupTypeId: 3 });
  // @ts-expect-error: a field that does not exist
  await hotline.tickets.close(7, { wrapupType: 3 });
  // @ts-expect-error: `type` is required
  await hotline.messages.send({ ticketId: ticket.id, body: "Hello" });
  await hotline.messages.send({ ticketId: ticket.id, type: "media", medias: [await fromPath("a.pdf")] });
  for await (const one of hotline.contacts.list({ tagId: 3, createdFrom: new Date() })) one.customFields.at(0);
  await hotline.contacts.update(contact.id, { email: null }, { ifMatch: contact.updatedAt, idempotencyKey: "k" });
  const card = await hotline.cards.create({ boardId: 1, crmBoardListId: 2, name: "Roof", due: new Date() });
  const amount: number = card.productsTotal;
  void amount;

  for await (const event of hotline.events.listen({ types: ["message.received", "ticket.closed"] })) {
    if (event.type === "ticket.closed") event.data.closedAt;
    // @ts-expect-error: not one of the two types
    if (event.type === "card.won") continue;
    if (event.type === "message.received" && !("deleted" in event.data)) event.data.contact?.name;
  }
  const event: CompanyEvent = await webhooks.verify("", new Headers(), ["whsec_a", "whsec_b"]);
  if (event.type === "card.won") event.data.productsTotal.toFixed(2);

  await hotline.webhooks.create({ url: "https://example.com" }).catch((error: unknown) => {
    if (error instanceof SecretLost) return hotline.webhooks.rotateSecret(Number(error.id));
    if (error instanceof ConflictError && error.code === "ERR_API_TICKET_CLOSED") return undefined;
    throw error;
  });
}
