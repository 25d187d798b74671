//! Messages. Live: written only by the persister.

mod columns;
mod inbound;
mod outbox;
mod progress;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

pub(crate) use columns::{copy, copy_rows, insert, insert_rows, note_zones};
pub(crate) use inbound::set_media;
pub use inbound::{MediaRow, Passed, last_inbound_at, media_wanted, received, sent_until};
pub use outbox::{Addressed, Unreadable, Waiting, by_provider_id, outbox, outboxes};
pub use progress::{DeliveryStatus, DeliveryStatusRow, MessageError};
pub(crate) use progress::{FailedMessage, Moved, MovedBy, failed, merge, not_failed, progress};

use super::source::Source;
use super::words;
use super::zones::{self, Time, Wanted, Zoned};
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::{ChannelId, CompanyId, ContactId, Database, MessageId, Result, SessionId, TicketId, TokenId, UserId};

words! {
    /// Which way a message goes.
    Direction { Inbound = "inbound", Outbound = "outbound", Internal = "internal" }
}

words! {
    /// What a message is.
    MessageType {
        Text = "text",
        Media = "media",
        Template = "template",
        Interactive = "interactive",
        Note = "note",
    }
}

words! {
    /// How far a message has come. It only moves forward; `failed` is final; inbound messages are `received`.
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
    /// Whether a message of the company that is here has come to `status` as well.
    pub fn is_as_far_as(self, status: Self) -> bool {
        !matches!(self, Self::Failed | Self::Received) && self.rank() >= status.rank()
    }

    /// How far it is: of two that a message had, the later one is higher.
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
#[allow(missing_docs)]
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
    /// What the channel's provider calls it; none before it was handed over, and on a webchat.
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
}

/// Everything up to a message of one ticket has reached its reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DeliveryReceipt {
    pub company_id: CompanyId,
    pub ticket_id: TicketId,
    /// Whose conversation it is, for those who watch it; entries of earlier releases do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<(ChannelId, ContactId)>,
    pub up_to: MessageId,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
}

/// Moves outbound messages of a ticket to `delivered`, those that are not there yet, which are answered.
pub(crate) async fn deliver(
    db: &mut PgConnection,
    marks: &[&DeliveryReceipt],
) -> std::result::Result<Vec<Moved>, sqlx::Error> {
    mark(
        db,
        marks,
        zones::with_statuses(
            "update messages m set status = 'delivered', sent_at = coalesce(m.sent_at, greatest(x.at, m.created_at)),
             delivered_at = greatest(x.at, m.created_at, m.sent_at)
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as x (company, ticket, up_to, at)
         join messages k on k.company_id = x.company and k.ticket_id = x.ticket and k.id <= x.up_to
           and k.direction = 'outbound' and k.status in ('queued', 'sent')
         where m.company_id = k.company_id and m.id = k.id",
            "k.status",
        ),
    )
    .await
}

/// Moves outbound messages of a ticket to `read`, those that are not there yet, which are answered.
pub(crate) async fn see(
    db: &mut PgConnection,
    marks: &[&DeliveryReceipt],
) -> std::result::Result<Vec<Moved>, sqlx::Error> {
    mark(
        db,
        marks,
        zones::with_statuses(
            "update messages m set status = 'read', sent_at = coalesce(m.sent_at, greatest(x.at, m.created_at)),
             delivered_at = coalesce(m.delivered_at, greatest(x.at, m.created_at, m.sent_at)),
             read_at = greatest(x.at, m.created_at, m.sent_at, m.delivered_at)
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as x (company, ticket, up_to, at)
         join messages k on k.company_id = x.company and k.ticket_id = x.ticket and k.id <= x.up_to
           and k.direction = 'outbound' and k.status in ('queued', 'sent', 'delivered')
         where m.company_id = k.company_id and m.id = k.id",
            "k.status",
        ),
    )
    .await
}

/// Notes when the contact's messages were read by the company, which moves none of them on.
pub(crate) async fn read(
    db: &mut PgConnection,
    marks: &[&DeliveryReceipt],
) -> std::result::Result<Vec<Moved>, sqlx::Error> {
    mark(
        db,
        marks,
        "update messages m set read_at = greatest(x.at, m.created_at)
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[]) as x (company, ticket, up_to, at)
         where m.company_id = x.company and m.ticket_id = x.ticket and m.id <= x.up_to
           and m.direction = 'inbound' and m.read_at is null"
            .to_owned(),
    )
    .await
}

async fn mark(
    db: &mut PgConnection,
    marks: &[&DeliveryReceipt],
    statement: String,
) -> std::result::Result<Vec<Moved>, sqlx::Error> {
    let moved = sqlx::query_as(AssertSqlSafe(statement))
        .bind(marks.iter().map(|mark| mark.company_id).collect::<Vec<_>>())
        .bind(marks.iter().map(|mark| mark.ticket_id).collect::<Vec<_>>())
        .bind(marks.iter().map(|mark| mark.up_to).collect::<Vec<_>>())
        .bind(marks.iter().map(|mark| mark.at).collect::<Vec<_>>())
        .fetch_all(db)
        .await?;
    Ok(Moved::all(moved, MovedBy::Mark))
}

/// What is behind a journal's id in the name of the watermark of its messages, while they are replayed ahead of what else it holds.
pub(crate) const AHEAD: &str = "/messages";

