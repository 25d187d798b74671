//! `POST /messages`: finds the recipient, and hands the message to its conversation.

use actix_web::web::Data;
use hotline_actors::tickets::{Check, Content, Do, Rider, Send};
use hotline_actors::variables::{ContactValues, names};
use hotline_actors::{FieldError, Refusal, Unreachable};
use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use hotline_persistence::tables::contacts::{ContactRef, Numbered};
use hotline_persistence::tables::messages::{MessageRow, MessageStatus};
use hotline_persistence::{ContactId, TicketId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::new::{NewMessage, Recipient, What};
use super::{JobId, interactive};
use crate::api::contacts::check_channel;
use crate::app::App;
use crate::media::Upload;
use crate::templates::Asked;
use crate::web::values::{Name, Number};
use crate::web::{Accepted, Answer, ApiError, BodyWithFiles, Caller, Once};

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

/// `POST /messages`: answers the job as soon as its messages are durable.
pub async fn send(
    caller: Caller,
    app: Data<App>,
    body: BodyWithFiles<NewMessage>,
    once: Once,
) -> Answer<Accepted<QueuedJob>> {
    let BodyWithFiles { fields: new, files } = body;
    let author = caller.author_for(new.user_id)?;
    let destination = Destination::find(&caller, &app, &new).await?;
    let NewMessage { contact_name, what, reopen_ticket, after, .. } = new;
    let content = content(&caller, &app, &destination, what, files).await?;
    let send = Send { reopen: reopen_ticket, after, ..Send::new(content, author) };
    let show = |message: &MessageRow| Accepted::of(QueuedJob::of(message));
    let files = send.content.files().to_vec();
    let sent = once.live(show, |rider| hand_over(&caller, &app, destination, contact_name, send, rider)).await;
    if sent.as_ref().is_err_and(|refused| refused.status.is_client_error()) {
        // Nothing was journaled, so no message will ever name them.
        app.media.discard(caller.company, &files);
    }
    sent
}

/// Where a message goes.
enum Destination<'a> {
    Ticket(TicketId),
    Contact(&'a ChannelRow, ContactId),
    Number(&'a ChannelRow, Number),
}

impl<'a> Destination<'a> {
    /// Whom the message is for.
    async fn find(caller: &'a Caller, app: &App, new: &NewMessage) -> Answer<Self> {
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
            (Some(Recipient::Ticket(ticket)), None) => Ok(Self::Ticket(*ticket)),
            (Some(Recipient::Ticket(ticket)), Some(channel)) => {
                check_agreement(caller, app, *ticket, channel).await?;
                Ok(Self::Ticket(*ticket))
            }
            (Some(_), None) => Err(invalid("channelId", "is required without ticketId")),
            (Some(Recipient::Contact(contact)), Some(channel)) => Ok(Self::Contact(channel, *contact)),
            (Some(Recipient::Number(_)), Some(channel)) if !channel.kind.has_phone() => {
                Err(ApiError::contact_not_identified("number is not valid on a channel without phone"))
            }
            (Some(Recipient::Number(number)), Some(channel)) => Ok(Self::Number(channel, number.clone())),
        }
    }

    /// The channel it goes over.
    async fn channel(&self, caller: &'a Caller, app: &App) -> Answer<&'a ChannelRow> {
        match self {
            Self::Ticket(id) => {
                let ticket = app.engine.ticket(caller.company, *id).await?;
                check_channel(caller, ticket.row.channel_id)
            }
            Self::Contact(channel, _) | Self::Number(channel, _) => Ok(channel),
        }
    }
}

fn invalid(field: &str, reason: &str) -> ApiError {
    ApiError::validation(&[FieldError { field: field.to_owned(), reason: reason.to_owned() }])
}

/// Ticket and channel are both given, and say the same.
async fn check_agreement(caller: &Caller, app: &App, id: TicketId, channel: &ChannelRow) -> Answer<()> {
    let ticket = app.engine.ticket(caller.company, id).await?;
    if ticket.row.channel_id == channel.id { Ok(()) } else { Err(invalid("channelId", "must be the ticket's channel")) }
}

/// What is sent, as the channel takes it.
async fn content(
    caller: &Caller,
    app: &App,
    destination: &Destination<'_>,
    what: What,
    files: Vec<Upload>,
) -> Answer<Content> {
    if !files.is_empty() && !matches!(what, What::Media { .. }) {
        return Err(invalid("medias", "are sent with the type media only"));
    }
    match what {
        What::Text(body) => Ok(Content::Text { body: body.0 }),
        What::Media { .. } if files.is_empty() => {
            Err(invalid("medias", "is required: the files, in a multipart/form-data body"))
        }
        What::Media { caption } => {
            let stored = app.media.publish_all(caller.company, files).await?;
            Ok(Content::Media { files: stored, caption: caption.map(|caption| caption.0) })
        }
        What::Template(asked) => template(caller, app, destination, &asked).await,
        What::Interactive(object) => {
            let interactive = Value::Object(object);
            let channel = destination.channel(caller, app).await?;
            let check: Option<Check> = (channel.kind == ChannelType::Webchat).then_some(interactive::check);
            let errors = check.map(|check| check(&interactive)).unwrap_or_default();
            if !errors.is_empty() {
                return Err(ApiError::interactive_invalid(&errors));
            }
            Ok(Content::Interactive { interactive, check })
        }
    }
}

/// A template that the channel has, filled in.
async fn template(caller: &Caller, app: &App, destination: &Destination<'_>, asked: &Asked) -> Answer<Content> {
    let channel = destination.channel(caller, app).await?;
    // The provider is not asked for whom it does not concern.
    if let Destination::Contact(_, id) = destination {
        let contact = app.engine.contact(caller.company, *id).await?.ok_or(Refusal::ContactNotFound)?;
        if channel.kind.has_phone() && contact.number.is_none() {
            return Err(Refusal::ContactUnreachable(Unreachable::NoNumber).into());
        }
    }
    let built = match asked.build(&app.templates.of(channel).await?) {
        // It may have been approved, or changed, since the templates were fetched.
        Err(_) => asked.build(&app.templates.anew(channel).await?),
        built => built,
    };
    let built = built.map_err(|errors| ApiError::validation(&errors))?;
    Ok(Content::Template { template: built.template, text: built.text })
}

async fn hand_over(
    caller: &Caller,
    app: &App,
    destination: Destination<'_>,
    name: Option<Name>,
    mut send: Send,
    rider: Option<Rider<MessageRow>>,
) -> Result<MessageRow, Refusal> {
    let company = caller.company;
    match destination {
        Destination::Ticket(ticket) => {
            if asks_for_values(&send) {
                let contact = app.engine.ticket(company, ticket).await?.row.contact_id;
                send.values = app.engine.values(caller.company, contact).await?;
            }
            app.engine.send_in(company, ticket, Do { command: send, rider }).await
        }
        Destination::Contact(channel, contact) => {
            if asks_for_values(&send) {
                send.values = app.engine.values(caller.company, contact).await?;
            }
            app.engine.send(company, channel.id, contact, Do { command: send, rider }).await
        }
        Destination::Number(channel, number) => {
            let what = Do { command: send, rider };
            send_to_number(caller, app, channel, &number, name.as_ref(), what).await
        }
    }
}

/// How often a number's contact is looked for anew because it was deleted meanwhile.
const NUMBER_ATTEMPTS_MAX: usize = 8;

/// A number makes a contact when there is none.
async fn send_to_number(
    caller: &Caller,
    app: &App,
    channel: &ChannelRow,
    number: &Number,
    name: Option<&Name>,
    mut what: Do<Send>,
) -> Result<MessageRow, Refusal> {
    let (company, country) = (caller.company, number.country());
    let name = name.map(|name| name.0.as_str());
    let numbered = Numbered { number: &number.0, name, country: country.as_deref() };
    if !app.engine.is_known_number(company, &number.0).await? {
        // What is refused leaves no contact behind.
        let name = name.unwrap_or(&number.0).to_owned();
        let stranger = ContactRef { id: ContactId::new(0), name, number: Some(number.0.clone()), verified: false };
        app.engine.rehearse(company, channel.id, stranger, what.command.clone())?;
    }
    for _ in 0..NUMBER_ATTEMPTS_MAX {
        let contact = app.engine.contact_with_number(company, numbered).await?;
        if asks_for_values(&what.command) {
            what.command.values = app.engine.values(caller.company, contact.id).await?;
        }
        match app.engine.send(company, channel.id, contact.id, what.clone()).await {
            // Deleted since it was found: the number has another one now.
            Err(Refusal::ContactNotFound) => {}
            outcome => return outcome,
        }
    }
    Err(Refusal::Unavailable("the number's contact is deleted again and again".to_owned()))
}

/// Whether a text has variables that only the tables know.
fn asks_for_values(send: &Send) -> bool {
    send.content.texts().into_iter().any(|text| names(text).any(ContactValues::are_asked_for))
}
