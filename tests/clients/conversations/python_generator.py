"""The first conversation through openapi-generator's python."""

import os
import time

import hotline_generated as hotline
from hotline_generated.rest import ApiException

configuration = hotline.Configuration(host=os.environ["HOTLINE_ORIGIN"], access_token=os.environ["HOTLINE_TOKEN"])
number = f"55119{int(time.time() * 1000) % 100_000_000:08}"

with hotline.ApiClient(configuration) as client:
    tickets, webchat = hotline.TicketsApi(client), hotline.WebchatApi(client)
    messages = hotline.MessagesApi(client)
    channel = hotline.ChannelsApi(client).list_channels(type="webchat").data[0]
    contact = hotline.ContactsApi(client).create_contact(hotline.ContactCreate(name="Maria Lima", number=number)).data
    session = webchat.open_session(hotline.SessionOpen(channelId=channel.id, contactId=contact.id)).data
    said = webchat.send_session_message(session.id, hotline.SessionMessageSend(body="Where is my order?")).data
    job = messages.send_message(
        message_send=hotline.MessageSend(ticketId=said.ticket_id, type="text", body="On its way, {{firstName}}."),
        idempotency_key=f"python-generator-{number}",
    ).data
    sent = messages.get_message_job(job.job_id).data
    assert sent.ticket_id == said.ticket_id, sent
    listed = tickets.list_ticket_messages(said.ticket_id).data
    assert [message.body for message in listed] == ["Where is my order?", "On its way, Maria."], listed
    ticket = tickets.get_ticket(said.ticket_id).data
    wrapup = hotline.QueuesApi(client).list_queue_wrapup_types(ticket.queue.id).data[0]
    close = hotline.TicketClose(wrapupTypeId=wrapup.id)
    closed = tickets.close_ticket(said.ticket_id, ticket_close=close).data
    assert closed.status == hotline.TicketStatus.CLOSED, closed
    try:
        tickets.close_ticket(said.ticket_id, ticket_close=close)
        raise AssertionError("a closed ticket was closed again")
    except ApiException as refused:
        error = hotline.ApiError.from_json(refused.body)
        assert error.error.code == "ERR_API_TICKET_CLOSED", error
print("openapi-generator, python: the first conversation went as it should")