/// Whether there are messages that are written and not counted: those that a replay has written ahead.
///
/// # Errors
/// When the database cannot answer.
pub(crate) async fn are_ahead(db: impl PgExecutor<'_>) -> Result<bool> {
    let underway = sqlx::query_scalar("select exists (select from journal_watermark where journal like '%' || $1)");
    Ok(underway.bind(AHEAD).fetch_one(db).await?)
}

/// One message, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: impl Database<'_>, company: CompanyId, id: MessageId) -> Result<Option<MessageRow>> {
    let found = sqlx::query("select * from messages where company_id = $1 and id = $2").bind(company).bind(id);
    one(with_timeout(found.fetch_optional(db)).await?)
}

/// Those of several messages that there are.
///
/// # Errors
/// When the database cannot answer.
pub async fn find_all(db: impl Database<'_>, company: CompanyId, ids: &[MessageId]) -> Result<Vec<MessageRow>> {
    let found = sqlx::query("select * from messages where company_id = $1 and id = any($2)").bind(company).bind(ids);
    Ok(document::read_all(&with_timeout(found.fetch_all(db)).await?))
}

/// The ids a visitor has given to messages of a session.
///
/// # Errors
/// When the database cannot answer.
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

/// The message a visitor sent under this id, or none.
///
/// # Errors
/// When the database cannot answer.
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
    one(with_timeout(found.fetch_optional(db)).await?)
}

/// A row that was found, or none.
fn one(found: Option<PgRow>) -> Result<Option<MessageRow>> {
    Ok(found.as_ref().map(document::read).transpose()?)
}

/// How far the messages of a conversation have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, FromRow)]
pub struct States {
    /// The newest outbound message that has arrived, and when.
    pub delivered: Option<MessageId>,
    /// When it did.
    pub delivered_at: Option<DateTime<Utc>>,
    /// The newest outbound message the contact has read.
    pub seen: Option<MessageId>,
    /// When they did.
    pub seen_at: Option<DateTime<Utc>>,
    /// The newest inbound message the company has read.
    pub read: Option<MessageId>,
    /// When it did.
    pub read_at: Option<DateTime<Utc>>,
}

/// How far the messages said since then have come.
///
/// # Errors
/// When the database cannot answer.
pub async fn states(
    db: impl Database<'_>,
    company: CompanyId,
    (channel, contact): (ChannelId, ContactId),
    since: DateTime<Utc>,
) -> Result<States> {
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

/// When the first of the company's messages to a contact on a channel was written, of those within a span of time that
/// have not arrived; none: all have.
///
/// # Errors
/// When the database cannot answer.
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
///
/// # Errors
/// When the database cannot answer.
pub async fn has_received(
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

/// Messages of one job at most: the files of one send.
pub const MESSAGES_OF_JOB_MAX: i64 = 10;

/// The other messages of the job that a message is the first of. They were made together, so they are the next ones of
/// their ticket.
///
/// # Errors
/// When the database cannot answer.
pub async fn others_of_job(db: impl Database<'_>, first: &MessageRow) -> Result<Vec<MessageRow>> {
    let next = with_timeout(
        sqlx::query("select * from messages where company_id = $1 and ticket_id = $2 and id > $3 order by id limit $4")
            .bind(first.company_id)
            .bind(first.ticket_id)
            .bind(first.id)
            .bind(MESSAGES_OF_JOB_MAX - 1)
            .fetch_all(db),
    )
    .await?;
    let next: Vec<MessageRow> = document::read_all(&next);
    Ok(next.into_iter().filter(|row| row.job_id == Some(first.id)).collect())
}

/// What the API's lists may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct MessageFilter {
    pub ticket_id: Option<TicketId>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    pub direction: Option<Direction>,
    pub kind: Option<MessageType>,
    pub status: Option<MessageStatus>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// Only what came after this message.
    pub after: Option<MessageId>,
    /// Only what a visitor may see: no notes.
    pub visible_to_visitor: bool,
}

/// A page of a company's messages.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &MessageFilter,
    page: PageRequest,
) -> Result<Page<MessageRow>> {
    let wanted = Wanted {
        spans: &[(Time::Created, filter.created)],
        words: &[
            filter.direction.map(|word| word.as_str()),
            filter.kind.map(|word| word.as_str()),
            filter.status.map(|word| word.as_str()),
        ],
        channel: filter.channel_id,
        ..Wanted::default()
    };
    // What waits in the outbox has an index, as have a ticket's and a contact's messages; and every zone once had some.
    let is_found =
        filter.ticket_id.is_some() || filter.contact_id.is_some() || filter.status == Some(MessageStatus::Queued);
    let list = if wanted.is_any() && !is_found {
        zones::list("", Zoned::Message, company, &wanted, page)
    } else {
        Select::new("select t.* from messages t", "t.company_id", company)
    };
    list.equals("t.ticket_id", filter.ticket_id)
        .equals("t.contact_id", filter.contact_id)
        .equals("t.channel_id", filter.channel_id)
        .equals("t.direction", filter.direction)
        .equals("t.type", filter.kind)
        .equals("t.status", filter.status)
        .after("t.id", filter.after.map(|id| id.0))
        .only(filter.visible_to_visitor.then_some("t.direction <> 'internal'"))
        .between("t.created_at", filter.created)
        .heavy_if(filter.direction.is_some() || filter.kind.is_some() || filter.status.is_some())
        .heavy_if(filter.channel_id.is_some() && filter.ticket_id.is_none() && filter.contact_id.is_none())
        .page(db, "t.id", page)
        .await
}
