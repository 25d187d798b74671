// The first conversation through openapi-typescript and openapi-fetch.

import createClient from "openapi-fetch";
import type { paths } from "../openapi-fetch/schema.js";
import { expect, number, origin, token } from "./steps.js";

const client = createClient<paths>({ baseUrl: origin, headers: { Authorization: `Bearer ${token}` } });

function data<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const channels = data(await client.GET("/api/v1/channels", { params: { query: { type: "webchat" } } }));
const channelId = channels.data[0].id;
const contact = data(await client.POST("/api/v1/contacts", { body: { name: "Maria Lima", number } })).data;
const opened = data(await client.POST("/api/v1/webchat/sessions", { body: { channelId, contactId: contact.id } })).data;
const said = data(
  await client.POST("/api/v1/webchat/sessions/{sessionId}/messages", {
    params: { path: { sessionId: opened.id } },
    body: { body: "Where is my order?" },
  }),
).data;
const job = data(
  await client.POST("/api/v1/messages", {
    params: { header: { "Idempotency-Key": `openapi-fetch-${number}` } },
    body: { ticketId: said.ticketId, type: "text", body: "On its way, {{firstName}}." },
  }),
).data;
const sent = data(await client.GET("/api/v1/messages/jobs/{jobId}", { params: { path: { jobId: job.jobId } } })).data;
expect("the job's ticket", sent.ticketId, said.ticketId);
const ticketId = said.ticketId;
const messages = data(await client.GET("/api/v1/tickets/{ticketId}/messages", { params: { path: { ticketId } } }));
expect("what was said", messages.data.map((message) => message.body), ["Where is my order?", "On its way, Maria."]);
const ticket = data(await client.GET("/api/v1/tickets/{ticketId}", { params: { path: { ticketId } } })).data;
const queueId = ticket.queue?.id ?? 0;
const wrapups = data(await client.GET("/api/v1/queues/{queueId}/wrapup-types", { params: { path: { queueId } } }));
const wrapupTypeId = wrapups.data[0].id;
const close = { params: { path: { ticketId } }, body: { wrapupTypeId } };
const closed = data(await client.POST("/api/v1/tickets/{ticketId}/close", close));
expect("the ticket", closed.data.status, "closed");

const again = await client.POST("/api/v1/tickets/{ticketId}/close", close);
const code: "ERR_API_TICKET_CLOSED" | undefined =
  again.error?.error.code === "ERR_API_TICKET_CLOSED" ? again.error.error.code : undefined;
expect("a second close", code, "ERR_API_TICKET_CLOSED");
// @ts-expect-error A tag without a name is refused before it is sent.
const nameless = await client.POST("/api/v1/tags", { body: {} });
if (nameless.response.status !== 422 || nameless.error === undefined) throw new Error("a tag without a name was taken");
expect("what is wrong", nameless.error.error.details, [{ code: "required", field: "name", params: {}, reason: "is required" }]);
console.log("openapi-typescript and openapi-fetch: the first conversation went as it should");
