//! `POST /messages`: resolves the recipient, and passes the message to its conversation.

use std::sync::Arc;

use actix_web::web::Data;
use hotline_actors::services::{NewContact, Recipient, Target};
use hotline_actors::tickets::{Content, Execute, InteractiveCheck, Send};
use hotline_actors::{FieldError, Refusal, Unreachable};
use hotline_persistence::tables::channels::{ChannelRow, ChannelType};
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::{MessageRow, MessageStatus};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::new::{ContentInput, NewMessage, RecipientInput};
use super::{JobId, interactive};
use crate::api::contacts::check_channel;
use crate::api::merges::{self, Mergeable};
use crate::app::App;
use crate::media::{UnreferencedFiles, Upload};
use crate::providers::FileKind;
use crate::templates::{BuiltTemplate, Template, TemplateRequest};
use crate::web::request::form::BodyWithFiles;
use crate::web::response::reply::Accepted;
use crate::web::{ApiError, ApiResult, Caller, Idempotency};

/// An accepted message that will be sent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
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

/// `POST /messages`: returns the job as soon as its messages are durable.
pub async fn send(
    caller: Caller,
    app: Data<App>,
    body: BodyWithFiles<NewMessage>,
    idempotency: Idempotency,
) -> ApiResult<Accepted<QueuedJob>> {
    let BodyWithFiles { fields: new, files: uploads } = body;
    let recipient_record = new.recipient.as_ref().and_then(|recipient| match recipient {
        RecipientInput::Ticket(ticket) => Some(Mergeable::Ticket(*ticket)),
        RecipientInput::Contact(contact) => Some(Mergeable::Contact(*contact)),
        RecipientInput::Number(_) => None,
    });
    let result = resolve_and_send(&caller, &app, new, uploads, idempotency).await;
    match recipient_record {
        Some(record) => merges::add_successor(&caller, &app, record, result).await,
        None => result,
    }
}

async fn resolve_and_send(
    caller: &Caller,
    app: &App,
    new: NewMessage,
    uploads: Vec<Upload>,
    idempotency: Idempotency,
) -> ApiResult<Accepted<QueuedJob>> {
    let author = caller.author_for(new.user_id)?;
    let target = resolve(caller, app, &new).await?;
    let channel = check_channel(caller, target.channel())?;
    let NewMessage { content, reopen_ticket, after, .. } = new;
    check_files(channel.kind, &content, &uploads)?;
    let stored_files = UnreferencedFiles::store(&app.media, caller.company, uploads).await?;
    let content = build_content(caller, app, channel, &target, content, stored_files.files()).await?;
    let command = Send { reopen: reopen_ticket, after, ..Send::new(content, author) };
    let to_response = |message: &MessageRow| Accepted::of(QueuedJob::of(message));
    let execute = |attached_changes| {
        let send = async || {
            let command = Execute { command, attached: attached_changes, only_if: None };
            let message = app.engine.sending.send(&target, command).await?;
            // Only for integrations: the panel records the presence of signed-in users.
            if caller.signed_in().is_none() {
                app.engine.attendance.record_answer(caller.company, target.channel());
            }
            Ok(message)
        };
        // The job's messages refer to all of the files.
        stored_files.attach_with(send, |_, _| true)
    };
    idempotency.command(to_response, execute).await
}

/// Resolves the recipient, which the request names by ticket, contact or number.
async fn resolve(caller: &Caller, app: &App, new: &NewMessage) -> ApiResult<Target> {
    let channel = new.channel_id.map(|id| check_channel(caller, id)).transpose()?;
    check_after_send(caller, new)?;
    let recipient = match (&new.recipient, channel) {
        (None, _) => {
            return Err(ApiError::contact_not_identified("one of ticketId, contactId and number is required"));
        }
        (Some(RecipientInput::Ticket(ticket)), _) => Recipient::Ticket(*ticket),
        (Some(_), None) => return Err(invalid("channelId", "is required without ticketId")),
        (Some(RecipientInput::Contact(contact)), Some(channel)) => Recipient::Contact(channel.id, *contact),
        (Some(RecipientInput::Number(_)), Some(channel)) if !channel.kind.has_phone() => {
            return Err(ApiError::contact_not_identified("number is only valid on a phone channel"));
        }
        (Some(RecipientInput::Number(number)), Some(channel)) => {
            let name = new.contact_name.as_ref().map(|name| name.0.clone());
            let contact = NewContact { number: number.0.clone(), name, country: number.country() };
            Recipient::Number(channel.id, contact)
        }
    };
    let target = app.engine.sending.resolve(caller.company, recipient).await?;
    if channel.is_some_and(|channel| channel.id != target.channel()) {
        return Err(invalid("channelId", "must be the ticket's channel"));
    }
    Ok(target)
}

/// Checks that the queue and the wrap-up type that the ticket gets after the send exist. This runs before a contact is
/// created for an unknown number, so that a refused request changes nothing.
fn check_after_send(caller: &Caller, new: &NewMessage) -> ApiResult<()> {
    let organization = &caller.organization;
    let is_known = new.after.queue_id.is_none_or(|id| organization.queues.contains_key(&id))
        && new.wrapup_type_id.is_none_or(|id| organization.wrapup_types.contains_key(&id));
    if is_known { Ok(()) } else { Err(ApiError::not_found()) }
}

