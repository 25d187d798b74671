//! Tickets. Live: written only by the persister.

mod handled_by;
mod list;
mod sorted;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor};

use super::source::Source;
use super::text_enum;
use super::zones::{self, ASSIGNED, UNASSIGNED, ZonedRow, ZonedTable};
use crate::copy;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::table::{self, COUNTED_MAX};
use crate::{
    ChannelId, CompanyId, ContactId, Database, MessageId, QueueId, Readers, Result, TicketId, TokenId, UserId,
    WrapupTypeId,
};

pub use handled_by::HandledBy;
pub use list::{TicketFilter, is_steady, list, list_steady};
pub use sorted::{SortedPage, TicketSort, list_sorted};

text_enum! {
    /// The status of a ticket.
    TicketStatus { Open = "open", Closed = "closed" }
}

/// One ticket as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
pub struct TicketRow {
    pub company_id: CompanyId,
    pub id: TicketId,
    pub channel_id: ChannelId,
    pub contact_id: ContactId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    pub status: TicketStatus,
    pub creation_source: Source,
    pub unread_count: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_type_id: Option<WrapupTypeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_note: Option<Box<str>>,
    pub reopen_count: i32,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub opened_at: DateTime<Utc>,
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub first_response_at: Option<DateTime<Utc>>,
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<DateTime<Utc>>,
    /// Since when the contact has been waiting for the company.
    #[serde(default, with = "chrono::serde::ts_microseconds_option", skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<DateTime<Utc>>,
    /// The first response since the ticket was last opened, if the contact created the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "HandledBy::is_none")]
    pub handled_by: HandledBy,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub updated_at: DateTime<Utc>,
}

/// Writes the complete rows, replacing existing ones.
pub(crate) async fn upsert(db: &mut PgConnection, rows: &[&TicketRow]) -> std::result::Result<(), sqlx::Error> {
    if rows.is_empty() {
        // Run the statement even without rows, for a caller that checks whether it can run.
        return upsert_rows(db, rows).await;
    }
    for rows in closed_first(rows) {
        upsert_rows(db, &rows).await?;
    }
    update_zones(db, rows).await
}

/// Updates existing tickets, at two thirds of the cost of [`upsert`]; if one does not exist, all are written by
/// [`upsert`].
pub(crate) async fn update(db: &mut PgConnection, rows: &[&TicketRow]) -> std::result::Result<(), sqlx::Error> {
    for rows in closed_first(rows) {
        if update_rows(db, &rows).await? < rows.len() as u64 {
            upsert_rows(db, &rows).await?;
        }
    }
    update_zones(db, rows).await
}

/// Inserts tickets that do not exist yet, at less than half the cost of [`upsert`].
pub(crate) async fn copy(db: &mut PgConnection, rows: &[&TicketRow]) -> std::result::Result<(), sqlx::Error> {
    const COPY: &str = "copy tickets (company_id, id, channel_id, contact_id, queue_id, user_id, status, creation_source, \
        unread_count, last_message_id, wrapup_type_id, wrapup_note, reopen_count, opened_at, first_response_at, \
        closed_at, waiting_since, answer_id, created_at, updated_at, handled_by) from stdin (format binary)";
    for rows in closed_first(rows) {
        copy::copy(db, COPY, 21, &rows, |row, to| {
            to.field(&row.company_id).field(&row.id).field(&row.channel_id).field(&row.contact_id);
            to.field(&row.queue_id).field(&row.user_id).field(row.status.as_str());
            to.field(row.creation_source.as_str()).field(&row.unread_count).field(&row.last_message_id);
            to.field(&row.wrapup_type_id)
                .field(&row.wrapup_note.as_deref())
                .field(&row.reopen_count)
                .field(&row.opened_at);
            to.field(&row.first_response_at).field(&row.closed_at).field(&row.waiting_since).field(&row.answer_id);
            to.field(&row.created_at).field(&row.updated_at).field(&row.handled_by.as_column());
        })
        .await?;
    }
    update_zones(db, rows).await
}

