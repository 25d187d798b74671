//! Messages and jobs as the API returns them.

use std::sync::Arc;

use actix_web::HttpRequest;
use chrono::{DateTime, Utc};
use hotline_actors::{Directory, Organization, clock};
use hotline_persistence::table::Named;
use hotline_persistence::tables::channels::{ChannelRow, ChannelStatus};
use hotline_persistence::tables::media::StoredMedia;
use hotline_persistence::tables::messages::{
    Direction, MessageApp, MessageAuthor, MessageContent, MessageRow, MessageStatus, MessageType, Reaction, Reactor,
    Revisions, Via,
};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{ChannelId, ContactId, MessageId, TicketId, Timestamp, TokenId, UserId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::JobId;
use crate::api::references;
use crate::app::App;
use crate::media::Links;
use crate::web::Caller;
use crate::web::connections::origin;

/// A message in a ticket: from the contact, from the company, or between agents.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: MessageId,
    /// The send that created it; `null` for messages from a contact.
    #[schema(example = "job_7")]
    pub job_id: Option<String>,
    pub ticket_id: TicketId,
    pub contact_id: ContactId,
    pub channel_id: ChannelId,
    pub direction: Direction,
    #[serde(rename = "type")]
    pub kind: MessageType,
    #[schema(example = "Yes, it is on its way.")]
    pub body: Option<String>,
    /// The file, with `type: media`.
    pub media: Option<File>,
    /// The approved template, with `type: template`.
    #[schema(value_type = Option<Object>)]
    pub template: Option<Value>,
    /// Buttons or a list, with `type: interactive`; of a contact's message, the submitted form as the provider sent it.
    #[schema(value_type = Option<Object>)]
    pub interactive: Option<Value>,
    /// Additional content, such as the option that the contact chose.
    pub content: Option<MessageContent>,
    /// The member of a group who wrote it.
    pub author: Option<MessageAuthor>,
    /// When the author changed the text.
    pub edited_at: Option<Timestamp>,
    /// The earlier texts of an edited message, the oldest first.
    pub edits: Vec<MessageEdit>,
    /// When the author deleted it, with its text and file.
    pub deleted_at: Option<Timestamp>,
    /// The reactions, one per person.
    pub reactions: Vec<MessageReaction>,
    /// The message it replies to.
    pub quoted_message_id: Option<MessageId>,
    pub status: MessageStatus,
    /// Why the message failed.
    #[schema(value_type = Option<MessageFailure>)]
    pub error: Option<Value>,
    /// The agent on whose behalf it was sent.
    pub user: Option<MessageUser>,
    /// The API token that sent it.
    pub integration: Option<Named<TokenId>>,
    /// Who caused it.
    pub source: Source,
    /// The kind of app that sent or received the message in place of Hotline: the company wrote it there, or another app
    /// handled the conversation when the contact wrote.
    pub via: Option<Via>,
    /// That app, with `via`.
    pub app: Option<MessageApp>,
    pub created_at: Timestamp,
    /// When the message or its status last changed.
    pub updated_at: Timestamp,
    pub sent_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    pub read_at: Option<Timestamp>,
}

/// Why a message failed.
#[derive(ToSchema)]
#[allow(dead_code)]
struct MessageFailure {
    /// The provider's own code, or one of Hotline's.
    #[schema(example = "131026")]
    code: String,
    /// A message for people.
    #[schema(example = "Message undeliverable")]
    message: String,
}

/// An earlier text of an edited message.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageEdit {
    #[schema(example = "Yes, it is on it's way.")]
    pub body: Option<String>,
    /// When it was replaced.
    pub at: Timestamp,
}

/// A reaction to a message.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageReaction {
    /// The emoji.
    #[schema(example = "👍")]
    pub emoji: String,
    /// Who has reacted.
    pub by: Reactor,
    /// The user who has reacted, with `by: user`.
    pub user: Option<MessageUser>,
    /// The name of the contact, or of a member of their group.
    #[schema(example = "Maria Silva")]
    pub name: Option<String>,
    /// Why the provider refused the company's reaction.
    #[schema(value_type = Option<MessageFailure>)]
    pub error: Option<Value>,
    /// When it was sent.
    pub at: Timestamp,
}

