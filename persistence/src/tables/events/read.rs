//! Reads events in order, from a given position.

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use sqlx::FromRow;

use super::{EventKind, NewEvent, ROWS_PER_QUERY, ROWS_SCANNED_MAX, StoredEvent};
use crate::error::with_timeout;
use crate::{CompanyId, Database, LoggedEventId, Result};

/// Maximum time by which a row's `created_at` is earlier than that of the row before it: `created_at` is the time at
/// which the row's transaction began. If the clock was ahead for a while, rows have a later `created_at` than rows
/// after them, so a read always includes the rows of the last day.
const DATE_LAG_MAX: chrono::TimeDelta = chrono::TimeDelta::days(1);

/// The type mask of all types.
const ALL_TYPES: i64 = -1;

/// The position after which a company's events are read.
#[derive(Clone, Copy, Debug)]
pub struct After {
    /// The last event read; 0: none.
    pub id: LoggedEventId,
    /// A lower bound for `created_at` in the rows of all later events, if known: older partitions are not read.
    pub since: DateTime<Utc>,
}

impl After {
    /// The position after an event if the `created_at` of its row is unknown.
    pub fn event(id: LoggedEventId) -> Self {
        Self { id, since: DateTime::UNIX_EPOCH }
    }
}

/// Limits of one read. The first event is read even if it exceeds them.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    pub events: usize,
    /// Total size of the rows that are read.
    pub bytes: usize,
}

/// The result of a read.
#[derive(Debug)]
pub struct StoredEventPage {
    /// The events, oldest first.
    pub events: Vec<StoredEvent>,
    /// The position up to which all rows were examined, and after which the next read starts.
    pub next: After,
    /// Whether the read ended before the newest event: there may be more events after `next`.
    pub has_more: bool,
}

#[derive(FromRow)]
struct Row {
    first_id: i64,
    last_id: i64,
    created_at: DateTime<Utc>,
    /// The times of the row's events are raised to at least this one.
    not_before: Option<DateTime<Utc>>,
    #[sqlx(rename = "told")]
    events: Option<String>,
    /// Whether the preceding rows already reach the limit of bytes; then this one is not read.
    #[sqlx(default)]
    is_beyond: bool,
}

/// The next events of a company, of these types, or of all if `kinds` is empty. PostgreSQL adds up the sizes of the
/// rows, so that rows beyond the limit are not loaded.
pub async fn read(
    db: impl Database<'_>,
    company: CompanyId,
    after: After,
    kinds: &[EventKind],
    ReadLimits { events: limit, bytes: bytes_max }: ReadLimits,
) -> Result<StoredEventPage> {
    let type_mask = if kinds.is_empty() { ALL_TYPES } else { kinds.iter().fold(0, |mask, kind| mask | kind.bit()) };
    let mut page = StoredEventPage { events: Vec::new(), next: after, has_more: false };
    let (mut rows_scanned, mut bytes) = (0, 0);
    loop {
        let select = sqlx::query_as::<_, Row>(
            "select first_id, last_id, created_at, not_before, bytes_before >= $6 as is_beyond,
                 case when types & $4 <> 0 and bytes_before < $6 then told end as told
             from (
                 select first_id, last_id, created_at, not_before, types, told,
                     coalesce(sum(octet_length(told)) filter (where types & $4 <> 0)
                         over (order by last_id rows between unbounded preceding and 1 preceding), 0) as bytes_before
                 from events where company_id = $1 and last_id > $2
                     and created_at >= least($3, now() - interval '1 day') order by last_id limit $5
             ) next order by last_id",
        );
        let bytes_left = i64::try_from(bytes_max.saturating_sub(bytes)).unwrap_or(i64::MAX);
        let select = select.bind(company).bind(page.next.id).bind(page.next.since);
        let select = select.bind(type_mask).bind(ROWS_PER_QUERY).bind(bytes_left);
        let rows = with_timeout(select.fetch_all(db)).await?;
        let is_last_batch = rows.len() < usize::try_from(ROWS_PER_QUERY).unwrap_or(usize::MAX);
        rows_scanned += rows.len();
        bytes += rows.iter().filter_map(|row| row.events.as_ref()).map(String::len).sum::<usize>();
        page.add_rows(company, rows, type_mask, limit);
        if page.has_more || is_last_batch {
            return Ok(page);
        }
        if rows_scanned >= ROWS_SCANNED_MAX {
            page.has_more = true;
            return Ok(page);
        }
    }
}

