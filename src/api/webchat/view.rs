//! Visitor sessions as the API returns them.

use hotline_persistence::tables::contacts::ContactRow;
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{ChannelId, SessionId, TicketId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::contacts::Contact;
use crate::web::response::reply::HasSecrets;

/// A visitor session in a webchat.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: SessionId,
    pub channel_id: ChannelId,
    pub contact: Contact,
    /// The ticket; `null` until the first message.
    pub ticket_id: Option<TicketId>,
    pub status: SessionStatus,
    /// Whether the visitor's identity was confirmed by the company or by an identity it signed.
    #[schema(example = true)]
    pub verified: bool,
    /// Unverified data from the visitor's browser; `null` if there is none.
    pub claimed: Option<Claimed>,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The visitor's token, only in the response to the opening; `null` in the response to a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(extensions(("x-left-out" = json!(true))), example = "vt_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP")]
    pub token: Option<String>,
}

impl HasSecrets for Session {
    const SECRETS: &'static [&'static str] = &["token"];
}

/// Unverified data about a visitor.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Claimed {
    #[schema(example = "Maria Lima")]
    pub name: Option<String>,
    #[schema(example = "maria@example.com")]
    pub email: Option<String>,
    #[schema(example = "5511987654321")]
    pub number: Option<String>,
    #[schema(example = "user-81")]
    pub external_id: Option<String>,
}

impl Session {
    /// The session with its contact.
    pub fn of(row: SessionRow, contact: ContactRow) -> Self {
        Self {
            id: row.id,
            channel_id: row.channel_id,
            contact: contact.into(),
            ticket_id: row.ticket_id,
            status: row.status,
            verified: row.verified,
            claimed: row.claimed.map(|claimed| serde_json::from_value(claimed).unwrap_or_default()),
            created_at: row.created_at.into(),
            last_seen_at: row.last_seen_at.into(),
            ended_at: row.ended_at.map(Timestamp),
            token: None,
        }
    }
}
