//! `POST /messages`: finds the recipient, and hands the message to its conversation.

use actix_web::web::Data;
use hotline_actors::tickets::{AfterSend, Author, Do, Rider, Send};
use hotline_actors::{FieldError, Refusal};
use hotline_persistence::tables::channels::ChannelRow;
use hotline_persistence::tables::contacts::Numbered;
use hotline_persistence::tables::messages::{MessageRow, MessageStatus, MessageType};
use hotline_persistence::{ChannelId, ContactId, QueueId, TicketId, WrapupTypeId};
use serde::Serialize;
use utoipa::ToSchema;

use super::JobId;
use crate::api::contacts::check_channel;
use crate::app::App;
use crate::web::values::{MessageBody, Name, Number, Text};
use crate::web::{Accepted, Answer, ApiError, Body, Caller, Fields, Input, Once};

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

/// A message that was accepted and will be sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct QueuedJob {
    #[schema(example = "job_7")]
    pub job_id: String,
    pub status: MessageStatus,
}

impl QueuedJob {
    fn of(message: &MessageRow) -> Self {
        Self { job_id: JobId(message.id).to_string(), status: MessageStatus::Queued }
    }
}

/// `POST /messages`: answers the job as soon as the message is durable.
pub async fn send(caller: Caller, app: Data<App>, body: Body<NewMessage>, once: Once) -> Answer<Accepted<QueuedJob>> {
    let new = body.0;
    let recipient = find_recipient(&caller, &app, &new).await?;
    let name = new.contact_name;
    let send =
        Send { body: new.body.0, reopen: new.reopen_ticket, reachable: false, after: new.after, author: Author::API };
    let show = |message: &MessageRow| Accepted::of(QueuedJob::of(message));
    once.live(show, |rider| hand_over(&caller, &app, recipient, name, send, rider)).await
}

/// Where a message goes.
enum Destination {
    Ticket(TicketId),
    Contact(ChannelId, ContactId),
    Number(ChannelId, Number),
}

/// How often a number's contact is looked for anew because it was deleted meanwhile.
const NUMBER_ATTEMPTS_MAX: usize = 8;

/// Whom the message is for.
async fn find_recipient(caller: &Caller, app: &App, new: &NewMessage) -> Answer<Destination> {
    let channel = new.channel_id.map(|id| check_channel(caller, id)).transpose()?;
    // Before a number makes a contact: what is refused leaves nothing behind.
    let known = &caller.organization;
    let is_known = new.after.queue_id.is_none_or(|id| known.queues.contains_key(&id))
        && new.wrapup_type_id.is_none_or(|id| known.wrapup_types.contains_key(&id));
    if !is_known {
        return Err(ApiError::not_found());
    }
    match (&new.recipient, channel) {
        (None, _) => Err(ApiError::contact_not_identified("one of ticketId, contactId and number is required")),
        (Some(Recipient::Ticket(ticket)), None) => Ok(Destination::Ticket(*ticket)),
        (Some(Recipient::Ticket(ticket)), Some(channel)) => {
            check_agreement(caller, app, *ticket, channel).await?;
            Ok(Destination::Ticket(*ticket))
        }
        (Some(_), None) => Err(channel_required()),
        (Some(Recipient::Contact(contact)), Some(channel)) => Ok(Destination::Contact(channel.id, *contact)),
        (Some(Recipient::Number(_)), Some(channel)) if !channel.kind.has_phone() => {
            Err(ApiError::contact_not_identified("number is not valid on a channel without phone"))
        }
        (Some(Recipient::Number(number)), Some(channel)) => Ok(Destination::Number(channel.id, number.clone())),
    }
}

fn channel_required() -> ApiError {
    let reason = "is required without ticketId".to_owned();
    ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }])
}

/// Ticket and channel are both given, and say the same.
async fn check_agreement(caller: &Caller, app: &App, id: TicketId, channel: &ChannelRow) -> Answer<()> {
    let ticket = app.engine.ticket(caller.company, id).await?;
    if ticket.row.channel_id == channel.id {
        return Ok(());
    }
    let reason = "must be the ticket's channel".to_owned();
    Err(ApiError::validation(&[FieldError { field: "channelId".to_owned(), reason }]))
}

async fn hand_over(
    caller: &Caller,
    app: &App,
    destination: Destination,
    name: Option<Name>,
    send: Send,
    rider: Option<Rider<MessageRow>>,
) -> Result<MessageRow, Refusal> {
    match destination {
        Destination::Ticket(ticket) => send_in_ticket(caller, app, ticket, send, rider).await,
        Destination::Contact(channel, contact) => {
            app.engine.send(caller.company, channel, contact, Do { command: send, rider }).await
        }
        Destination::Number(channel, number) => {
            let what = Do { command: send, rider };
            send_to_number(caller, app, channel, &number, name.as_ref(), what).await
        }
    }
}

/// A number makes a contact when there is none.
async fn send_to_number(
    caller: &Caller,
    app: &App,
    channel: ChannelId,
    number: &Number,
    name: Option<&Name>,
    what: Do<Send>,
) -> Result<MessageRow, Refusal> {
    let (company, country) = (caller.company, number.country());
    let name = name.map(|name| name.0.as_str());
    let numbered = Numbered { number: &number.0, name, country: country.as_deref() };
    for _ in 0..NUMBER_ATTEMPTS_MAX {
        let contact = app.engine.contact_with_number(company, numbered).await?;
        match app.engine.send(company, channel, contact.id, what.clone()).await {
            // Deleted since it was found: the number has another one now.
            Err(Refusal::ContactNotFound) => {}
            outcome => return outcome,
        }
    }
    Err(Refusal::Unavailable("the number's contact is deleted again and again".to_owned()))
}

async fn send_in_ticket(
    caller: &Caller,
    app: &App,
    id: TicketId,
    send: Send,
    rider: Option<Rider<MessageRow>>,
) -> Result<MessageRow, Refusal> {
    let mut what = Do { command: send, rider };
    match app.engine.ask(caller.company, id, what.clone()).await {
        Err(Refusal::ContactUnreachable) => {
            // The ticket may not know what has happened elsewhere: the visitor's session, an earlier ticket.
            let ticket = app.engine.ticket(caller.company, id).await?;
            let (channel, contact) = (ticket.row.channel_id, ticket.row.contact_id);
            if !app.engine.is_reachable(caller.company, channel, contact).await? {
                return Err(Refusal::ContactUnreachable);
            }
            what.command.reachable = true;
            app.engine.ask(caller.company, id, what).await
        }
        outcome => outcome,
    }
}