impl StoredEventPage {
    /// Adds the matching events of rows; sets `has_more` if one of the limits is reached before the last row's end.
    fn add_rows(&mut self, company: CompanyId, rows: Vec<Row>, type_mask: i64, limit: usize) {
        for row in rows {
            if self.events.len() >= limit || row.is_beyond {
                self.has_more = true;
            } else {
                self.add_row(company, &row, type_mask, limit);
            }
            if self.has_more {
                return;
            }
        }
    }

    /// Adds the matching events of a row; sets `has_more` if the limit cuts the row.
    fn add_row(&mut self, company: CompanyId, row: &Row, type_mask: i64, limit: usize) {
        let since = (row.created_at - DATE_LAG_MAX).max(self.next.since);
        let after = self.next.id;
        self.next.since = since;
        let mut not_before = row.not_before;
        for (id, event) in (row.first_id..).zip(row.events.as_deref().map(parse_events).unwrap_or_default()) {
            let Some(event) = event else { continue };
            let created_at = not_before.map_or(event.at, |not_before| event.at.max(not_before));
            not_before = Some(created_at);
            if id <= after.0 || event.kind.bit() & type_mask == 0 {
                continue;
            }
            if self.events.len() >= limit {
                self.has_more = true;
                return;
            }
            let NewEvent { kind, at: _, record, previous, by } = event;
            let id = LoggedEventId::new(id);
            let by = by.unwrap_or_default();
            self.events.push(StoredEvent { company_id: company, id, since, kind, created_at, record, previous, by });
            self.next.id = id;
        }
        self.next.id = LoggedEventId::new(row.last_id);
    }
}

/// Parses the events of a row. Unreadable ones, such as those of a newer release, are `None`.
fn parse_events(json: &str) -> Vec<Option<NewEvent>> {
    let events: Vec<&RawValue> = match serde_json::from_str(json) {
        Ok(events) => events,
        Err(error) => {
            tracing::error!(%error, "row of the event log is unreadable");
            return Vec::new();
        }
    };
    let parse = |event: &RawValue| match serde_json::from_str(event.get()) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(%error, "event is unreadable and was skipped");
            None
        }
    };
    events.into_iter().map(parse).collect()
}

/// The event of a company with this id, if it is still stored; `at` is its time.
pub async fn find(
    db: impl Database<'_>,
    company: CompanyId,
    id: LoggedEventId,
    at: DateTime<Utc>,
) -> Result<Option<StoredEvent>> {
    let position = After::event(LoggedEventId::new(id.0 - 1));
    // If the clock was ahead, the event's time was raised to that of an earlier event, which may be much later than
    // `created_at` of its own row. Then only the second look-up finds it.
    for since in [at - DATE_LAG_MAX, DateTime::UNIX_EPOCH] {
        let select = sqlx::query_as(
            "select first_id, last_id, created_at, not_before, told from events
             where company_id = $1 and last_id >= $2 and created_at >= $3 order by last_id limit 1",
        );
        let select = select.bind(company).bind(id).bind(since);
        let row: Option<Row> = with_timeout(select.fetch_optional(db)).await?;
        let mut page = StoredEventPage { events: Vec::new(), next: position, has_more: false };
        row.iter().for_each(|row| page.add_row(company, row, ALL_TYPES, 1));
        if let Some(event) = page.events.into_iter().find(|event| event.id == id) {
            return Ok(Some(event));
        }
    }
    Ok(None)
}
