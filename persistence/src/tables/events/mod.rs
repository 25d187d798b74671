//! The log of events: what happened to a company's records, told once and in order. Both: the persister writes what
//! happened to live rows, a plain change what it has done.
//!
//! A row holds the events of one transaction of one company. An event names its message, whose row keeps how it was at any
//! moment; every other record it holds as it was. How it is shown is for who shows it.

mod record;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sqlx::{FromRow, PgConnection, PgExecutor};

pub use record::{
    MessageThen, PersonThen, Record, SaidLast, ScheduleThen, SessionThen, ShownThen, Subject, TicketThen,
};

use super::words;
use crate::error::with_timeout;
use crate::partitions::Partitions;
use crate::{CompanyId, Database, LoggedEventId, Result, TicketId};

words! {
    /// What happened. A type is added at the end and never removed: rows name types by their place here.
    EventKind {
        TicketOpened = "ticket.opened",
        TicketAssigned = "ticket.assigned",
        TicketTransferred = "ticket.transferred",
        TicketClosed = "ticket.closed",
        TicketReopened = "ticket.reopened",
        TicketWrapupChanged = "ticket.wrapup_changed",
        TicketRead = "ticket.read",
        MessageReceived = "message.received",
        MessageCreated = "message.created",
        MessageSent = "message.sent",
        MessageDelivered = "message.delivered",
        MessageRead = "message.read",
        MessageFailed = "message.failed",
        MessageUpdated = "message.updated",
        NoteAdded = "note.added",
        SessionStarted = "session.started",
        SessionEnded = "session.ended",
        ContactCreated = "contact.created",
        ContactUpdated = "contact.updated",
        ContactDeleted = "contact.deleted",
        ContactTagged = "contact.tagged",
        ContactUntagged = "contact.untagged",
        CardCreated = "card.created",
        CardUpdated = "card.updated",
        CardMoved = "card.moved",
        CardWon = "card.won",
        CardLost = "card.lost",
        CardReopened = "card.reopened",
        CardDeleted = "card.deleted",
        ScheduleCreated = "schedule.created",
        ScheduleUpdated = "schedule.updated",
        ScheduleSent = "schedule.sent",
        ScheduleFailed = "schedule.failed",
        ScheduleCanceled = "schedule.canceled",
        CampaignStarted = "campaign.started",
        CampaignPaused = "campaign.paused",
        CampaignResumed = "campaign.resumed",
        CampaignCompleted = "campaign.completed",
        CampaignCanceled = "campaign.canceled",
        ChannelConnected = "channel.connected",
        ChannelDisconnected = "channel.disconnected",
        ChannelError = "channel.error",
    }
}

impl EventKind {
    /// The words of some, each once.
    pub fn words(kinds: impl IntoIterator<Item = Self>) -> Vec<&'static str> {
        let mut words: Vec<&'static str> = Vec::new();
        for kind in kinds {
            if !words.contains(&kind.as_str()) {
                words.push(kind.as_str());
            }
        }
        words
    }

    /// Its bit among those of a row.
    const fn bit(self) -> i64 {
        1 << (self as i64)
    }
}

/// A day each: dropping one costs nothing.
const DAYS: Partitions = Partitions { table: "events", span: chrono::TimeDelta::days(1) };

/// Events of one row at most: what a reader wants few of is not read with thousands.
const EVENTS_OF_ROW_MAX: usize = 200;

/// Bytes of the events of one row, unless one alone is larger: what a reader has to take for the next event.
const BYTES_OF_ROW_MAX: usize = 64 << 10;

/// Rows that are read with one statement: with rows of [`BYTES_OF_ROW_MAX`] some megabytes.
const ROWS_AT_ONCE: i64 = 64;

/// Rows that one reading passes by, where few have an event of the types that are asked for. Who asks goes on from there.
const ROWS_PASSED_MAX: usize = 4096;

/// An event that is to be told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Told {
    #[serde(rename = "k")]
    pub kind: EventKind,
    #[serde(rename = "a", with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
    #[serde(rename = "r")]
    pub record: Record,
    /// The old values of the fields that changed, as they were shown.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Value>,
}

