//! Scheduled messages. Live: written only by the persister.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::{FromRow, PgConnection, PgExecutor};

use super::by::By;
use super::messages::{MessageError, MessageRow};
use super::source::Source;
use super::text_enum;
use crate::cluster::SlotFilter;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::table::Span;
use crate::{ChannelId, CompanyId, ContactId, Database, MessageId, QueueId, Result, ScheduleId, TokenId, UserId};

text_enum! {
    /// The status of a scheduled message.
    ScheduleStatus {
        /// It is not due yet.
        Pending = "pending",
        /// It was sent.
        Sent = "sent",
        /// It was canceled.
        Canceled = "canceled",
        /// It could not be sent when it was due.
        Failed = "failed",
    }
}

/// One scheduled message as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FromRow)]
pub struct ScheduleRow {
    pub company_id: CompanyId,
    pub id: ScheduleId,
    pub contact_id: ContactId,
    pub channel_id: ChannelId,
    /// The original text: variables are filled in when it is sent.
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub send_at: DateTime<Utc>,
    pub status: ScheduleStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(try_from = "Document")]
    pub error: Option<Value>,
    /// The user on whose behalf it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The token of the integration that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integration_id: Option<TokenId>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(with = "chrono::serde::ts_microseconds")]
    pub updated_at: DateTime<Utc>,
    /// Who caused this state, for its event; not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(skip)]
    pub by: Option<By>,
    /// The deleted contact to whom sending failed, for the event; not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[sqlx(skip)]
    pub contact_was: Option<DeletedContact>,
}

/// The data of a deleted contact that its scheduled messages showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedContact {
    pub name: Box<str>,
    #[serde(default)]
    pub number: Option<Box<str>>,
}

impl ScheduleRow {
    /// Its due time; messages due at the same time are sent in the order of creation.
    pub fn due(&self) -> Due {
        (self.send_at, self.id)
    }

    /// The row after it was sent as this message, whose author is the author of the schedule.
    #[must_use]
    pub fn sent(&self, message: &MessageRow) -> Self {
        Self {
            status: ScheduleStatus::Sent,
            message_id: Some(message.id),
            // The contact may have been merged into another since this row was loaded.
            contact_id: message.contact_id,
            updated_at: message.created_at.max(self.updated_at),
            by: Some(self.scheduled_by(message.user_name.as_deref())),
            ..self.clone()
        }
    }

    /// The row after sending failed; `by` is the author of its event.
    #[must_use]
    pub fn failed(&self, error: &MessageError, now: DateTime<Utc>, by: By) -> Self {
        Self {
            status: ScheduleStatus::Failed,
            error: Some(json!(error)),
            updated_at: now.max(self.updated_at),
            by: Some(by),
            ..self.clone()
        }
    }

    /// Who scheduled it: the integration, or else the user, whose name is `user_name`. Without a name, the user was
    /// deleted, and the author is Hotline itself, as it is of the message that is sent.
    pub fn scheduled_by(&self, user_name: Option<&str>) -> By {
        let user = self.user_id.filter(|_| user_name.is_some());
        By::author((user, user_name), self.integration_id, Source::Schedule, (self.contact_id, None))
    }
}

/// The sort key by which scheduled messages are sent.
pub type Due = (DateTime<Utc>, ScheduleId);

/// Writes the complete rows, replacing existing ones.
pub(crate) async fn upsert(db: &mut PgConnection, rows: &[&ScheduleRow]) -> std::result::Result<(), sqlx::Error> {
    macro_rules! column {
        ($field:ident) => {
            rows.iter().map(|row| row.$field).collect::<Vec<_>>()
        };
    }
    sqlx::query(
        "insert into schedules (company_id, id, contact_id, channel_id, body, queue_id, send_at, status, message_id,
             error, user_id, integration_id, created_at, updated_at)
         select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
             $7::timestamptz[], $8::text[], $9::bigint[], $10::jsonb[], $11::bigint[], $12::bigint[],
             $13::timestamptz[], $14::timestamptz[])
         -- Its contact may have been merged since the row was read.
         on conflict (company_id, id) do update set contact_id = coalesce((select m.into_id from merges m
                 where m.company_id = excluded.company_id and m.noun = 'contact' and m.id = excluded.contact_id),
             excluded.contact_id),
             channel_id = excluded.channel_id, body = excluded.body, queue_id = excluded.queue_id,
             send_at = excluded.send_at, status = excluded.status, message_id = excluded.message_id,
             error = excluded.error, updated_at = excluded.updated_at",
    )
    .bind(column!(company_id))
    .bind(column!(id))
    .bind(column!(contact_id))
    .bind(column!(channel_id))
    .bind(rows.iter().map(|row| row.body.as_str()).collect::<Vec<_>>())
    .bind(column!(queue_id))
    .bind(column!(send_at))
    .bind(rows.iter().map(|row| row.status.as_str()).collect::<Vec<_>>())
    .bind(column!(message_id))
    .bind(rows.iter().map(|row| row.error.clone()).collect::<Vec<_>>())
    .bind(column!(user_id))
    .bind(column!(integration_id))
    .bind(column!(created_at))
    .bind(column!(updated_at))
    .execute(db)
    .await?;
    Ok(())
}

