//! Messages. Live: written only by the persister.

mod attempts;
mod columns;
mod content;
mod inbound;
mod list;
mod outbox;
mod progress;
mod reaction_send;
mod receipts;
mod revisions;
mod row;

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgExecutor, Row};

pub(crate) use attempts::set_attempts;
pub use attempts::{AttemptRow, Attempts};
pub(crate) use columns::{copy, copy_rows, insert, insert_rows, update_zones};
pub use content::{
    ChosenOption, ContentKind, MessageApp, MessageAuthor, MessageContent, MessageOrigin, MessageReferral, OrderItem,
    PlacedOrder, ProductReference, SharedLocation, StoryReference, SubmittedForm, Via,
};
pub(crate) use inbound::set_media;
pub use inbound::{MediaRow, MessageRef, awaiting_media, last_inbound_at, may_have_sent, received_ids, sent_until};
pub use list::{MessageFilter, list};
pub use outbox::{
    AddressedMessage, OutboxEntry, UnsendableMessage, by_provider_id, outbox, outboxes, withdrawal_reason,
    withdrawn_of_channel,
};
pub(crate) use progress::{
    ChangeCause, ChangedMessage, FailedMessage, advance_statuses, find_failed, find_unfailed, merge_reports,
};
pub use progress::{DeliveryStatus, DeliveryStatusRow, MessageError};
pub use reaction_send::{ReactionSend, ReactionTarget};
pub use receipts::DeliveryReceipt;
pub(crate) use receipts::{apply_delivered, apply_read_by_company, apply_read_by_contact};
pub use revisions::{
    EDIT_ID, EDITS_MAX, EMOJI_CHARACTERS_MAX, EarlierText, REACTIONS_MAX, Reaction, Reactor, Revisable, Revision,
    RevisionRow, Revisions,
};
pub(crate) use revisions::{Revisables, read_revisables, revise};
pub use row::{Direction, MessageRow, MessageStatus, MessageType};

use crate::document;
use crate::error::with_timeout;
use crate::{ChannelId, CompanyId, ContactId, Database, MessageId, Result, SessionId};

/// After a journal's id, this names the watermark of its messages: a replay writes messages ahead of the other entries.
pub(crate) const MESSAGES_WATERMARK_SUFFIX: &str = "/messages";

/// Whether a replay has written messages that the report figures do not count yet.
pub(crate) async fn is_replay_ahead(db: impl PgExecutor<'_>) -> Result<bool> {
    let exists = sqlx::query_scalar("select exists (select from journal_watermark where journal like '%' || $1)");
    with_timeout(exists.bind(MESSAGES_WATERMARK_SUFFIX).fetch_one(db)).await
}

/// One message, or `None`.
pub async fn find(db: impl Database<'_>, company: CompanyId, id: MessageId) -> Result<Option<MessageRow>> {
    let found = sqlx::query("select * from messages where company_id = $1 and id = $2").bind(company).bind(id);
    read_row(with_timeout(found.fetch_optional(db)).await?)
}

/// Loads messages by their ids, in the given order and with repetitions; ids that do not exist are skipped. Stops at
/// `bytes_max` bytes, but not before the first message; the flag is whether all were loaded. The database adds up the
/// sizes, so that no further messages are loaded.
pub async fn find_within(
    db: impl Database<'_>,
    company: CompanyId,
    ids: &[MessageId],
    bytes_max: usize,
) -> Result<(Vec<MessageRow>, bool)> {
    let found = sqlx::query(
        "select * from (
             select weighed.*, bool_and(bytes_before < $3) over () as are_all from (
                 select m.*, i.place, coalesce(sum(
                     coalesce(octet_length(m.body), 0) + coalesce(octet_length(m.media::text), 0)
                     + coalesce(octet_length(m.template::text), 0) + coalesce(octet_length(m.interactive::text), 0)
                     + coalesce(octet_length(m.content::text), 0)
                     + coalesce(octet_length(m.revisions::text), 0)
                 ) over (order by i.place rows between unbounded preceding and 1 preceding), 0) as bytes_before
                 from unnest($2::bigint[]) with ordinality i (id, place)
                 join messages m on m.company_id = $1 and m.id = i.id
             ) weighed
         ) found where bytes_before < $3 order by place",
    );
    let found = found.bind(company).bind(ids).bind(i64::try_from(bytes_max).unwrap_or(i64::MAX));
    let rows = with_timeout(found.fetch_all(db)).await?;
    let is_complete = rows.first().is_none_or(|row| row.try_get("are_all").unwrap_or(true));
    Ok((document::read_all(&rows), is_complete))
}

/// Which of these messages exist and were not deleted by their authors.
pub async fn undeleted(db: impl PgExecutor<'_>, company: CompanyId, ids: &[MessageId]) -> Result<HashSet<MessageId>> {
    let undeleted = sqlx::query_scalar(
        "select id from messages where company_id = $1 and id = any($2) and revisions ->> 'deletedAt' is null",
    );
    let undeleted: Vec<MessageId> = with_timeout(undeleted.bind(company).bind(ids).fetch_all(db)).await?;
    Ok(undeleted.into_iter().collect())
}

