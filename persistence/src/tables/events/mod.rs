//! The log of events: what happened to a company's records, each event once and in order. The persister writes the
//! events of live rows; a plain change writes its own.
//!
//! A row contains the events of one transaction of one company. An event refers to its message by id, since the
//! message's row shows its state at any time; of every other record the event stores the state at that time. Formatting
//! is up to the readers.

mod append;
mod kind;
mod read;
mod record;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgExecutor;

pub(crate) use append::append;
pub use append::draft;
pub use kind::EventKind;
pub use read::{After, ReadLimits, StoredEventPage, find, read};
pub use record::{
    ContactSnapshot, InboundSnapshot, LastMessageSnapshot, MessageSnapshot, ReactionSnapshot, Record, RecordSnapshot,
    ScheduleSnapshot, SessionSnapshot, Subject, TicketSnapshot,
};

pub use super::by::{By, ByKind, act_as, current_author};
use crate::error::with_timeout;
use crate::partitions::Partitions;
use crate::{CompanyId, Database, LoggedEventId, Result, TicketId};

/// The daily partitions of the log: dropping one is cheap.
const PARTITIONS: Partitions = Partitions { table: "events", span: chrono::TimeDelta::days(1) };

/// Maximum events per row, so that a reader that wants few does not have to read thousands.
const EVENTS_PER_ROW_MAX: usize = 200;

/// Maximum bytes of the events of a row, unless a single event is larger: what a reader must load for the next event.
const BYTES_PER_ROW_MAX: usize = 64 << 10;

/// Rows read with one statement, unless they exceed the requested bytes.
const ROWS_PER_QUERY: i64 = 64;

/// Maximum rows skipped by one read, if few contain events of the requested types. The caller continues from there.
const ROWS_SCANNED_MAX: usize = 4096;

/// An event to be written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewEvent {
    #[serde(rename = "k")]
    pub kind: EventKind,
    #[serde(rename = "a", with = "chrono::serde::ts_microseconds")]
    pub at: DateTime<Utc>,
    #[serde(rename = "r")]
    pub record: Record,
    /// The previous values of the changed fields, as the API returns them.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Value>,
    /// Who caused it; `None` in rows of earlier releases.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
}

impl NewEvent {
    /// An event of a plain change, by the current task's author.
    pub fn plain(kind: EventKind, at: DateTime<Utc>, record: Record, previous: Option<Value>) -> Self {
        let by = Some(resolve_author(current_author(), &record));
        Self { kind, at, record, previous, by }
    }
}

/// Replaces [`By::ITS_CONTACT`] with the id and name of the contact that has changed.
fn resolve_author(by: By, record: &Record) -> By {
    if by != By::ITS_CONTACT {
        return by;
    }
    let Record::Contact(contact) = record else { return By::SYSTEM };
    let view: Option<Value> = serde_json::from_str(contact.json.get()).ok();
    By::contact(contact.id, view.and_then(|view| view.get("name")?.as_str().map(str::to_owned)))
}

/// One event of the log.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    pub company_id: CompanyId,
    pub id: LoggedEventId,
    /// A lower bound for the times at which later events were written.
    pub since: DateTime<Utc>,
    pub kind: EventKind,
    /// When it happened; at least the time of the event before it.
    pub created_at: DateTime<Utc>,
    pub record: Record,
    /// The previous values of the changed fields, as the API returns them.
    pub previous: Option<Value>,
    /// Who caused it.
    pub by: By,
}

impl StoredEvent {
    /// The position after this event.
    pub fn position(&self) -> After {
        After { id: self.id, since: self.since }
    }

    /// The record it belongs to. Events of one subject are delivered in the order in which they happened.
    pub fn subject(&self) -> Subject {
        self.record.subject()
    }

    /// The ticket of a ticket, message or note event; `None` for other events.
    pub fn ticket_id(&self) -> Option<TicketId> {
        match self.subject() {
            Subject::Ticket(id) => Some(id),
            _ => None,
        }
    }
}

/// Creates partitions for today and the next days.
///
/// # Errors
/// When the database cannot answer, or the table is locked; the next run continues.
pub async fn create_partitions(db: impl Database<'_>, now: DateTime<Utc>) -> Result<()> {
    PARTITIONS.create_ahead(db, now).await
}

/// Drops the partitions of days that ended before `before`.
///
/// # Errors
/// As [`create_partitions`].
pub async fn drop_expired(db: impl Database<'_>, before: DateTime<Utc>) -> Result<()> {
    PARTITIONS.drop_expired(db, before).await
}

/// Deletes up to `limit` rows of a company's events from days that ended at least `days` days ago, oldest first.
/// Returns how many.
pub async fn remove_old(db: impl PgExecutor<'_>, company: CompanyId, days: i32, limit: i64) -> Result<u64> {
    // By whole days: an emptied partition needs no more scans.
    let delete = sqlx::query(
        "with old as (
             select last_id, created_at from events
             where company_id = $1 and created_at < date_trunc('day', now() - make_interval(hours => 24 * $2), 'UTC') order by last_id limit $3)
         delete from events e using old
         where e.company_id = $1 and e.last_id = old.last_id and e.created_at = old.created_at
             and e.created_at < date_trunc('day', now() - make_interval(hours => 24 * $2), 'UTC')",
    );
    Ok(with_timeout(delete.bind(company).bind(days).bind(limit).execute(db)).await?.rows_affected())
}

/// The id of the first event of a company that is still stored; `None` if there is none.
pub async fn first_id(db: impl PgExecutor<'_>, company: CompanyId) -> Result<Option<LoggedEventId>> {
    let first = sqlx::query_scalar("select first_id from events where company_id = $1 order by last_id limit 1");
    with_timeout(first.bind(company).fetch_optional(db)).await
}

/// The id of the last event of a company; 0 if there was none.
pub async fn last_id(db: impl PgExecutor<'_>, company: CompanyId) -> Result<LoggedEventId> {
    let last = sqlx::query_scalar("select last_id from event_counters where company_id = $1").bind(company);
    Ok(with_timeout(last.fetch_optional(db)).await?.unwrap_or(LoggedEventId::new(0)))
}

/// The previous values of the fields that differ between two views of a record; `None` if none differs. The time of the
/// change is ignored.
pub fn previous_values(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return None };
    let changed = before.iter().filter(|(field, value)| *field != "updatedAt" && after.get(*field) != Some(value));
    let changed: serde_json::Map<_, _> = changed.map(|(field, value)| (field.clone(), value.clone())).collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}
