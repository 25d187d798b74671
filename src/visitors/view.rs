//! Sessions and messages as visitors see them: only what they may know. Contacts and tickets are left out, because a
//! company's records of a person belong to the company.

use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{MessageId, SessionId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::messages::File;
use crate::media::Links;

/// A session, as its visitor sees it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = VisitorSession)]
pub struct SessionView {
    pub id: SessionId,
    pub status: SessionStatus,
    /// Whether the website confirmed the visitor's identity by a signature.
    pub verified: bool,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The session's token, only in the response that opens the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "vt_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub token: Option<String>,
}

impl From<&SessionRow> for SessionView {
    fn from(row: &SessionRow) -> Self {
        Self {
            id: row.id.clone(),
            status: row.status,
            verified: row.verified,
            created_at: row.created_at.into(),
            last_seen_at: row.last_seen_at.into(),
            ended_at: row.ended_at.map(Timestamp),
            token: None,
        }
    }
}

/// A message, as a visitor sees it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = VisitorMessage)]
pub struct MessageView {
    pub id: MessageId,
    /// The id that this session's browser chose for its message; `null` for all other messages.
    pub client_id: Option<String>,
    pub direction: Direction,
    #[serde(rename = "type")]
    pub kind: MessageType,
    pub body: Option<String>,
    pub media: Option<File>,
    #[schema(value_type = Option<Object>)]
    pub interactive: Option<Value>,
    pub quoted_message_id: Option<MessageId>,
    pub status: MessageStatus,
    pub agent: Option<AgentView>,
    pub created_at: Timestamp,
    pub read_at: Option<Timestamp>,
}

/// The agent who sent the message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageAgent)]
pub struct AgentView {
    pub name: String,
}

impl MessageView {
    /// The message for the visitor of this session; its file gets a fresh URL.
    pub fn of(row: &MessageRow, session: &SessionId, links: &Links) -> Self {
        Self {
            id: row.id,
            client_id: row.client_id.clone().filter(|_| row.session_id.as_ref() == Some(session)),
            direction: row.direction,
            kind: row.kind,
            body: row.body.clone(),
            media: File::of(row, links),
            interactive: row.interactive.clone(),
            quoted_message_id: row.quoted_message_id,
            status: row.status,
            agent: row.user_name.clone().map(|name| AgentView { name }),
            created_at: row.created_at.into(),
            read_at: row.read_at.map(Timestamp),
        }
    }
}