/// The client ids of up to `limit` messages of a session, as given by the visitor.
pub async fn client_ids(
    db: impl Database<'_>,
    company: CompanyId,
    session: &SessionId,
    limit: i64,
) -> Result<Vec<String>> {
    with_timeout(
        sqlx::query_scalar(
            "select client_id from messages where company_id = $1 and session_id = $2 and client_id is not null
             limit $3",
        )
        .bind(company)
        .bind(session)
        .bind(limit)
        .fetch_all(db),
    )
    .await
}

/// The message with this client id, or `None`.
pub async fn by_client_id(
    db: impl Database<'_>,
    company: CompanyId,
    session: &SessionId,
    client_id: &str,
) -> Result<Option<MessageRow>> {
    let found = sqlx::query("select * from messages where company_id = $1 and session_id = $2 and client_id = $3")
        .bind(company)
        .bind(session)
        .bind(client_id);
    read_row(with_timeout(found.fetch_optional(db)).await?)
}

fn read_row(found: Option<PgRow>) -> Result<Option<MessageRow>> {
    Ok(found.as_ref().map(document::read).transpose()?)
}

/// The progress of a conversation's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, FromRow)]
pub struct ConversationProgress {
    /// The newest delivered outbound message.
    pub delivered: Option<MessageId>,
    /// The latest delivery of an outbound message.
    pub delivered_at: Option<DateTime<Utc>>,
    /// The newest outbound message the contact has read.
    #[sqlx(rename = "seen")]
    pub read_by_contact: Option<MessageId>,
    /// When the contact last read an outbound message.
    #[sqlx(rename = "seen_at")]
    pub read_by_contact_at: Option<DateTime<Utc>>,
    /// The newest inbound message the company has read.
    #[sqlx(rename = "read")]
    pub read_by_company: Option<MessageId>,
    /// When the company last read an inbound message.
    #[sqlx(rename = "read_at")]
    pub read_by_company_at: Option<DateTime<Utc>>,
}

/// The progress of a conversation's messages that were created since a time.
pub async fn conversation_progress(
    db: impl Database<'_>,
    company: CompanyId,
    (channel, contact): (ChannelId, ContactId),
    since: DateTime<Utc>,
) -> Result<ConversationProgress> {
    with_timeout(
        sqlx::query_as(
            "select max(id) filter (where direction = 'outbound' and status in ('delivered', 'read')) as delivered,
                 max(delivered_at) filter (where direction = 'outbound') as delivered_at,
                 max(id) filter (where direction = 'outbound' and status = 'read') as seen,
                 max(read_at) filter (where direction = 'outbound') as seen_at,
                 max(id) filter (where direction = 'inbound' and read_at is not null) as read,
                 max(read_at) filter (where direction = 'inbound') as read_at
             from messages where company_id = $1 and contact_id = $2 and channel_id = $3 and created_at >= $4",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .bind(since)
        .fetch_one(db),
    )
    .await
}

/// The creation time of the first outbound message of a conversation, within a time span, that still awaits
/// delivery; `None` if none does.
pub async fn first_undelivered_at(
    db: impl Database<'_>,
    company: CompanyId,
    (channel, contact): (ChannelId, ContactId),
    (from, to): (DateTime<Utc>, DateTime<Utc>),
) -> Result<Option<DateTime<Utc>>> {
    with_timeout(
        sqlx::query_scalar(
            "select min(created_at) from messages where company_id = $1 and contact_id = $2 and channel_id = $3
                 and direction = 'outbound' and status in ('queued', 'sent') and created_at >= $4 and created_at < $5",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .bind(from)
        .bind(to)
        .fetch_one(db),
    )
    .await
}

/// Whether this contact has ever written on this channel.
pub async fn contact_has_written(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contact: ContactId,
) -> Result<bool> {
    with_timeout(
        sqlx::query_scalar(
            "select exists (select from messages
             where company_id = $1 and contact_id = $2 and channel_id = $3 and direction = 'inbound')",
        )
        .bind(company)
        .bind(contact)
        .bind(channel)
        .fetch_one(db),
    )
    .await
}

/// How many messages after a job's first one are searched for its others, which are at most nine files. All were
/// created at once, but after a merge, messages that the other ticket got at that moment may lie between them.
const NEIGHBORS_OF_JOB_MAX: i64 = 100;

/// The other messages of a job, given its first one.
pub async fn others_of_job(db: impl Database<'_>, first: &MessageRow) -> Result<Vec<MessageRow>> {
    let others = with_timeout(
        sqlx::query(
            "select * from (
                 select * from messages where company_id = $1 and ticket_id = $2 and id > $3 order by id limit $4
             ) m where job_id = $3 order by id",
        )
        .bind(first.company_id)
        .bind(first.ticket_id)
        .bind(first.id)
        .bind(NEIGHBORS_OF_JOB_MAX)
        .fetch_all(db),
    )
    .await?;
    Ok(document::read_all(&others))
}