fn invalid(field: &str, reason: &str) -> ApiError {
    ApiError::validation(&[FieldError { field: field.to_owned(), reason: reason.to_owned() }])
}

/// Files are required for the type `media`, and refused for all others. The channel's provider must accept them.
fn check_files(channel: ChannelType, content: &ContentInput, uploads: &[Upload]) -> ApiResult<()> {
    let ContentInput::Media { is_voice, .. } = content else {
        return if uploads.is_empty() {
            Ok(())
        } else {
            Err(invalid("medias", "are accepted only with the type media"))
        };
    };
    if uploads.is_empty() {
        return Err(invalid("medias", "is required: the files, in a multipart/form-data body"));
    }
    for upload in uploads {
        let kind = FileKind::of(channel, upload.mime_type());
        if let Some(bytes_max) = kind.bytes_max(channel).filter(|bytes_max| upload.size() > *bytes_max) {
            return Err(ApiError::file_too_large(kind.as_str(), bytes_max));
        }
        if *is_voice && !is_voice_type(channel, upload.mime_type()) {
            return Err(invalid("voice", "is accepted only for audio files, on WhatsApp of the type audio/ogg"));
        }
    }
    Ok(())
}

/// Whether a file of this type can be sent as a voice message.
/// <https://developers.facebook.com/docs/whatsapp/cloud-api/messages/audio-messages>
fn is_voice_type(channel: ChannelType, mime_type: &str) -> bool {
    match channel {
        ChannelType::Whatsapp => mime_type == "audio/ogg",
        ChannelType::Messenger | ChannelType::Instagram | ChannelType::Webchat => mime_type.starts_with("audio/"),
    }
}

/// The content in the form the channel needs.
async fn build_content(
    caller: &Caller,
    app: &App,
    channel: &ChannelRow,
    target: &Target,
    content: ContentInput,
    files: &[StoredMedia],
) -> ApiResult<Content> {
    match content {
        ContentInput::Text(body) => Ok(Content::Text { body: body.0 }),
        ContentInput::Media { caption, is_voice } => {
            let files = files.iter().map(|file| StoredMedia { voice: is_voice, ..file.clone() }).collect();
            Ok(Content::Media { files, caption: caption.map(|caption| caption.0) })
        }
        // Boxed: otherwise every other message would carry and copy this large future.
        ContentInput::Template(request) => {
            Box::pin(build_template_content(caller, app, channel, target, &request)).await
        }
        ContentInput::Interactive(object) => {
            let interactive = Value::Object(object);
            // On other channels the provider validates the object. The send repeats the check if it fills in variables.
            let check: Option<InteractiveCheck> = (channel.kind == ChannelType::Webchat).then_some(interactive::check);
            let errors = check.map(|check| check(&interactive)).unwrap_or_default();
            if !errors.is_empty() {
                return Err(ApiError::interactive_invalid(&errors));
            }
            Ok(Content::Interactive { interactive, check })
        }
    }
}

/// Builds the content of a template message.
async fn build_template_content(
    caller: &Caller,
    app: &App,
    channel: &ChannelRow,
    target: &Target,
    request: &TemplateRequest,
) -> ApiResult<Content> {
    // Checked before the provider is asked for its templates.
    if let Some(id) = target.named_contact() {
        let contact = app.engine.contacts.get(caller.company, id).await?.ok_or(Refusal::ContactNotFound)?;
        if channel.kind.has_phone()
            && contact.number.is_none()
            && !app.engine.contacts.has_address(caller.company, channel.id, id).await?
        {
            return Err(Refusal::ContactUnreachable(Unreachable::NoNumber).into());
        }
    }
    let BuiltTemplate { template, text, is_one_time_code } = build_template(app, channel, request).await?;
    if is_one_time_code && let Some(id) = target.contact() {
        let contact = app.engine.contacts.get(caller.company, id).await?.ok_or(Refusal::ContactNotFound)?;
        if contact.number.is_none() {
            return Err(Refusal::ContactUnreachable(Unreachable::NoNumberForCode).into());
        }
    }
    Ok(Content::Template { template, text })
}

/// Builds the requested template for the channel's provider.
///
/// # Errors
/// `422` with every field that does not match the channel's templates. While these are unknown, because the channel is
/// not connected, `422` with every field that cannot be completed without them.
pub async fn build_template(app: &App, channel: &ChannelRow, request: &TemplateRequest) -> ApiResult<BuiltTemplate> {
    let build = |templates: Option<Arc<[Template]>>| match templates {
        Some(templates) => request.build(&templates),
        None => request.build_unchecked(),
    };
    let result = match build(app.templates.of(channel).await?) {
        // The template may have been approved or changed since the templates were fetched.
        Err(_) => build(app.templates.refresh(channel).await?),
        Ok(template) => Ok(template),
    };
    result.map_err(|errors| ApiError::validation(&errors))
}