async fn update_zones(db: &mut PgConnection, rows: &[&TicketRow]) -> std::result::Result<(), sqlx::Error> {
    let zoned_row = |row: &&TicketRow| ZonedRow {
        company: row.company_id,
        id: row.id.0,
        created: row.created_at,
        opened: Some(row.opened_at),
        closed: row.closed_at,
        updated: Some(row.updated_at),
        words: [Some(row.status.as_str()), Some(if row.user_id.is_some() { ASSIGNED } else { UNASSIGNED }), None],
        channel: Some(row.channel_id),
        queue: row.queue_id,
    };
    zones::update(db, ZonedTable::Ticket, rows.iter().map(zoned_row)).await
}

/// Groups the rows, closed tickets first: a ticket being opened may take the slot (one open ticket per contact and
/// channel) that another one of the same batch has just freed.
fn closed_first<'a>(rows: &[&'a TicketRow]) -> impl Iterator<Item = Vec<&'a TicketRow>> {
    let (closed, open): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.status == TicketStatus::Closed);
    [closed, open].into_iter().filter(|rows| !rows.is_empty())
}

macro_rules! column {
    ($rows:ident, $field:ident) => {
        $rows.iter().map(|row| row.$field).collect::<Vec<_>>()
    };
}

async fn upsert_rows(db: &mut PgConnection, rows: &[&TicketRow]) -> std::result::Result<(), sqlx::Error> {
    sqlx::query(include_str!("upsert.sql"))
        .bind(column!(rows, company_id))
        .bind(column!(rows, id))
        .bind(column!(rows, channel_id))
        .bind(column!(rows, contact_id))
        .bind(column!(rows, queue_id))
        .bind(column!(rows, user_id))
        .bind(rows.iter().map(|row| row.status.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.creation_source.as_str()).collect::<Vec<_>>())
        .bind(column!(rows, unread_count))
        .bind(column!(rows, last_message_id))
        .bind(column!(rows, wrapup_type_id))
        .bind(rows.iter().map(|row| row.wrapup_note.as_deref()).collect::<Vec<_>>())
        .bind(column!(rows, reopen_count))
        .bind(column!(rows, opened_at))
        .bind(column!(rows, first_response_at))
        .bind(column!(rows, closed_at))
        .bind(column!(rows, waiting_since))
        .bind(column!(rows, answer_id))
        .bind(column!(rows, created_at))
        .bind(column!(rows, updated_at))
        .bind(rows.iter().map(|row| row.handled_by.as_column()).collect::<Vec<_>>())
        .execute(db)
        .await?;
    Ok(())
}

/// Updates the rows; returns how many of them existed.
async fn update_rows(db: &mut PgConnection, rows: &[&TicketRow]) -> std::result::Result<u64, sqlx::Error> {
    let result = sqlx::query(include_str!("update.sql"))
        .bind(column!(rows, company_id))
        .bind(column!(rows, id))
        .bind(column!(rows, queue_id))
        .bind(column!(rows, user_id))
        .bind(rows.iter().map(|row| row.status.as_str()).collect::<Vec<_>>())
        .bind(column!(rows, unread_count))
        .bind(column!(rows, last_message_id))
        .bind(column!(rows, wrapup_type_id))
        .bind(rows.iter().map(|row| row.wrapup_note.as_deref()).collect::<Vec<_>>())
        .bind(column!(rows, reopen_count))
        .bind(column!(rows, opened_at))
        .bind(column!(rows, first_response_at))
        .bind(column!(rows, closed_at))
        .bind(column!(rows, waiting_since))
        .bind(column!(rows, answer_id))
        .bind(column!(rows, updated_at))
        .bind(rows.iter().map(|row| row.handled_by.as_column()).collect::<Vec<_>>())
        .execute(db)
        .await?;
    Ok(result.rows_affected())
}

/// A ticket with the data its actor needs besides the row.
#[derive(Clone, Debug, FromRow)]
pub struct LoadedTicket {
    #[sqlx(flatten)]
    pub ticket: TicketRow,
    pub contact_name: Box<str>,
    pub contact_number: Option<Box<str>>,
    pub contact_verified: bool,
    pub last_message_body: Option<Box<str>>,
    pub last_message_direction: Option<super::messages::Direction>,
    pub last_message_created_at: Option<DateTime<Utc>>,
}

