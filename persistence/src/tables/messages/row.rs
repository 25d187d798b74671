//! A message row, and the words for its direction, type and status.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::FromRow;

use crate::document::Document;
use crate::tables::source::Source;
use crate::tables::text_enum;
use crate::{ChannelId, CompanyId, ContactId, MessageId, SessionId, TicketId, TokenId, UserId};

text_enum! {
    /// The direction of a message.
    Direction { Inbound = "inbound", Outbound = "outbound", Internal = "internal" }
}

text_enum! {
    /// The type of a message.
    MessageType {
        Text = "text",
        Media = "media",
        Template = "template",
        Interactive = "interactive",
        Note = "note",
        System = "system",
    }
}

text_enum! {
    /// The status of a message. It only moves forward; `failed` is final; inbound messages are `received`.
    MessageStatus {
        Queued = "queued",
        Sent = "sent",
        Delivered = "delivered",
        Read = "read",
        Failed = "failed",
        Received = "received",
    }
}

impl MessageStatus {
    /// Whether an outbound message with this status has also reached `status`.
    pub fn has_reached(self, status: Self) -> bool {
        !matches!(self, Self::Failed | Self::Received) && self.rank() >= status.rank()
    }

    /// The order of statuses: a later one has a higher rank.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Sent => 1,
            Self::Delivered => 2,
            Self::Read => 3,
            Self::Failed => 4,
            Self::Received => 5,
        }
    }
}

/// One message as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
pub struct MessageRow {
    pub company_id: CompanyId,
    pub id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<MessageId>,
    pub ticket_id: TicketId,
    pub contact_id: ContactId,
    pub channel_id: ChannelId,
    pub direction: Direction,
    #[sqlx(rename = "type")]
    pub kind: MessageType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub media: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub template: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub interactive: Option<Value>,
    /// What the message contains besides its text ([`super::MessageContent`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub content: Option<Value>,
    /// Edits, deletion and reactions since it was written ([`super::Revisions`]). Only the persister sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub revisions: Option<Value>,
    /// The recorded attempts to send it ([`super::Attempts`]). Only the persister sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub attempts: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted_message_id: Option<MessageId>,
    pub status: MessageStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub error: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The token of the integration that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<TokenId>,
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub after_send: Option<Value>,
    /// The provider's id of the message; `None` until the provider accepts it, and for webchats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<DateTime<Utc>>,
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<DateTime<Utc>>,
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub read_at: Option<DateTime<Utc>>,
    /// When it changed last; `None`: never since it was created. Set by a trigger, by the statement of a revision, or,
    /// if the message is stored with an advanced status, when it is inserted.
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}