/// The scheduled messages with these ids, as far as they exist.
pub(crate) async fn find_all(
    db: &mut PgConnection,
    ids: impl Iterator<Item = (CompanyId, ScheduleId)>,
) -> std::result::Result<HashMap<(CompanyId, ScheduleId), ScheduleRow>, sqlx::Error> {
    let (companies, ids): (Vec<_>, Vec<_>) = ids.unzip();
    let select = sqlx::query(
        "select s.* from unnest($1::bigint[], $2::bigint[]) as x (company, schedule)
         join schedules s on s.company_id = x.company and s.id = x.schedule",
    );
    let rows: Vec<ScheduleRow> = document::read_all(&select.bind(companies).bind(ids).fetch_all(db).await?);
    Ok(rows.into_iter().map(|row| ((row.company_id, row.id), row)).collect())
}

/// One scheduled message, or `None`.
pub async fn find(db: impl Database<'_>, company: CompanyId, id: ScheduleId) -> Result<Option<ScheduleRow>> {
    let select = sqlx::query("select * from schedules where company_id = $1 and id = $2").bind(company).bind(id);
    Ok(with_timeout(select.fetch_optional(db)).await?.as_ref().map(document::read).transpose()?)
}

/// The companies in these slots that have pending scheduled messages.
pub async fn companies_with_pending(db: impl PgExecutor<'_>, slots: &SlotFilter) -> Result<Vec<CompanyId>> {
    with_timeout(
        sqlx::query_scalar(
            "select id from companies c where ($1::smallint[] is null or slot = any($1))
                 and exists (select from schedules where company_id = c.id and status = 'pending') order by id",
        )
        .bind(slots.numbers())
        .fetch_all(db),
    )
    .await
}

/// The first `limit` pending messages due after `after` and no later than `until`, in due order.
pub async fn due(
    db: impl Database<'_>,
    company: CompanyId,
    after: Due,
    until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<ScheduleRow>> {
    let rows = with_timeout(
        sqlx::query(
            "select * from schedules
             where company_id = $1 and status = 'pending' and (send_at, id) > ($2, $3) and send_at <= $4
             order by send_at, id limit $5",
        )
        .bind(company)
        .bind(after.0)
        .bind(after.1)
        .bind(until)
        .bind(limit)
        .fetch_all(db),
    )
    .await?;
    Ok(document::read_all(&rows))
}

/// Up to `limit` pending messages to a contact.
pub async fn pending_of(
    db: impl Database<'_>,
    company: CompanyId,
    contact: ContactId,
    limit: i64,
) -> Result<Vec<ScheduleId>> {
    let pending = sqlx::query_scalar(
        "select id from schedules where company_id = $1 and contact_id = $2 and status = 'pending'
         order by id limit $3",
    );
    with_timeout(pending.bind(company).bind(contact).bind(limit).fetch_all(db)).await
}

/// The due time of the first pending message that is due after a time, if any.
pub async fn next_due_at(
    db: impl Database<'_>,
    company: CompanyId,
    after: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>> {
    with_timeout(
        sqlx::query_scalar(
            "select send_at from schedules where company_id = $1 and status = 'pending' and send_at > $2
             order by send_at, id limit 1",
        )
        .bind(company)
        .bind(after)
        .fetch_optional(db),
    )
    .await
}

/// A scheduled message with its contact's name and number, which are `None` if the contact was deleted.
#[derive(Clone, Debug, FromRow)]
pub struct ListedSchedule {
    #[sqlx(flatten)]
    pub schedule: ScheduleRow,
    pub contact_name: Option<Box<str>>,
    pub contact_number: Option<Box<str>>,
}

/// The conditions of the API's list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScheduleFilter {
    pub status: Option<ScheduleStatus>,
    pub contact_id: Option<ContactId>,
    pub channel_id: Option<ChannelId>,
    pub send: Span,
    pub created: Span,
    pub updated: Span,
}

const COLUMNS: &str = "select s.*, c.name as contact_name, c.number as contact_number";
/// `offset 0` makes PostgreSQL look up the contact of each row, a plan that suits any number of rows.
const JOINS: &str = "left join lateral (select name, number from contacts
        where company_id = s.company_id and id = s.contact_id offset 0) c on true";

/// One scheduled message with its contact, or `None`.
pub async fn find_listed(db: impl Database<'_>, company: CompanyId, id: ScheduleId) -> Result<Option<ListedSchedule>> {
    let sql = format!("{COLUMNS} from schedules s {JOINS} where s.company_id = $1 and s.id = $2");
    let select = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(company).bind(id);
    Ok(with_timeout(select.fetch_optional(db)).await?.as_ref().map(document::read).transpose()?)
}

/// A page of a company's scheduled messages.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &ScheduleFilter,
    page: PageRequest,
) -> Result<Page<ListedSchedule>> {
    let list = Select::new("with page as (select s.* from schedules s", "s.company_id", company)
        .equals("s.status", filter.status)
        .equals("s.contact_id", filter.contact_id)
        .equals("s.channel_id", filter.channel_id)
        .mark_heavy_if(filter.channel_id.is_some())
        .between("s.send_at", filter.send)
        .between("s.created_at", filter.created)
        .between("s.updated_at", filter.updated);
    let db = list.weigh(db, page);
    with_timeout(list.page_of_subquery(db, "s.id", page, &format!(") {COLUMNS} from page s {JOINS}"))).await
}

/// Deletes the scheduled messages of a deleted contact that are not pending. Pending ones stay, and fail when they are
/// due.
pub(crate) async fn remove_for_contact(db: &mut PgConnection, company: CompanyId, contact: ContactId) -> Result<()> {
    let delete = sqlx::query("delete from schedules where company_id = $1 and contact_id = $2 and status <> 'pending'");
    with_timeout(delete.bind(company).bind(contact).execute(db)).await?;
    Ok(())
}
