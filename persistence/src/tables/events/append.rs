//! Writes events: many per row, numbered as the last step of a transaction.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{BYTES_PER_ROW_MAX, EVENTS_PER_ROW_MAX, NewEvent};
use crate::error::with_timeout;
use crate::{CompanyId, LoggedEventId, Result};

/// The events of one row.
struct Row {
    event_count: usize,
    type_mask: i64,
    json: String,
    /// The latest time of its events.
    last_at: Option<DateTime<Utc>>,
}

impl Row {
    const EMPTY: Self = Self { event_count: 0, type_mask: 0, json: String::new(), last_at: None };
}

/// A row with the ids of its first and last event.
struct NumberedRow {
    company: CompanyId,
    first_id: i64,
    last_id: i64,
    /// The latest time of the events before the row: a reader raises the times of the row's events to it.
    not_before: Option<DateTime<Utc>>,
    row: Row,
}

/// Groups a company's events into rows, in order.
fn group_into_rows(events: &[NewEvent]) -> serde_json::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut row = Row::EMPTY;
    for event in events {
        let json = serde_json::to_string(event)?;
        if row.event_count >= EVENTS_PER_ROW_MAX
            || row.event_count > 0 && row.json.len() + json.len() > BYTES_PER_ROW_MAX
        {
            rows.push(std::mem::replace(&mut row, Row::EMPTY));
        }
        row.json.push(if row.event_count == 0 { '[' } else { ',' });
        row.json.push_str(&json);
        row.event_count += 1;
        row.type_mask |= event.kind.bit();
        // Times before 1970 are invalid, and PostgreSQL cannot store all of them.
        row.last_at = row.last_at.max(Some(event.at).filter(|at| at.timestamp() >= 0));
    }
    if row.event_count > 0 {
        rows.push(row);
    }
    rows.iter_mut().for_each(|row| row.json.push(']'));
    Ok(rows)
}

/// The error if an event cannot be serialized.
fn encode_error(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}

/// Appends the events of several companies, and returns the last id of each, by company id. It must be the last step of
/// its transaction: until the commit, no other transaction can append events of these companies.
pub(crate) async fn append(
    db: &mut PgConnection,
    events: &[(CompanyId, Vec<NewEvent>)],
) -> std::result::Result<Vec<(CompanyId, LoggedEventId)>, sqlx::Error> {
    let mut rows = Vec::with_capacity(events.len());
    for (company, events) in events {
        rows.push((*company, group_into_rows(events).map_err(encode_error)?));
    }
    let (companies, counts): (Vec<_>, Vec<_>) =
        events.iter().map(|(company, events)| (*company, i64::try_from(events.len()).unwrap_or(i64::MAX))).unzip();
    let latest_time = |rows: &Vec<Row>| rows.iter().filter_map(|row| row.last_at).max();
    let mut counters: Vec<(CompanyId, LoggedEventId, Option<DateTime<Utc>>)> = sqlx::query_as(
        "insert into event_counters as c (company_id, last_id, last_at)
         select * from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as x (company_id, events, at)
         order by company_id
         on conflict (company_id) do update set last_id = c.last_id + excluded.last_id, before_at = c.last_at,
             last_at = greatest(c.last_at, excluded.last_at)
         returning c.company_id, c.last_id, c.before_at",
    )
    .bind(&companies)
    .bind(&counts)
    .bind(rows.iter().map(|(_, rows)| latest_time(rows)).collect::<Vec<_>>())
    .fetch_all(&mut *db)
    .await?;
    counters.sort_unstable();
    let mut numbered_rows = Vec::new();
    for ((company, rows), count) in rows.into_iter().zip(&counts) {
        let Ok(index) = counters.binary_search_by_key(&company, |(company, ..)| *company) else { continue };
        let Some((_, last_id, not_before)) = counters.get(index) else { continue };
        numbered_rows.extend(number_rows(company, rows, last_id.0 - count, *not_before));
    }
    insert_rows(db, &numbered_rows).await?;
    Ok(counters.into_iter().map(|(company, last_id, _)| (company, last_id)).collect())
}

/// Numbers the rows of a company. Its earlier events end with the id `previous_id`, and the latest of them happened at
/// `not_before`.
fn number_rows(
    company: CompanyId,
    rows: Vec<Row>,
    mut previous_id: i64,
    mut not_before: Option<DateTime<Utc>>,
) -> impl Iterator<Item = NumberedRow> {
    rows.into_iter().map(move |row| {
        let first_id = previous_id + 1;
        previous_id += i64::try_from(row.event_count).unwrap_or(i64::MAX);
        let latest_before = not_before;
        not_before = not_before.max(row.last_at);
        NumberedRow { company, first_id, last_id: previous_id, not_before: latest_before, row }
    })
}

async fn insert_rows(db: &mut PgConnection, rows: &[NumberedRow]) -> sqlx::Result<()> {
    sqlx::query(
        "insert into events (company_id, first_id, last_id, types, told, not_before, created_at)
         select *, now()
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::timestamptz[])",
    )
    .bind(rows.iter().map(|row| row.company).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.first_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.last_id).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.row.type_mask).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.row.json.as_str()).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.not_before).collect::<Vec<_>>())
    .execute(db)
    .await?;
    Ok(())
}

/// Writes the events of a plain change as drafts, in its transaction. They are numbered when it commits.
pub async fn draft(db: &mut PgConnection, company: CompanyId, events: &[NewEvent]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let rows = group_into_rows(events).map_err(encode_error)?;
    with_timeout(
        sqlx::query(
            "insert into event_drafts (company_id, events, types, told, last_at)
             select $1, * from unnest($2::integer[], $3::bigint[], $4::text[], $5::timestamptz[])",
        )
        .bind(company)
        .bind(rows.iter().map(|row| i32::try_from(row.event_count).unwrap_or(i32::MAX)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.type_mask).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.json.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.last_at).collect::<Vec<_>>())
        .execute(db),
    )
    .await?;
    Ok(())
}
