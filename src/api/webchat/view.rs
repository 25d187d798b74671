//! How a visitor session is shown.

use hotline_persistence::tables::contacts::ContactRow;
use hotline_persistence::tables::webchat_sessions::{SessionRow, SessionStatus};
use hotline_persistence::{ChannelId, SessionId, TicketId};
use serde::Serialize;

use crate::api::contacts::Contact;
use crate::web::values::timestamp;

/// A session as shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Session {
    pub id: SessionId,
    pub channel_id: ChannelId,
    pub contact: Contact,
    pub ticket_id: Option<TicketId>,
    pub status: SessionStatus,
    pub created_at: String,
    pub last_seen_at: String,
    pub ended_at: Option<String>,
    /// The visitor's own token, once, in the answer to the opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl Session {
    /// With its contact.
    pub fn of(row: SessionRow, contact: ContactRow) -> Self {
        Self {
            id: row.id,
            channel_id: row.channel_id,
            contact: contact.into(),
            ticket_id: row.ticket_id,
            status: row.status,
            created_at: timestamp(row.created_at),
            last_seen_at: timestamp(row.last_seen_at),
            ended_at: row.ended_at.map(timestamp),
            token: None,
        }
    }
}
