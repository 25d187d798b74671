"""The first conversation through openapi-python-client."""

import os
import time

from hotline_client import AuthenticatedClient
from hotline_client.api.channels import list_channels
from hotline_client.api.contacts import create_contact
from hotline_client.api.messages import get_message_job, send_message
from hotline_client.api.queues import list_queue_wrapup_types
from hotline_client.api.tags import create_tag
from hotline_client.api.tickets import close_ticket, get_ticket, list_ticket_messages
from hotline_client.api.webchat import open_session, send_session_message
from hotline_client.models import (
    ApiError,
    ApiErrorErrorCode,
    ApiValidationError,
    ContactCreate,
    ListChannelsType,
    MessageSend,
    MessageSendType,
    SessionMessageSend,
    SessionOpen,
    TagCreate,
    TicketClose,
    TicketStatus,
)

client = AuthenticatedClient(base_url=os.environ["HOTLINE_ORIGIN"], token=os.environ["HOTLINE_TOKEN"])
number = f"55119{int(time.time() * 1000) % 100_000_000:08}"

channel = list_channels.sync(client=client, type_=ListChannelsType.WEBCHAT).data[0]
contact = create_contact.sync(client=client, body=ContactCreate(name="Maria Lima", number=number)).data
session = open_session.sync(client=client, body=SessionOpen(channel_id=channel.id, contact_id=contact.id)).data
said = send_session_message.sync(session.id, client=client, body=SessionMessageSend(body="Where is my order?")).data
job = send_message.sync(
    client=client,
    idempotency_key=f"python-client-{number}",
    body=MessageSend(ticket_id=said.ticket_id, type_=MessageSendType.TEXT, body="On its way, {{firstName}}."),
).data
sent = get_message_job.sync(job.job_id, client=client).data
assert sent.ticket_id == said.ticket_id, sent
messages = list_ticket_messages.sync(said.ticket_id, client=client).data
assert [message.body for message in messages] == ["Where is my order?", "On its way, Maria."], messages
ticket = get_ticket.sync(said.ticket_id, client=client).data
wrapup = list_queue_wrapup_types.sync(ticket.queue.id, client=client).data[0]
close = TicketClose(wrapup_type_id=wrapup.id)
closed = close_ticket.sync(said.ticket_id, client=client, body=close).data
assert closed.status == TicketStatus.CLOSED, closed

again = close_ticket.sync(said.ticket_id, client=client, body=close)
assert isinstance(again, ApiError) and again.error.code == ApiErrorErrorCode.ERR_API_TICKET_CLOSED, again
nameless = create_tag.sync(client=client, body=TagCreate(name=" "))
assert isinstance(nameless, ApiValidationError), nameless
assert nameless.error.details[0].field == "name", nameless
print("openapi-python-client: the first conversation went as it should")
