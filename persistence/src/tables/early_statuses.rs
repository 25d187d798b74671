//! Statuses that arrived before their message was recorded as sent. Changed by transactions, not by actors.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, FromRow};

use super::messages::{DeliveryStatus, MessageError, MessageStatus};
use crate::cluster::SlotFilter;
use crate::document::{self, Document};
use crate::error::{is_caused_by_values, with_timeout};
use crate::rejected::{self, RejectedRow};
use crate::{ChannelId, CompanyId, Database, Error, MessageId, Result};

/// A provider's status of an unknown message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EarlyStatus {
    pub company_id: CompanyId,
    pub channel_id: ChannelId,
    pub provider_message_id: String,
    #[serde(rename = "milestone")]
    pub delivery_status: DeliveryStatus,
    pub at: DateTime<Utc>,
    /// Our own id of the message, if the provider has returned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<MessageId>,
}

/// Maximum statuses of unknown messages that a channel keeps: as many as are indexed in memory. Another program that
/// sends with the same account must not fill the table. Further ones are dropped.
pub const STORED_MAX: i64 = 50_000;

#[derive(FromRow)]
struct Row {
    status: MessageStatus,
    #[sqlx(try_from = "Document")]
    error: Option<Value>,
    at: DateTime<Utc>,
    names: Option<MessageId>,
}

/// Stores a status, unless it is stored already. Returns whether there was room for it. The stored statuses of the
/// channel are counted only if it `is_crowded`: counting takes milliseconds. If the database refuses the status, it
/// is stored in `rejected_changes`: the provider's retries would be refused too, and its call contains other statuses.
pub async fn store(db: impl Database<'_>, status: &EarlyStatus, is_crowded: bool) -> Result<bool> {
    match insert(db, status, is_crowded).await {
        Err(Error::Database(error)) if is_caused_by_values(&error) => {
            let row = serde_json::to_value(status).unwrap_or_default();
            let rejected = RejectedRow { company: status.company_id, kind: "early_status", id: None, row };
            rejected::store_as_text(db, rejected, &error).await?;
            Ok(true)
        }
        result => result,
    }
}

async fn insert(db: impl Database<'_>, status: &EarlyStatus, is_crowded: bool) -> Result<bool> {
    let error = match &status.delivery_status {
        DeliveryStatus::Failed(error) => Some(Json(error)),
        _ => None,
    };
    with_timeout(
        sqlx::query_scalar(
            "with room as (
                 select not $9 or (select count(*) from (select from early_statuses
                     where company_id = $1 and channel_id = $2 limit $8) stored) < $8 as has_room),
             inserted as (
                 insert into early_statuses (company_id, channel_id, provider_message_id, status, error, at, names)
                 select $1, $2, $3, $4, $5, $6, $7 from room where has_room
                 on conflict do nothing)
             select has_room from room",
        )
        .bind(status.company_id)
        .bind(status.channel_id)
        .bind(&status.provider_message_id)
        .bind(status.delivery_status.status().as_str())
        .bind(error)
        .bind(status.at)
        .bind(status.names)
        .bind(STORED_MAX)
        .bind(is_crowded)
        .fetch_one(db),
    )
    .await
}

/// The stored statuses of one message.
pub async fn of_message(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    provider_message_id: &str,
) -> Result<Vec<EarlyStatus>> {
    let rows = with_timeout(
        sqlx::query(
            "select status, error, at, names from early_statuses
             where company_id = $1 and channel_id = $2 and provider_message_id = $3 order by created_at",
        )
        .bind(company)
        .bind(channel)
        .bind(provider_message_id)
        .fetch_all(db),
    )
    .await?;
    let rows = document::read_all::<Row>(&rows);
    Ok(rows.into_iter().map(|row| row.into_status(company, channel, provider_message_id)).collect())
}

impl Row {
    fn into_status(self, company: CompanyId, channel: ChannelId, provider_message_id: &str) -> EarlyStatus {
        let delivery_status = match self.status {
            MessageStatus::Delivered => DeliveryStatus::Delivered,
            MessageStatus::Read => DeliveryStatus::Read,
            MessageStatus::Failed => {
                // The failure is known even if the stored reason is unreadable.
                let stored = self.error.and_then(|error| serde_json::from_value(error).ok());
                DeliveryStatus::Failed(stored.unwrap_or_else(MessageError::unreadable))
            }
            _ => DeliveryStatus::Sent,
        };
        let provider_message_id = provider_message_id.to_owned();
        EarlyStatus {
            company_id: company,
            channel_id: channel,
            provider_message_id,
            delivery_status,
            at: self.at,
            names: self.names,
        }
    }
}

/// The provider's id of our message, from a stored status that carries our id of it; `None` if there is no such status.
pub async fn find_provider_id(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    message: MessageId,
) -> Result<Option<String>> {
    let select = sqlx::query_scalar(
        "select provider_message_id from early_statuses where company_id = $1 and channel_id = $2 and names = $3 limit 1",
    );
    with_timeout(select.bind(company).bind(channel).bind(message).fetch_optional(db)).await
}

/// The provider's message ids of the newest `limit` stored statuses of a channel.
pub async fn of_channel(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    limit: i64,
) -> Result<Vec<String>> {
    with_timeout(
        sqlx::query_scalar(
            "select provider_message_id from early_statuses where company_id = $1 and channel_id = $2
             order by created_at desc limit $3",
        )
        .bind(company)
        .bind(channel)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// The channels with stored statuses or revisions, which a killed process may have left unapplied. Only for background
/// work.
pub async fn channels(db: impl Database<'_>, slots: &SlotFilter) -> Result<Vec<(CompanyId, ChannelId)>> {
    let in_slots = SlotFilter::condition("company_id", 1);
    let channels = format!(
        "select company_id, channel_id from early_statuses where {in_slots}
         union select company_id, channel_id from early_revisions where {in_slots}"
    );
    with_timeout(sqlx::query_as(AssertSqlSafe(channels)).bind(slots.numbers()).fetch_all(db)).await
}

/// Deletes the stored statuses of a message that were applied to it: those whose `status` is one of `applied`.
pub async fn remove(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    provider_message_id: &str,
    applied: &[&str],
) -> Result<()> {
    let delete = sqlx::query(
        "delete from early_statuses
         where company_id = $1 and channel_id = $2 and provider_message_id = $3 and status = any ($4)",
    );
    let delete = delete.bind(company).bind(channel).bind(provider_message_id).bind(applied);
    with_timeout(delete.execute(db)).await?;
    Ok(())
}

/// Deletes up to `limit` statuses stored before a time: those of unknown messages. Returns how many were deleted.
pub async fn sweep(db: impl Database<'_>, before: DateTime<Utc>, limit: i64) -> Result<u64> {
    let deleted = with_timeout(
        sqlx::query(
            "delete from early_statuses where ctid = any (array(
                 select ctid from early_statuses where created_at < $1 limit $2))",
        )
        .bind(before)
        .bind(limit)
        .execute(db),
    )
    .await?;
    Ok(deleted.rows_affected())
}