/// One event of the log.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct StoredEvent {
    pub company_id: CompanyId,
    pub id: LoggedEventId,
    pub kind: EventKind,
    /// When it happened.
    pub created_at: DateTime<Utc>,
    pub record: Record,
    /// The old values of the fields that changed, as they were shown.
    pub previous: Option<Value>,
}

impl StoredEvent {
    /// The record it is of. Events of one subject are told in the order in which they happened.
    pub fn subject(&self) -> Subject {
        self.record.subject()
    }

    /// The ticket it is of, as events of tickets, messages and notes are.
    pub fn ticket_id(&self) -> Option<TicketId> {
        match self.subject() {
            Subject::Ticket(id) => Some(id),
            _ => None,
        }
    }
}

/// Events as one row holds them.
struct Row {
    events: usize,
    types: i64,
    told: String,
}

/// The rows of a company's events, in their order.
fn rows_of(told: &[Told]) -> serde_json::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut row = Row { events: 0, types: 0, told: String::new() };
    for event in told {
        let json = serde_json::to_string(event)?;
        if row.events >= EVENTS_OF_ROW_MAX || row.events > 0 && row.told.len() + json.len() > BYTES_OF_ROW_MAX {
            rows.push(std::mem::replace(&mut row, Row { events: 0, types: 0, told: String::new() }));
        }
        row.told.push(if row.events == 0 { '[' } else { ',' });
        row.told.push_str(&json);
        row.events += 1;
        row.types |= event.kind.bit();
    }
    if row.events > 0 {
        rows.push(row);
    }
    rows.iter_mut().for_each(|row| row.told.push(']'));
    Ok(rows)
}

/// What cannot be written as JSON, which nothing of these types is known to be.
fn unwritable(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}

/// Writes the events of several companies, in the order of their ids, and answers the last id of each. It is the last
/// thing of its transaction: from here to the commit nobody else tells events of these companies.
pub(crate) async fn append(
    db: &mut PgConnection,
    told: &[(CompanyId, Vec<Told>)],
) -> std::result::Result<Vec<(CompanyId, LoggedEventId)>, sqlx::Error> {
    let mut rows = Vec::with_capacity(told.len());
    for (company, told) in told {
        rows.push((*company, rows_of(told).map_err(unwritable)?));
    }
    let (companies, events): (Vec<_>, Vec<_>) =
        told.iter().map(|(company, told)| (*company, i64::try_from(told.len()).unwrap_or(i64::MAX))).unzip();
    let mut last: Vec<(CompanyId, LoggedEventId)> = sqlx::query_as(
        "insert into event_counters as c (company_id, last_id)
         select * from unnest($1::bigint[], $2::bigint[]) as x (company_id, events) order by company_id
         on conflict (company_id) do update set last_id = c.last_id + excluded.last_id
         returning c.company_id, c.last_id",
    )
    .bind(&companies)
    .bind(&events)
    .fetch_all(&mut *db)
    .await?;
    last.sort_unstable();
    let (mut owners, mut firsts, mut lasts, mut types, mut texts) = (vec![], vec![], vec![], vec![], vec![]);
    for ((company, rows), events) in rows.into_iter().zip(&events) {
        let Ok(found) = last.binary_search_by_key(&company, |(company, _)| *company) else { continue };
        let Some((_, last)) = last.get(found) else { continue };
        let mut before = last.0 - events;
        for row in rows {
            let last_of_row = before + i64::try_from(row.events).unwrap_or(i64::MAX);
            owners.push(company);
            firsts.push(before + 1);
            lasts.push(last_of_row);
            types.push(row.types);
            texts.push(row.told);
            before = last_of_row;
        }
    }
    sqlx::query(
        "insert into events (company_id, first_id, last_id, types, told, created_at)
         select *, now() from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[])",
    )
    .bind(owners)
    .bind(firsts)
    .bind(lasts)
    .bind(types)
    .bind(texts)
    .execute(db)
    .await?;
    Ok(last)
}