/// The user who sent a message, with their name at that time.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageUser {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: Option<String>,
}

/// A file that was sent or received.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MediaFile)]
pub struct File {
    /// A URL that needs no token, valid for about a day.
    #[schema(
        example = "/media/1/07831f4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP?name=invoice.pdf&type=application%2Fpdf&expires=1766102400&signature=9f86d081"
    )]
    pub url: String,
    #[schema(example = "application/pdf")]
    pub mime_type: String,
    #[schema(example = "invoice.pdf")]
    pub file_name: String,
    /// Size in bytes.
    #[schema(example = 48_213)]
    pub size: u64,
    /// Whether it is a voice message.
    pub voice: bool,
}

impl File {
    /// The file of a message with a fresh URL; `None` if the message has no file, or the file is not downloaded from
    /// the provider yet.
    pub(crate) fn of(row: &MessageRow, links: &Links) -> Option<Self> {
        let media = row.media.as_ref().and_then(StoredMedia::of)?;
        let url = links.url(row.company_id, &media, clock::now());
        let StoredMedia { id: _, mime_type, file_name, size, voice } = media;
        Some(Self { url, mime_type, file_name, size, voice })
    }
}

impl MessageReaction {
    /// A reaction; `None` if it was withdrawn.
    fn of(reaction: Reaction) -> Option<Self> {
        let user = reaction.user_id.map(|id| MessageUser { id, name: reaction.user_name });
        let (by, name, at) = (reaction.by, reaction.name, reaction.at.into());
        let error = reaction.error.and_then(|error| serde_json::to_value(error).ok());
        Some(Self { emoji: reaction.emoji?, by, user, name, error, at })
    }
}

impl Message {
    /// A message; its file gets a fresh URL.
    pub fn of(row: MessageRow, context: &ViewContext) -> Self {
        let media = File::of(&row, &context.links);
        let [sent_at, delivered_at, read_at] = times_in_order(&row);
        let (content, author) = (row.content(), row.author());
        let (via, app) = row.origin().map(|origin| (origin.kind, origin.app)).unzip();
        let Revisions { edited_at, edits, deleted_at, reactions, sending: _ } = row.revisions();
        Self {
            id: row.id,
            job_id: row.job_id.map(|id| JobId(id).to_string()),
            ticket_id: row.ticket_id,
            contact_id: row.contact_id,
            channel_id: row.channel_id,
            direction: row.direction,
            kind: row.kind,
            body: row.body,
            media,
            template: row.template,
            interactive: row.interactive,
            content,
            author,
            edited_at: edited_at.map(Timestamp),
            edits: edits.into_iter().map(|edit| MessageEdit { body: edit.body, at: edit.at.into() }).collect(),
            deleted_at: deleted_at.map(Timestamp),
            reactions: reactions.into_iter().filter_map(MessageReaction::of).collect(),
            quoted_message_id: row.quoted_message_id,
            status: row.status,
            error: row.error,
            integration: references::integration(&context.organization, row.integration_id),
            user: row.user_id.map(|id| MessageUser { id, name: row.user_name }),
            source: row.source,
            via,
            app,
            created_at: row.created_at.into(),
            updated_at: row.updated_at.unwrap_or(row.created_at).into(),
            sent_at: sent_at.map(Timestamp),
            delivered_at: delivered_at.map(Timestamp),
            read_at: read_at.map(Timestamp),
        }
    }
}

/// The times when a message was sent, delivered and read. Clocks of providers may be wrong, so a time before the
/// previous one, or before the message's creation, is replaced by that. The row keeps the provider's time, because the
/// conversation window begins when the contact wrote.
fn times_in_order(row: &MessageRow) -> [Option<DateTime<Utc>>; 3] {
    let mut latest = row.created_at;
    [row.sent_at, row.delivered_at, row.read_at].map(|at| {
        at.map(|at| {
            latest = latest.max(at);
            latest
        })
    })
}

