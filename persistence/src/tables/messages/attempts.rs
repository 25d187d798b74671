//! Attempts to send a message to its provider, recorded where the message's status does not imply them.
//!
//! A campaign's message is never sent twice, so each attempt is recorded before its call. For other messages, only
//! attempts whose answer was lost are recorded.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;

use super::{Direction, MessageRow, MessageStatus};
use crate::tables::source::Source;
use crate::{CompanyId, MessageId};

/// The attempts to send a message: its column `attempts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempts {
    /// Number of attempts that the provider did not refuse.
    pub count: u32,
    /// When an attempt began whose end is not recorded: it is running, or a restart has cut it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begun_at: Option<DateTime<Utc>>,
    /// When an attempt began whose outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_at: Option<DateTime<Utc>>,
    /// Why the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the attempt sent only the message's file; its text is sent separately.
    #[serde(rename = "isPart", skip_serializing_if = "std::ops::Not::not")]
    pub is_file_only: bool,
    /// Set while the provider has accepted the message's file, but not yet the text that is sent separately: the
    /// provider's id of the file, empty if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl Attempts {
    /// Whether the message may have been sent: an attempt's outcome is unknown, or, after a restart, its end is not
    /// recorded.
    pub fn is_in_doubt(&self) -> bool {
        self.begun_at.is_some() || self.unknown_at.is_some()
    }
}

/// All attempts of a message, as they are after a change. Storing the row twice has no further effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRow {
    pub company_id: CompanyId,
    pub message_id: MessageId,
    pub attempts: Attempts,
}

impl MessageRow {
    /// The recorded attempts to send the message; empty also if only a newer release can read them.
    pub fn attempts(&self) -> Attempts {
        self.attempts.as_ref().and_then(|value| Attempts::deserialize(value).ok()).unwrap_or_default()
    }

    /// Number of attempts that the provider did not refuse; if none is recorded, 1 for a sent message.
    pub fn attempt_count(&self) -> u32 {
        match &self.attempts {
            Some(_) => self.attempts().count,
            None => u32::from(self.direction == Direction::Outbound && self.status.has_reached(MessageStatus::Sent)),
        }
    }

    /// Whether an attempt's outcome is recorded as unknown; for one that a restart has cut off, that is recorded later.
    pub fn has_unknown_outcome(&self) -> bool {
        self.status == MessageStatus::Queued && self.attempts().unknown_at.is_some()
    }

    /// Whether it is a campaign's message with an unknown outcome: it is not sent again.
    pub fn is_left_in_doubt(&self) -> bool {
        self.source == Source::Campaign && self.has_unknown_outcome()
    }
}

/// Stores the attempts of messages, one row for each.
pub(crate) async fn set_attempts(db: &mut PgConnection, rows: &[&AttemptRow]) -> sqlx::Result<()> {
    let update = sqlx::query(
        "update messages m set attempts = x.attempts
         from unnest($1::bigint[], $2::bigint[], $3::jsonb[]) as x (company, id, attempts)
         where m.company_id = x.company and m.id = x.id and m.direction = 'outbound'",
    );
    let update = update
        .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.message_id).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| json!(row.attempts)).collect::<Vec<_>>());
    update.execute(db).await?;
    Ok(())
}
