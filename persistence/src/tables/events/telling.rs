//! Writes events: many per row, numbered as the last step of a transaction.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use super::{BYTES_OF_ROW_MAX, EVENTS_OF_ROW_MAX, Told};
use crate::error::with_timeout;
use crate::{CompanyId, LoggedEventId, Result};

/// The events of one row.
struct Row {
    events: usize,
    types: i64,
    told: String,
    /// The latest time of its events.
    last_at: Option<DateTime<Utc>>,
}

impl Row {
    const EMPTY: Self = Self { events: 0, types: 0, told: String::new(), last_at: None };
}

/// Groups a company's events into rows, in order.
fn rows_of(told: &[Told]) -> serde_json::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut row = Row::EMPTY;
    for event in told {
        let json = serde_json::to_string(event)?;
        if row.events >= EVENTS_OF_ROW_MAX || row.events > 0 && row.told.len() + json.len() > BYTES_OF_ROW_MAX {
            rows.push(std::mem::replace(&mut row, Row::EMPTY));
        }
        row.told.push(if row.events == 0 { '[' } else { ',' });
        row.told.push_str(&json);
        row.events += 1;
        row.types |= event.kind.bit();
        // A time before 1970 is no clock's, and PostgreSQL does not take all of them.
        row.last_at = row.last_at.max(Some(event.at).filter(|at| at.timestamp() >= 0));
    }
    if row.events > 0 {
        rows.push(row);
    }
    rows.iter_mut().for_each(|row| row.told.push(']'));
    Ok(rows)
}

/// The error when an event cannot be serialized; no event is known to cause that.
fn unwritable(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}

/// Appends the events of several companies, ordered by company id, and returns the last id of each. It must be the last
/// step of its transaction: until the commit, nobody else can append events of these companies.
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
    let latest = |rows: &Vec<Row>| rows.iter().filter_map(|row| row.last_at).max();
    let mut last: Vec<(CompanyId, LoggedEventId, Option<DateTime<Utc>>)> = sqlx::query_as(
        "insert into event_counters as c (company_id, last_id, last_at)
         select * from unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) as x (company_id, events, at)
         order by company_id
         on conflict (company_id) do update set last_id = c.last_id + excluded.last_id, before_at = c.last_at,
             last_at = greatest(c.last_at, excluded.last_at)
         returning c.company_id, c.last_id, c.before_at",
    )
    .bind(&companies)
    .bind(&events)
    .bind(rows.iter().map(|(_, rows)| latest(rows)).collect::<Vec<_>>())
    .fetch_all(&mut *db)
    .await?;
    last.sort_unstable();
    let (mut owners, mut firsts, mut lasts, mut types, mut texts) = (vec![], vec![], vec![], vec![], vec![]);
    let mut floors = vec![];
    for ((company, rows), events) in rows.into_iter().zip(&events) {
        let Ok(found) = last.binary_search_by_key(&company, |(company, ..)| *company) else { continue };
        let Some((_, last, not_before)) = last.get(found) else { continue };
        let mut not_before = *not_before;
        let mut before = last.0 - events;
        for row in rows {
            let last_of_row = before + i64::try_from(row.events).unwrap_or(i64::MAX);
            owners.push(company);
            firsts.push(before + 1);
            lasts.push(last_of_row);
            types.push(row.types);
            texts.push(row.told);
            floors.push(not_before);
            not_before = not_before.max(row.last_at);
            before = last_of_row;
        }
    }
    sqlx::query(
        "insert into events (company_id, first_id, last_id, types, told, not_before, created_at)
         select *, now()
         from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::timestamptz[])",
    )
    .bind(owners)
    .bind(firsts)
    .bind(lasts)
    .bind(types)
    .bind(texts)
    .bind(floors)
    .execute(db)
    .await?;
    Ok(last.into_iter().map(|(company, last, _)| (company, last)).collect())
}

/// Writes the events of a plain change in its transaction. They are numbered when it commits.
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
            "insert into event_drafts (company_id, events, types, told, last_at)
             select $1, * from unnest($2::integer[], $3::bigint[], $4::text[], $5::timestamptz[])",
        )
        .bind(company)
        .bind(rows.iter().map(|row| i32::try_from(row.events).unwrap_or(i32::MAX)).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.types).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.told.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.last_at).collect::<Vec<_>>())
        .execute(db),
    )
    .await?;
    Ok(())
}
