//! The log of events: what happened to a company's records, told once and in order. Both: the persister writes what
//! happened to live rows, a plain change what it has done.
//!
//! A row holds the events of one transaction of one company. An event names its message, whose row keeps how it was at any
//! moment; every other record it holds as it was. How it is shown is for who shows it.

mod kind;
mod reading;
mod record;
mod telling;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgExecutor;

pub use kind::EventKind;
pub use reading::{After, Reading, find, read};
pub use record::{
    MessageThen, PersonThen, Record, SaidLast, ScheduleThen, SessionThen, ShownThen, Subject, TicketThen,
};
pub(crate) use telling::append;
pub use telling::tell;

use crate::error::with_timeout;
use crate::partitions::Partitions;
use crate::{CompanyId, Database, LoggedEventId, Result, TicketId};

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