impl LoadedTicket {
    /// Whether the ticket itself shows that its contact has written: they opened it, or its last message is theirs.
    pub fn shows_contact_wrote(&self) -> bool {
        self.ticket.creation_source == Source::Contact
            || self.last_message_direction == Some(super::messages::Direction::Inbound)
    }
}

/// The follow-up action of a queued message.
#[derive(Clone, Debug, FromRow)]
pub struct FollowUpRow {
    pub id: crate::MessageId,
    pub ticket_id: TicketId,
    #[sqlx(try_from = "Document")]
    pub after_send: serde_json::Value,
    pub user_id: Option<UserId>,
    pub user_name: Option<String>,
    pub integration_id: Option<TokenId>,
    pub source: Source,
    pub created_at: DateTime<Utc>,
}

/// The follow-up actions of the queued messages of these tickets, in message order.
pub async fn follow_ups(db: impl Database<'_>, company: CompanyId, ids: &[TicketId]) -> Result<Vec<FollowUpRow>> {
    let rows = with_timeout(
        sqlx::query(
            "select m.* from unnest($2::bigint[]) as x (id)
             cross join lateral (select id, ticket_id, after_send, user_id, user_name, integration_id, source, created_at
                 from messages
                 where company_id = $1 and ticket_id = x.id and status = 'queued' and after_send is not null offset 0) m
             order by m.id",
        )
        .bind(company)
        .bind(ids)
        .fetch_all(db),
    )
    .await?;
    Ok(document::read_all(&rows))
}

/// The columns of [`LoadedTicket`] and the joins for them, for tickets found as `t`. The related rows are looked up
/// per ticket (`offset 0` prevents other joins), so the plan suits any number of tickets, and planning takes half the
/// time.
const SELECT: &str = "select t.*, c.name as contact_name, c.number as contact_number,
        c.verified as contact_verified,
        m.body as last_message_body, m.direction as last_message_direction, m.created_at as last_message_created_at";
const JOINS: &str = "cross join lateral (select name, number, verified from contacts
        where company_id = t.company_id and id = t.contact_id offset 0) c
    left join lateral (select body, direction, created_at from messages
        where company_id = t.company_id and id = t.last_message_id offset 0) m on true";

/// One ticket, or `None`.
pub async fn find(db: impl PgExecutor<'_>, company: CompanyId, id: TicketId) -> Result<Option<LoadedTicket>> {
    let sql = AssertSqlSafe(format!("{SELECT} from tickets t {JOINS} where t.company_id = $1 and t.id = $2"));
    let found = with_timeout(sqlx::query(sql).bind(company).bind(id).fetch_optional(db)).await?;
    Ok(found.as_ref().map(document::read).transpose()?)
}

/// The existing ones of these tickets.
pub async fn find_all(db: impl Database<'_>, company: CompanyId, ids: &[TicketId]) -> Result<Vec<LoadedTicket>> {
    let sql = AssertSqlSafe(find_all_statement());
    let found = with_timeout(sqlx::query(sql).bind(company).bind(ids).fetch_all(db)).await?;
    Ok(document::read_all(&found))
}

/// As [`find_all`], through a plan that is made once: planning a page of a list takes longer than reading it.
pub async fn find_all_steady(readers: &Readers, company: CompanyId, ids: Vec<TicketId>) -> Result<Vec<LoadedTicket>> {
    let found = readers
        .read(company, move |db| {
            let query = sqlx::query(AssertSqlSafe(find_all_statement())).bind(company).bind(ids.clone());
            query.fetch_all(db).boxed()
        })
        .await?;
    Ok(document::read_yielding(found).await)
}

fn find_all_statement() -> String {
    format!(
        "{SELECT} from unnest($2::bigint[]) as x (id)
         cross join lateral (select * from tickets where company_id = $1 and id = x.id offset 0) t {JOINS}"
    )
}