/// The context for converting messages: the names of the directory, and the base URL of files.
#[derive(Clone)]
pub struct ViewContext {
    organization: Arc<Organization>,
    links: Links,
}

impl ViewContext {
    /// A context outside of a request: `links` has the base URL of files.
    pub fn new(organization: Arc<Organization>, links: Links) -> Self {
        Self { organization, links }
    }

    /// The directory with the names.
    pub fn organization(&self) -> &Arc<Organization> {
        &self.organization
    }

    /// The same context with the current names of its company's records.
    pub fn refreshed(&self, directory: &Directory) -> Self {
        let current = directory.company(self.organization.company.id);
        Self { organization: current.unwrap_or_else(|| self.organization.clone()), ..self.clone() }
    }

    /// The base URL of files.
    pub fn site(&self) -> &str {
        self.links.origin()
    }

    /// The context of a request.
    pub fn of(caller: &Caller, app: &App, request: &HttpRequest) -> Self {
        let links = app.media.links().with_origin(|| origin::site(request, &app.trusted_proxies));
        Self { organization: caller.organization.clone(), links }
    }
}

/// Why a message is waiting.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingFor {
    /// `channel_disconnected` or `channel_error`.
    #[schema(example = "channel_error")]
    pub code: &'static str,
    /// The reason as a sentence.
    #[schema(example = "the channel is in error: the access token has expired")]
    pub message: String,
}

impl WaitingFor {
    /// Why a channel cannot send; `None` if it can.
    fn of(channel: &ChannelRow) -> Option<Self> {
        let (code, state) = match channel.status {
            ChannelStatus::Connected => return None,
            ChannelStatus::Disconnected => ("channel_disconnected", "the channel is not connected"),
            ChannelStatus::Error => ("channel_error", "the channel is in error"),
        };
        let reason = channel.last_error.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Some(Self { code, message: format!("{state}{reason}") })
    }
}

/// The status of a send. For several messages, that of the slowest; `failed` as soon as one has failed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    #[schema(example = "job_7")]
    pub job_id: String,
    pub status: MessageStatus,
    pub message_id: MessageId,
    pub ticket_id: TicketId,
    /// Why the message failed.
    #[schema(value_type = Option<MessageFailure>)]
    pub error: Option<Value>,
    /// Why a queued message cannot be sent yet.
    pub waiting_for: Option<WaitingFor>,
    /// Number of calls to the provider that it did not refuse: two if its answer to the first was lost and the message was
    /// sent again, so that the contact may have received it twice.
    #[schema(example = 1)]
    pub attempts: u32,
    /// `unknown` while it is unknown whether the provider received a queued message.
    pub outcome: Option<JobOutcome>,
}

/// Whether the provider received the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobOutcome {
    /// The provider's answer was lost, and no status has named the message yet.
    Unknown,
}

impl Job {
    /// The job of these messages, named after the first one. Its status is that of the least advanced message; it has
    /// failed as soon as one has failed.
    pub fn of(first: MessageRow, others: Vec<MessageRow>, organization: &Organization) -> Self {
        let (message_id, ticket_id) = (first.id, first.ticket_id);
        let channel = organization.channels.get(&first.channel_id);
        let slowest = others.into_iter().fold(first, |slowest, other| {
            if progress(other.status) < progress(slowest.status) { other } else { slowest }
        });
        Self {
            job_id: JobId(message_id).to_string(),
            status: slowest.status,
            message_id,
            ticket_id,
            waiting_for: channel.filter(|_| slowest.status == MessageStatus::Queued).and_then(WaitingFor::of),
            attempts: slowest.attempt_count(),
            outcome: slowest.has_unknown_outcome().then_some(JobOutcome::Unknown),
            error: slowest.error,
        }
    }
}

/// The rank of a message's status within its job.
fn progress(status: MessageStatus) -> u8 {
    match status {
        MessageStatus::Failed => 0,
        MessageStatus::Queued => 1,
        MessageStatus::Sent => 2,
        MessageStatus::Delivered => 3,
        MessageStatus::Read | MessageStatus::Received => 4,
    }
}