/// Tells events of a plain change in its transaction. They are numbered when that commits.
///
/// # Errors
/// When the database cannot answer.
pub async fn tell(db: &mut PgConnection, company: CompanyId, told: &[Told]) -> Result<()> {
    if told.is_empty() {
        return Ok(());
    }
    let rows = rows_of(told).map_err(unwritable)?;
    with_timeout(
        sqlx::query(
            "insert into event_drafts (company_id, events, types, told)
             select $1, * from unnest($2::integer[], $3::bigint[], $4::text[])",
        )
        .bind(company)
        .bind(rows.iter().map(|row| i32::try_from(row.events).unwrap_or(i32::MAX)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.types).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.told.as_str()).collect::<Vec<_>>())
        .execute(db),
    )
    .await?;
    Ok(())
}

/// From where a company's events are read on.
#[derive(Clone, Copy, Debug)]
pub struct After {
    /// The last event that was read; 0: none.
    pub id: LoggedEventId,
    /// A time before which none of the later ones was written, where one is known: older days are not looked at.
    pub since: DateTime<Utc>,
}

impl After {
    /// After an event of any time.
    pub fn event(id: LoggedEventId) -> Self {
        Self { id, since: DateTime::UNIX_EPOCH }
    }
}

/// How much before a row the next one may seem to be written: transactions are dated when they begin.
const DATES_APART_MAX: chrono::TimeDelta = chrono::TimeDelta::days(1);

/// What was read.
#[derive(Debug)]
pub struct Reading {
    /// The events, oldest first.
    pub events: Vec<StoredEvent>,
    /// Up to where everything was looked at: where the next reading begins.
    pub next: After,
    /// Whether there is more.
    pub has_more: bool,
}

#[derive(FromRow)]
struct StoredRow {
    first_id: i64,
    last_id: i64,
    created_at: DateTime<Utc>,
    told: Option<String>,
}

/// The next events of a company, of any type if none is named, `limit` at most.
///
/// # Errors
/// When the database cannot answer.
pub async fn read(
    db: impl Database<'_>,
    company: CompanyId,
    after: After,
    kinds: &[EventKind],
    limit: usize,
) -> Result<Reading> {
    let types = if kinds.is_empty() { -1 } else { kinds.iter().fold(0, |types, kind| types | kind.bit()) };
    let mut reading = Reading { events: Vec::new(), next: after, has_more: false };
    let mut passed = 0;
    loop {
        let rows: Vec<StoredRow> = with_timeout(
            sqlx::query_as(
                "select first_id, last_id, created_at, case when types & $4 <> 0 then told end as told from events
                 where company_id = $1 and last_id > $2 and created_at >= $3 order by last_id limit $5",
            )
            .bind(company)
            .bind(reading.next.id)
            .bind(reading.next.since)
            .bind(types)
            .bind(ROWS_AT_ONCE)
            .fetch_all(db),
        )
        .await?;
        let are_all = rows.len() < usize::try_from(ROWS_AT_ONCE).unwrap_or(usize::MAX);
        passed += rows.len();
        for row in rows {
            if reading.events.len() >= limit {
                reading.has_more = true;
                return Ok(reading);
            }
            reading.take(company, &row, types, limit);
            if reading.has_more {
                return Ok(reading);
            }
        }
        if are_all {
            return Ok(reading);
        }
        if passed >= ROWS_PASSED_MAX {
            reading.has_more = true;
            return Ok(reading);
        }
    }
}

impl Reading {
    /// Takes the events of a row as far as they are wanted; says that there is more where the limit cuts it.
    fn take(&mut self, company: CompanyId, row: &StoredRow, types: i64, limit: usize) {
        let since = (row.created_at - DATES_APART_MAX).max(self.next.since);
        let after = self.next.id;
        self.next.since = since;
        for (id, event) in (row.first_id..).zip(row.told.as_deref().map(events_of).unwrap_or_default()) {
            let Some(event) = event.filter(|event| id > after.0 && event.kind.bit() & types != 0) else { continue };
            if self.events.len() >= limit {
                self.has_more = true;
                return;
            }
            let Told { kind, at, record, previous } = event;
            let id = LoggedEventId::new(id);
            self.events.push(StoredEvent { company_id: company, id, kind, created_at: at, record, previous });
            self.next.id = id;
        }
        self.next.id = LoggedEventId::new(row.last_id);
    }
}

