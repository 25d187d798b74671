// The first conversation through openapi-generator's typescript-fetch.

import {
  type ApiError,
  ApiErrorFromJSON,
  ChannelsApi,
  Configuration,
  ContactsApi,
  ListChannelsTypeEnum,
  MessagesApi,
  QueuesApi,
  ResponseError,
  TicketStatus,
  TicketsApi,
  WebchatApi,
} from "../typescript-fetch/index.js";
import { expect, number, origin, token } from "./steps.js";

const configuration = new Configuration({ basePath: origin, accessToken: token });
const tickets = new TicketsApi(configuration);
const webchat = new WebchatApi(configuration);
const messages = new MessagesApi(configuration);

async function refusal(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ResponseError) return ApiErrorFromJSON(await error.response.json());
    throw error;
  }
  throw new Error("it was not refused");
}

const channels = await new ChannelsApi(configuration).listChannels({ type: ListChannelsTypeEnum.Webchat });
const channelId = channels.data[0].id;
const contact = (await new ContactsApi(configuration).createContact({ contactCreate: { name: "Maria Lima", number } })).data;
const opened = (await webchat.openSession({ sessionOpen: { channelId, contactId: contact.id } })).data;
const body = { body: "Where is my order?" };
const said = (await webchat.sendSessionMessage({ sessionId: opened.id, sessionMessageSend: body })).data;
const ticketId = said.ticketId;
const job = await messages.sendMessage({
  idempotencyKey: `typescript-fetch-${number}`,
  messageSend: { ticketId, type: "text", body: "On its way, {{firstName}}." },
});
const sent = (await messages.getMessageJob({ jobId: job.data.jobId })).data;
expect("the job's ticket", sent.ticketId, ticketId);
const listed = await tickets.listTicketMessages({ ticketId });
expect("what was said", listed.data.map((message) => message.body), ["Where is my order?", "On its way, Maria."]);
const queueId = (await tickets.getTicket({ ticketId })).data.queue?.id ?? 0;
const wrapups = await new QueuesApi(configuration).listQueueWrapupTypes({ queueId });
const ticketClose = { wrapupTypeId: wrapups.data[0].id };
const closed = (await tickets.closeTicket({ ticketId, ticketClose })).data;
expect("the ticket", closed.status, TicketStatus.Closed);

const again = await refusal(tickets.closeTicket({ ticketId, ticketClose }));
expect("a second close", again.error.code, "ERR_API_TICKET_CLOSED");
console.log("openapi-generator, typescript-fetch: the first conversation went as it should");
