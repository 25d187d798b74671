//! Revisions that arrived before their message: a provider's calls arrive in any order. Changed by transactions, not by
//! actors.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::{FromRow, PgExecutor};

use super::messages::Revision;
use crate::document::{self, Document};
use crate::error::{is_caused_by_values, with_timeout};
use crate::rejected::{self, RejectedRow};
use crate::{ChannelId, CompanyId, Database, Error, Result};

/// Maximum revisions of unknown messages that a channel keeps: another app that uses the same account must not fill the
/// table. Further ones are dropped.
pub const EARLY_REVISIONS_MAX: i64 = 10_000;

/// A revision of an unknown message.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyRevision {
    pub company_id: CompanyId,
    pub channel_id: ChannelId,
    pub provider_message_id: String,
    pub revision: Revision,
    pub at: DateTime<Utc>,
}

#[derive(FromRow)]
struct Row {
    #[sqlx(try_from = "Document")]
    revision: Option<Value>,
    at: DateTime<Utc>,
}

impl EarlyRevision {
    /// The kind of the revision, and what distinguishes it from others of this kind.
    fn key(&self) -> (&'static str, &str) {
        match &self.revision {
            Revision::Edited { id, .. } => ("edited", id),
            Revision::Deleted { .. } => ("deleted", ""),
            Revision::Reacted(reaction) | Revision::ReactionToSend { reaction, .. } => ("reacted", &reaction.key),
            // Never stored here: its message is known.
            Revision::ReactionSent { .. } => ("reacted", ""),
        }
    }
}

/// Stores a revision, unless a later one of the same kind and key is stored. Returns whether there was room for it. If
/// the database refuses it, it is stored in `rejected_changes`: the provider's retries would be refused too.
pub async fn store(db: impl Database<'_>, early: &EarlyRevision) -> Result<bool> {
    match insert(db, early).await {
        Err(Error::Database(error)) if is_caused_by_values(&error) => {
            let row = json!({"revision": early.revision, "providerMessageId": early.provider_message_id});
            let rejected = RejectedRow { company: early.company_id, kind: "early_revision", id: None, row };
            rejected::store_as_text(db, rejected, &error).await?;
            Ok(true)
        }
        result => result,
    }
}

async fn insert(db: impl Database<'_>, early: &EarlyRevision) -> Result<bool> {
    let (kind, key) = early.key();
    with_timeout(
        sqlx::query_scalar(
            "with room as (
                 select count(*) < $8 or exists (select from early_revisions where company_id = $1 and channel_id = $2
                     and provider_message_id = $3 and kind = $4 and key = $5) as has_room
                 from (select from early_revisions where company_id = $1 and channel_id = $2 limit $8) stored),
             inserted as (
                 insert into early_revisions (company_id, channel_id, provider_message_id, kind, key, revision, at)
                 select $1, $2, $3, $4, $5, $6, $7 from room where has_room
                 on conflict (company_id, channel_id, provider_message_id, kind, key) do update
                     set revision = excluded.revision, at = excluded.at where early_revisions.at <= excluded.at)
             select has_room from room",
        )
        .bind(early.company_id)
        .bind(early.channel_id)
        .bind(&early.provider_message_id)
        .bind(kind)
        .bind(key)
        .bind(json!(early.revision))
        .bind(early.at)
        .bind(EARLY_REVISIONS_MAX)
        .fetch_one(db),
    )
    .await
}

/// The stored revisions of one message, in the order in which they happened.
pub async fn of_message(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    provider_message_id: &str,
) -> Result<Vec<EarlyRevision>> {
    let rows = with_timeout(
        sqlx::query(
            "select revision, at from early_revisions
             where company_id = $1 and channel_id = $2 and provider_message_id = $3 order by at, created_at",
        )
        .bind(company)
        .bind(channel)
        .bind(provider_message_id)
        .fetch_all(db),
    )
    .await?;
    let into_revision = |row: Row| {
        Some(EarlyRevision {
            company_id: company,
            channel_id: channel,
            provider_message_id: provider_message_id.to_owned(),
            revision: Revision::deserialize(row.revision?).ok()?,
            at: row.at,
        })
    };
    Ok(document::read_all::<Row>(&rows).into_iter().filter_map(into_revision).collect())
}

/// The provider's message ids of the newest `limit` stored revisions of a channel.
pub async fn of_channel(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    limit: i64,
) -> Result<Vec<String>> {
    with_timeout(
        sqlx::query_scalar(
            "select provider_message_id from early_revisions where company_id = $1 and channel_id = $2
             order by created_at desc limit $3",
        )
        .bind(company)
        .bind(channel)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// Deletes up to `limit` revisions stored before a time. Returns how many were deleted.
pub async fn sweep(db: impl PgExecutor<'_>, before: DateTime<Utc>, limit: i64) -> Result<u64> {
    let deleted = with_timeout(
        sqlx::query(
            "delete from early_revisions where ctid = any (array(
                 select ctid from early_revisions where created_at < $1 limit $2))",
        )
        .bind(before)
        .bind(limit)
        .execute(db),
    )
    .await?;
    Ok(deleted.rows_affected())
}