/// The events of a row. One that this release cannot read is left out: a newer one has told it.
fn events_of(told: &str) -> Vec<Option<Told>> {
    let parts: Vec<&RawValue> = match serde_json::from_str(told) {
        Ok(parts) => parts,
        Err(error) => {
            tracing::error!(%error, "a row of the log of events cannot be read");
            return Vec::new();
        }
    };
    let read = |part: &RawValue| match serde_json::from_str(part.get()) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(%error, "an event cannot be read and is left out");
            None
        }
    };
    parts.into_iter().map(read).collect()
}

/// Makes room for the events of today and of the next days.
///
/// # Errors
/// When the database cannot answer, or somebody holds the table; the next time does what is left.
pub async fn make_room(db: impl Database<'_>, now: DateTime<Utc>) -> Result<()> {
    DAYS.make_ahead(db, now).await
}

/// Drops the days that were over `before`.
///
/// # Errors
/// As of [`make_room`].
pub async fn drop_expired(db: impl Database<'_>, before: DateTime<Utc>) -> Result<()> {
    DAYS.drop_expired(db, before).await
}

/// Deletes rows of one company's events of days that were over so many days ago, the oldest first; at most `limit`. Answers
/// how many it were.
///
/// # Errors
/// When the database cannot answer.
pub async fn remove_old(db: impl PgExecutor<'_>, company: CompanyId, days: i32, limit: i64) -> Result<u64> {
    // By whole days: once they are empty there is nothing in them to look through.
    let removed = sqlx::query(
        "with old as (
             select last_id, created_at from events
             where company_id = $1 and created_at < date_trunc('day', now() - make_interval(hours => 24 * $2), 'UTC') order by last_id limit $3)
         delete from events e using old
         where e.company_id = $1 and e.last_id = old.last_id and e.created_at = old.created_at
             and e.created_at < date_trunc('day', now() - make_interval(hours => 24 * $2), 'UTC')",
    );
    Ok(with_timeout(removed.bind(company).bind(days).bind(limit).execute(db)).await?.rows_affected())
}

/// One event of a company that happened at a time, if it is kept.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: LoggedEventId,
    at: DateTime<Utc>,
) -> Result<Option<StoredEvent>> {
    let row = sqlx::query_as(
        "select first_id, last_id, created_at, told from events
         where company_id = $1 and last_id >= $2 and created_at >= $3 order by last_id limit 1",
    );
    let row = row.bind(company).bind(id).bind(at - DATES_APART_MAX);
    let row: Option<StoredRow> = with_timeout(row.fetch_optional(db)).await?;
    let before = After::event(LoggedEventId::new(id.0 - 1));
    let mut reading = Reading { events: Vec::new(), next: before, has_more: false };
    row.iter().for_each(|row| reading.take(company, row, -1, 1));
    Ok(reading.events.into_iter().find(|event| event.id == id))
}

/// The first event of a company that is kept; none when there is none.
///
/// # Errors
/// When the database cannot answer.
pub async fn first_id(db: impl PgExecutor<'_>, company: CompanyId) -> Result<Option<LoggedEventId>> {
    let first = sqlx::query_scalar("select first_id from events where company_id = $1 order by last_id limit 1");
    with_timeout(first.bind(company).fetch_optional(db)).await
}

/// The last event of a company; 0 when there was none.
///
/// # Errors
/// When the database cannot answer.
pub async fn last_id(db: impl PgExecutor<'_>, company: CompanyId) -> Result<LoggedEventId> {
    let last = sqlx::query_scalar("select last_id from event_counters where company_id = $1").bind(company);
    Ok(with_timeout(last.fetch_optional(db)).await?.unwrap_or(LoggedEventId::new(0)))
}

/// The old values of the fields that changed between two ways a record was shown; none when nothing did. When it was
/// changed says nothing.
pub fn previous(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return None };
    let changed = before.iter().filter(|(field, value)| *field != "updatedAt" && after.get(*field) != Some(value));
    let changed: serde_json::Map<_, _> = changed.map(|(field, value)| (field.clone(), value.clone())).collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}
