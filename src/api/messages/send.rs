//! `POST /messages`: finds the recipient, and hands the message to its conversation.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use hotline_actors::tickets::{AfterSend, Author, Do, Send};
use hotline_actors::{FieldError, Refusal};
use hotline_persistence::tables::channels::ChannelRow;
use hotline_persistence::tables::contacts::Numbered;
use hotline_persistence::tables::messages::{MessageRow, MessageType};
use hotline_persistence::{ChannelId, ContactId, QueueId, TicketId, WrapupTypeId};
use serde_json::json;

use super::JobId;
use crate::api::contacts::check_channel;
use crate::app::App;
use crate::web::values::{MessageBody, Name, Number, Text};
use crate::web::{Answer, ApiError, Body, Caller, Fields, Input, data};

/// The body of `POST /messages`.
pub struct NewMessage {
    channel_id: Option<ChannelId>,
    recipient: Option<Recipient>,
    contact_name: Option<Name>,
    body: MessageBody,
    reopen_ticket: bool,
    after: AfterSend,
    /// Also when nothing is closed: an id that does not exist is one all the same.
    wrapup_type_id: Option<WrapupTypeId>,
}

/// Whom a message is for, in the order of precedence.
enum Recipient {
    Ticket(TicketId),
    Contact(ContactId),
    Number(Number),
}

impl Input for NewMessage {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let kind = fields.required::<MessageType>("type");
        if kind.is_some_and(|kind| kind != MessageType::Text) {
            fields.refuse("type", "must be one of text");
        }
        let channel_id = fields.optional("channelId");
        let ticket: Option<TicketId> = fields.optional("ticketId");
        let contact: Option<ContactId> = fields.optional("contactId");
        let number: Option<Number> = fields.optional("number");
        if channel_id.is_none() && !fields.has("channelId") && !fields.has("ticketId") {
            fields.refuse("channelId", "is required without ticketId");
        }
        let contact_name = fields.optional("contactName");
        let body = fields.required("body");
        let reopen_ticket = fields.optional("reopenTicket").unwrap_or(false);
        let queue_id: Option<QueueId> = fields.optional("queueId");
        let close_ticket = fields.optional("closeTicket").unwrap_or(false);
        let wrapup_type_id: Option<WrapupTypeId> = fields.optional("wrapupTypeId");
        let wrapup_note: Option<Text> = fields.optional("wrapupNote");
        let recipient =
            ticket.map(Recipient::Ticket).or(contact.map(Recipient::Contact)).or(number.map(Recipient::Number));
        // What is to be recorded at a closing that does not come is left out, as any field that does not apply.
        let after = AfterSend {
            queue_id,
            close_ticket,
            wrapup_type_id: wrapup_type_id.filter(|_| close_ticket),
            wrapup_note: wrapup_note.filter(|_| close_ticket).map(|note| note.0),
        };
        Some(Self { channel_id, recipient, contact_name, body: body?, reopen_ticket, after, wrapup_type_id })
    }
}

/// `POST /messages`: answers the job as soon as the message is durable.
pub async fn send(caller: Caller, app: Data<App>, body: Body<NewMessage>) -> Answer<HttpResponse> {
    let message = accept(&caller, &app, body.0).await?;
    Ok(data(StatusCode::ACCEPTED, json!({"jobId": JobId(message.id).to_string(), "status": "queued"})))
}

async fn accept(caller: &Caller, app: &App, new: NewMessage) -> Answer<MessageRow> {
    let channel = new.channel_id.map(|id| check_channel(caller, id)).transpose()?;
    // Before a number makes a contact: what is refused leaves nothing behind.
    let known = &caller.organization;
    let is_known = new.after.queue_id.is_none_or(|id| known.queues.contains_key(&id))
        && new.wrapup_type_id.is_none_or(|id| known.wrapup_types.contains_key(&id));
    if !is_known {
        return Err(ApiError::not_found());
    }
    let send =
        Send { body: new.body.0, reopen: new.reopen_ticket, reachable: false, after: new.after, author: Author::API };
    match (new.recipient, channel) {
        (None, _) => Err(ApiError::contact_not_identified("one of ticketId, contactId and number is required")),
        (Some(Recipient::Ticket(ticket)), channel) => send_in_ticket(caller, app, ticket, channel, send).await,
        (Some(_), None) => Err(channel_required()),
        (Some(Recipient::Contact(contact)), Some(channel)) => {
            Ok(app.engine.send(caller.company, channel.id, contact, Do::from(send)).await?)
        }
        (Some(Recipient::Number(_)), Some(channel)) if !channel.kind.has_phone() => {
            Err(ApiError::contact_not_identified("number is not valid on a channel without phone"))
        }
        (Some(Recipient::Number(number)), Some(channel)) => {
            let name = new.contact_name.as_ref().map(|name| name.0.as_str());
            let country = number.country();
            let numbered = Numbered { number: &number.0, name, country: country.as_deref() };
            let contact = app.engine.contact_with_number(caller.company, numbered).await?;
            Ok(app.engine.send(caller.company, channel.id, contact.id, Do::from(send)).await?)
        }
    }
}

fn channel_required() -> ApiError {
    let reason = "is required without ticketId".to_owned();
    ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }])
}

async fn send_in_ticket(
    caller: &Caller,
    app: &App,
    id: TicketId,
    channel: Option<&ChannelRow>,
    mut send: Send,
) -> Answer<MessageRow> {
    if let Some(channel) = channel {
        let ticket = app.engine.ticket(caller.company, id).await?;
        if ticket.row.channel_id != channel.id {
            let reason = "must be the ticket's channel".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }]));
        }
    }
    match app.engine.ask(caller.company, id, send.clone()).await {
        Err(Refusal::ContactUnreachable) => {
            // The ticket may not know what has happened elsewhere: the visitor's session, an earlier ticket.
            let ticket = app.engine.ticket(caller.company, id).await?;
            let (channel, contact) = (ticket.row.channel_id, ticket.row.contact_id);
            if !app.engine.is_reachable(caller.company, channel, contact).await? {
                return Err(Refusal::ContactUnreachable.into());
            }
            send.reachable = true;
            Ok(app.engine.ask(caller.company, id, send).await?)
        }
        outcome => Ok(outcome?),
    }
}
