//! How a message and its job are shown.

use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::tickets::Source;
use hotline_persistence::{ChannelId, ContactId, MessageId, TicketId, UserId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::JobId;
use crate::web::values::Timestamp;

/// Something said in a ticket: by its contact, by the company, or among agents.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Message {
    pub id: MessageId,
    /// The send that made it; none for what a contact said.
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
    /// The file: with `type: media`.
    #[schema(value_type = Option<Object>)]
    pub media: Option<Value>,
    /// The approved template it was made of: with `type: template`.
    #[schema(value_type = Option<Object>)]
    pub template: Option<Value>,
    /// Buttons or a list to choose from: with `type: interactive`.
    #[schema(value_type = Option<Object>)]
    pub interactive: Option<Value>,
    /// The message this one answers.
    pub quoted_message_id: Option<MessageId>,
    pub status: MessageStatus,
    /// Why it failed: `{code, message}`.
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
    pub user: Option<MessageUser>,
    /// Who caused it.
    pub source: Source,
    pub created_at: Timestamp,
    pub sent_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    pub read_at: Option<Timestamp>,
}

/// Who wrote a message, with the name they had then.
#[derive(Debug, Serialize, ToSchema)]
#[allow(missing_docs)]
pub struct MessageUser {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: Option<String>,
}

impl From<MessageRow> for Message {
    fn from(row: MessageRow) -> Self {
        Self {
            id: row.id,
            job_id: row.job_id.map(|id| JobId(id).to_string()),
            ticket_id: row.ticket_id,
            contact_id: row.contact_id,
            channel_id: row.channel_id,
            direction: row.direction,
            kind: row.kind,
            body: row.body,
            media: row.media,
            template: row.template,
            interactive: row.interactive,
            quoted_message_id: row.quoted_message_id,
            status: row.status,
            error: row.error,
            user: row.user_id.map(|id| MessageUser { id, name: row.user_name }),
            source: row.source,
            created_at: row.created_at.into(),
            sent_at: row.sent_at.map(Timestamp),
            delivered_at: row.delivered_at.map(Timestamp),
            read_at: row.read_at.map(Timestamp),
        }
    }
}

/// A send, and how far its message has come.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Job {
    #[schema(example = "job_7")]
    pub job_id: String,
    pub status: MessageStatus,
    pub message_id: MessageId,
    pub ticket_id: TicketId,
    /// Why it failed: `{code, message}`.
    #[schema(value_type = Option<Object>)]
    pub error: Option<Value>,
}

impl From<MessageRow> for Job {
    fn from(row: MessageRow) -> Self {
        Self {
            job_id: JobId(row.id).to_string(),
            status: row.status,
            message_id: row.id,
            ticket_id: row.ticket_id,
            error: row.error,
        }
    }
}
