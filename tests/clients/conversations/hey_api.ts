// The first conversation through @hey-api/openapi-ts.

import { client } from "../hey/client.gen.js";
import {
  closeTicket,
  createContact,
  createTag,
  getMessageJob,
  getTicket,
  listChannels,
  listQueueWrapupTypes,
  listTicketMessages,
  openSession,
  sendMessage,
  sendSessionMessage,
} from "../hey/sdk.gen.js";
import { expect, number, origin, token } from "./steps.js";

client.setConfig({ baseUrl: origin, auth: token });

const channels = await listChannels({ query: { type: "webchat" }, throwOnError: true });
const channelId = channels.data.data[0].id;
const contact = (await createContact({ body: { name: "Maria Lima", number }, throwOnError: true })).data.data;
const opened = (await openSession({ body: { channelId, contactId: contact.id }, throwOnError: true })).data.data;
const path = { sessionId: opened.id };
const said = (await sendSessionMessage({ path, body: { body: "Where is my order?" }, throwOnError: true })).data.data;
const ticketId = said.ticketId;
const job = await sendMessage({
  headers: { "Idempotency-Key": `hey-api-${number}` },
  body: { ticketId, type: "text", body: "On its way, {{firstName}}." },
  throwOnError: true,
});
const sent = (await getMessageJob({ path: { jobId: job.data.data.jobId }, throwOnError: true })).data.data;
expect("the job's ticket", sent.ticketId, ticketId);
const messages = (await listTicketMessages({ path: { ticketId }, throwOnError: true })).data;
expect("what was said", messages.data.map((message) => message.body), ["Where is my order?", "On its way, Maria."]);
const ticket = (await getTicket({ path: { ticketId }, throwOnError: true })).data.data;
const queueId = ticket.queue?.id ?? 0;
const wrapups = (await listQueueWrapupTypes({ path: { queueId }, throwOnError: true })).data;
const close = { path: { ticketId }, body: { wrapupTypeId: wrapups.data[0].id } };
const closed = (await closeTicket({ ...close, throwOnError: true })).data.data;
expect("the ticket", closed.status, "closed");

const again = await closeTicket(close);
const code: "ERR_API_TICKET_CLOSED" | undefined =
  again.error?.error.code === "ERR_API_TICKET_CLOSED" ? again.error.error.code : undefined;
expect("a second close", code, "ERR_API_TICKET_CLOSED");
// @ts-expect-error A tag without a name is refused before it is sent.
const nameless = await createTag({ body: {} });
expect("what is wrong", nameless.error?.error.details, [{ code: "required", field: "name", params: {}, reason: "is required" }]);
console.log("@hey-api/openapi-ts: the first conversation went as it should");