/// The open tickets of a channel, with their contacts.
pub async fn open_of_channel(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
) -> Result<Vec<(ContactId, TicketId)>> {
    with_timeout(
        sqlx::query_as(
            "select contact_id, id from tickets where company_id = $1 and channel_id = $2 and status = 'open'",
        )
        .bind(company)
        .bind(channel)
        .fetch_all(db),
    )
    .await
}

/// An open ticket of a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct OpenTicketOf {
    pub channel_id: ChannelId,
    pub contact_id: ContactId,
    pub id: TicketId,
    pub user_id: Option<UserId>,
}

/// The open tickets of these contacts.
pub async fn open_of_contacts(
    db: impl Database<'_>,
    company: CompanyId,
    contacts: &[ContactId],
) -> Result<Vec<OpenTicketOf>> {
    let find = sqlx::query_as(
        "select channel_id, contact_id, id, user_id from tickets
         where company_id = $1 and contact_id = any ($2) and status = 'open' order by id",
    );
    with_timeout(find.bind(company).bind(contacts).fetch_all(db)).await
}

/// The channels on which these contacts have or had tickets.
pub async fn channels_of_contacts(
    db: impl Database<'_>,
    company: CompanyId,
    contacts: &[ContactId],
) -> Result<Vec<ChannelId>> {
    let find = sqlx::query_scalar(
        "select distinct channel_id from tickets where company_id = $1 and contact_id = any ($2) order by channel_id",
    );
    with_timeout(find.bind(company).bind(contacts).fetch_all(db)).await
}

/// The latest ticket of this contact and channel, open or closed.
pub async fn latest(
    db: impl Database<'_>,
    company: CompanyId,
    channel: ChannelId,
    contact: ContactId,
) -> Result<Option<TicketId>> {
    with_timeout(
        sqlx::query_scalar(
            "select id from tickets where company_id = $1 and channel_id = $2 and contact_id = $3
             order by opened_at desc, id desc limit 1",
        )
        .bind(company)
        .bind(channel)
        .bind(contact)
        .fetch_optional(db),
    )
    .await
}

/// The first `limit` open tickets of a user after `after`, by id, optionally of one queue.
pub async fn open_of_user(
    db: impl Database<'_>,
    company: CompanyId,
    user: UserId,
    queue: Option<QueueId>,
    after: TicketId,
    limit: i64,
) -> Result<Vec<TicketId>> {
    with_timeout(
        sqlx::query_scalar(
            "select id from tickets where company_id = $1 and user_id = $2 and status = 'open' and id > $3
               and ($5::bigint is null or queue_id = $5)
             order by id limit $4",
        )
        .bind(company)
        .bind(user)
        .bind(after)
        .bind(limit)
        .bind(queue)
        .fetch_all(db),
    )
    .await
}

/// Every open ticket with an assigned user.
pub async fn list_assigned(db: impl Database<'_>, company: CompanyId) -> Result<Vec<(TicketId, UserId)>> {
    with_timeout(
        sqlx::query_as(
            "select id, user_id from tickets where company_id = $1 and user_id is not null and status = 'open'",
        )
        .bind(company)
        .fetch_all(db),
    )
    .await
}

/// Number of a queue's open tickets, at most [`COUNTED_MAX`].
pub async fn count_open_in_queue(db: impl Database<'_>, company: CompanyId, queue: QueueId) -> Result<i64> {
    with_timeout(
        sqlx::query_scalar(AssertSqlSafe(format!(
            "select count(*) from (select from tickets where company_id = $1 and queue_id = $2 and status = 'open'
             limit {COUNTED_MAX}) counted"
        )))
        .bind(company)
        .bind(queue)
        .fetch_one(db),
    )
    .await
}

/// Number of tickets whose wrap-up type this is, at most [`COUNTED_MAX`].
pub async fn count_with_wrapup_type(
    db: impl Database<'_>,
    company: CompanyId,
    wrapup_type: WrapupTypeId,
) -> Result<i64> {
    table::count_referring(db, company, ("tickets", "wrapup_type_id"), wrapup_type).await
}
