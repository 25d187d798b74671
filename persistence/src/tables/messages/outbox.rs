//! What waits for a channel's provider.

use sqlx::FromRow;

use super::MessageRow;
use crate::error::within;
use crate::{ChannelId, CompanyId, Database, MessageId, Result};

/// A message with its recipient's address: the contact's number on a phone channel, elsewhere what the provider
/// calls them.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct Addressed {
    #[sqlx(flatten)]
    pub message: MessageRow,
    pub number: Option<String>,
}

/// Every channel that has messages to send: read at the start, when the tables hold all that was accepted.
///
/// # Errors
/// When the database cannot answer.
pub async fn outboxes(db: impl Database<'_>) -> Result<Vec<(CompanyId, ChannelId)>> {
    Ok(sqlx::query_as(
        "select c.company_id, c.id from channels c where exists (select from messages m
         where m.company_id = c.company_id and m.channel_id = c.id and m.status = 'queued')
         order by c.company_id, c.id",
    )
    .fetch_all(db)
    .await?)
}

/// The first messages of a channel that wait to be sent, but for those that are `held` already: of one ticket in the
/// order in which they were accepted.
///
/// # Errors
/// When the database cannot answer.
pub async fn outbox(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    held: &[MessageId],
    limit: i64,
) -> Result<Vec<Addressed>> {
    within(
        sqlx::query_as(
            "select m.*, c.number from messages m
             join contacts c on c.company_id = m.company_id and c.id = m.contact_id
             where m.company_id = $1 and m.channel_id = $2 and m.status = 'queued'
               -- Hashed, which an array that is no constant is not.
               and m.id not in (select unnest($3::bigint[]))
             order by m.id limit $4",
        )
        .bind(company)
        .bind(channel)
        .bind(held)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// The message a channel's provider knows by this id, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn by_provider_id(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    provider_message_id: &str,
) -> Result<Option<MessageRow>> {
    within(
        sqlx::query_as("select * from messages where company_id = $1 and channel_id = $2 and provider_message_id = $3")
            .bind(company)
            .bind(channel)
            .bind(provider_message_id)
            .fetch_optional(db),
    )
    .await
}
