//! Statements on stored messages for the processing of received messages, files and statuses.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::{ChangeCause, ChangedMessage, MessageRow, MessageStatus};
use crate::cluster::SlotFilter;
use crate::document;
use crate::error::with_timeout;
use crate::tables::zones;
use crate::{ChannelId, CompanyId, ContactId, Database, MessageId, Result, TicketId};

/// The result of fetching an inbound message's file: the file (`media`), or why it cannot be fetched (`error`). With
/// `is_text_error`, the row instead records why the text that follows an outbound message's file could not be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediaRow {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    pub message_id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Whether `error` is that of the text: the message keeps its file and status. A release that does not know this
    /// field ignores the row, since it only changes messages whose file is still to be fetched.
    #[serde(rename = "is_of_text", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_text_error: bool,
    /// When Hotline recorded it. Earlier releases left it out.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "chrono::serde::ts_microseconds_option")]
    pub noted_at: Option<DateTime<Utc>>,
}

/// Stores files or errors in their messages, and returns the changed messages. A message that already has its file, or
/// an error, is skipped.
pub(crate) async fn set_media(
    db: &mut PgConnection,
    rows: &[&MediaRow],
) -> std::result::Result<Vec<ChangedMessage>, sqlx::Error> {
    let changed = sqlx::query_as(AssertSqlSafe(zones::wrap_message_update(
        "update messages m set media = case when x.is_of_text then m.media else x.media end,
             error = coalesce(x.error, m.error)
         from unnest($1::bigint[], $2::bigint[], $3::jsonb[], $4::jsonb[], $5::boolean[])
             as x (company, id, media, error, is_of_text)
         where m.company_id = x.company and m.id = x.id
           and case when x.is_of_text then m.direction = 'outbound' and m.error is null else m.media ? 'wanted' end",
    )))
    .bind(rows.iter().map(|row| row.company_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.message_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.media.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.error.clone()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.is_text_error).collect::<Vec<_>>())
    .fetch_all(db)
    .await?;
    Ok(ChangedMessage::from_rows(changed, ChangeCause::File))
}

/// The first `limit` messages after `after` whose files are still to be fetched. Only for background work.
pub async fn awaiting_media(
    db: impl Database<'_>,
    slots: &SlotFilter,
    after: MessageId,
    limit: i64,
) -> Result<Vec<MessageRow>> {
    let in_slots = SlotFilter::condition("company_id", 3);
    let select =
        format!("select * from messages where media ? 'wanted' and id > $1 and {in_slots} order by id limit $2");
    let select = sqlx::query(AssertSqlSafe(select)).bind(after).bind(limit).bind(slots.numbers());
    Ok(document::read_all(&with_timeout(select.fetch_all(db)).await?))
}

/// The provider's ids of the newest `limit` messages a channel received, with the time of each.
pub async fn received_ids(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    limit: i64,
) -> Result<Vec<(String, DateTime<Utc>)>> {
    with_timeout(
        sqlx::query_as(
            "select provider_message_id, created_at from messages
             where company_id = $1 and channel_id = $2 and direction = 'inbound' and provider_message_id is not null
             order by id desc limit $3",
        )
        .bind(company)
        .bind(channel)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// When these contacts last wrote on a channel; `None`: never.
pub async fn last_inbound_at(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contacts: &[ContactId],
) -> Result<Vec<(ContactId, Option<DateTime<Utc>>)>> {
    with_timeout(
        sqlx::query_as(
            // A provider's calls may arrive out of order, so take the latest of the last few.
            "select x.id, last.at from unnest($2::bigint[]) as x (id) cross join lateral (
                 select max(at) as at from (
                     select coalesce(sent_at, created_at) as at from messages
                     where company_id = $1 and contact_id = x.id and channel_id = $3 and direction = 'inbound'
                     order by id desc limit 10) few) last",
        )
        .bind(company)
        .bind(contacts)
        .bind(channel)
        .fetch_all(db),
    )
    .await
}

/// A message for which a provider may report a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct MessageRef {
    pub ticket_id: TicketId,
    pub id: MessageId,
}

impl From<&MessageRow> for MessageRef {
    fn from(row: &MessageRow) -> Self {
        Self { ticket_id: row.ticket_id, id: row.id }
    }
}

/// Whether Hotline may have sent a contact a message with this text at `at`: there is one that is still queued, or was
/// created at most ten minutes before. Without a text, any message with a file or options counts. Provider ids are not
/// compared, because the recorded one may be that of an earlier attempt. `text` has single spaces, and at most 256
/// characters.
pub async fn may_have_sent(
    db: impl Database<'_>,
    company: CompanyId,
    (channel, contact): (ChannelId, ContactId),
    text: Option<&str>,
    at: DateTime<Utc>,
) -> Result<bool> {
    with_timeout(
        sqlx::query_scalar(
            "select exists (select from messages
             where company_id = $1 and contact_id = $2 and channel_id = $3 and direction = 'outbound'
               -- The provider's clock may be behind.
               and created_at < $5::timestamptz + interval '1 minute'
               and (status = 'queued' or created_at > $5::timestamptz - interval '10 minutes')
               -- Not written in another app.
               and content -> 'via' is null
               and case when $4::text is null then media is not null or type = 'interactive' else
                   left(btrim(regexp_replace(coalesce(body, interactive #>> '{body,text}', ''), '\\s+', ' ', 'g')), 256)
                       = $4 end)",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .bind(text)
        .bind(at)
        .fetch_one(db),
    )
    .await
}

/// The messages to a contact that were sent up to `until`, by the provider's clock, and have not reached `status` yet,
/// newest first. `sent_at` may be up to 30 seconds later: it is when the provider's answer arrived.
pub async fn sent_until(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contact: ContactId,
    until: DateTime<Utc>,
    status: MessageStatus,
    limit: i64,
) -> Result<Vec<MessageRef>> {
    let lower_statuses: &[&str] = if status == MessageStatus::Read { &["sent", "delivered"] } else { &["sent"] };
    with_timeout(
        sqlx::query_as(
            "select ticket_id, id from messages
             where company_id = $1 and contact_id = $2 and channel_id = $3 and direction = 'outbound'
               and status = any($4) and created_at <= $5 and sent_at <= $5::timestamptz + interval '30 seconds'
             order by id desc limit $6",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .bind(lower_statuses)
        .bind(until)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}
