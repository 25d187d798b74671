//! The copies of a contact's data that outlive the contact: events, the attempts of their deliveries, recorded
//! responses, and rows that PostgreSQL refused.

use futures_util::TryStreamExt;
use serde_json::Value;

use super::{Erasure, redaction};
use crate::error::with_timeout;
use crate::tables::events;
use crate::{Database, Error, Result};

/// Number of event ids that one statement searches: takes some hundred milliseconds.
const EVENTS_PER_STEP: i64 = 20_000;

/// Maximum ids in a search pattern; with more, every row is examined.
const PATTERN_IDS_MAX: usize = 500;

/// Removes the contact's data from the events; returns the number of changed events. To be called when no further event
/// of the contact can be written.
///
/// # Errors
/// When the database cannot answer; what was changed until then stays changed.
pub async fn redact_events(db: impl Database<'_>, erasure: &mut Erasure) -> Result<u64> {
    let company = erasure.company_id;
    let (mut after, last, mut redacted) = (0, events::last_id(db, company).await?.0, 0);
    while after < last {
        let pattern = search_pattern(erasure);
        let find = sqlx::query_as(
            "select last_id, created_at, told from events
             where company_id = $1 and last_id > $2 and last_id <= $3 and ($4::text is null or told ~ $4)
             order by last_id",
        );
        let find = find.bind(company).bind(after).bind(after + EVENTS_PER_STEP).bind(pattern);
        let mut rows = find.fetch(db);
        let mut changed = Vec::new();
        while let Some((id, at, text)) =
            rows.try_next().await.map_err(Error::from)?.map(|row: (i64, chrono::DateTime<chrono::Utc>, String)| row)
        {
            if let Some((text, count)) = redaction::of_events(&text, erasure) {
                changed.push((id, at, text));
                redacted += count;
            }
        }
        drop(rows);
        for (id, at, text) in changed {
            let update =
                sqlx::query("update events set told = $4 where company_id = $1 and last_id = $2 and created_at = $3");
            with_timeout(update.bind(company).bind(id).bind(at).bind(text).execute(db)).await?;
        }
        after += EVENTS_PER_STEP;
    }
    Ok(redacted)
}

/// A pattern that the text of every event of the contact matches; `None` if the contact has too many records.
fn search_pattern(Erasure { contact_id, traces, .. }: &Erasure) -> Option<String> {
    let numbers = traces.tickets.iter().chain(&traces.schedules).map(ToString::to_string);
    let numbers: Vec<String> = std::iter::once(contact_id.to_string()).chain(numbers).collect();
    if numbers.len() + traces.sessions.len() > PATTERN_IDS_MAX {
        return None;
    }
    let is_plain = |id: &&String| id.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let sessions: Vec<&str> = traces.sessions.iter().filter(is_plain).map(String::as_str).collect();
    let numbers = numbers.join("|");
    Some(match sessions.as_slice() {
        [] => format!(":({numbers})[,}}]"),
        _ => format!(":({numbers})[,}}]|\"({})\"", sessions.join("|")),
    })
}

/// Removes the endpoints' responses to deliveries of the contact's events; returns the number of deliveries.
///
/// # Errors
/// When the database cannot answer.
pub async fn forget_deliveries(db: impl Database<'_>, erasure: &Erasure) -> Result<u64> {
    let Erasure { company_id, contact_id, traces, .. } = erasure;
    let tickets = traces.tickets.iter().map(|id| format!("ticket:{id}"));
    let schedules = traces.schedules.iter().map(|id| format!("schedule:{id}"));
    let sessions = traces.sessions.iter().map(|id| format!("session:{id}"));
    let cards = traces.cards.iter().map(|id| format!("card:{id}"));
    let own = std::iter::once(format!("contact:{contact_id}"));
    let lanes: Vec<String> = own.chain(tickets).chain(schedules).chain(sessions).chain(cards).collect();
    let forget = sqlx::query(
        "update webhook_deliveries set attempts = '[]' where company_id = $1 and lane = any ($2) and attempts <> '[]'",
    );
    Ok(forget.bind(company_id).bind(lanes).execute(db).await?.rows_affected())
}

/// Removes the recorded responses and refused rows that contain data of the contact; returns how many of each.
///
/// # Errors
/// When the database cannot answer.
pub async fn forget_responses(db: impl Database<'_>, erasure: &Erasure) -> Result<(u64, u64)> {
    let company = erasure.company_id;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let all = sqlx::query_as("select key, body from idempotency_keys where company_id = $1");
    let mut rows = all.bind(company).fetch(db);
    while let Some((key, body)) = rows.try_next().await.map_err(Error::from)?.map(|row: (Vec<u8>, String)| row) {
        let body: Option<Value> = serde_json::from_str(&body).ok();
        if body.is_some_and(|body| redaction::mentions(&body, erasure)) {
            keys.push(key);
        }
    }
    drop(rows);
    let forget = sqlx::query("delete from idempotency_keys where company_id = $1 and key = any ($2)");
    let responses = forget.bind(company).bind(keys).execute(db).await?.rows_affected();
    let mut ids: Vec<i64> = Vec::new();
    let all = sqlx::query_as("select id, change from rejected_changes where company_id = $1");
    let mut rows = all.bind(company).fetch(db);
    while let Some((id, change)) = rows.try_next().await.map_err(Error::from)?.map(|row: (i64, Value)| row) {
        // A change that JSON cannot represent is stored as its text.
        let text: Option<Value> = change.as_str().and_then(|text| serde_json::from_str(text).ok());
        if redaction::mentions(text.as_ref().unwrap_or(&change), erasure) {
            ids.push(id);
        }
    }
    drop(rows);
    let forget = sqlx::query("delete from rejected_changes where company_id = $1 and id = any ($2)");
    let rejected = forget.bind(company).bind(ids).execute(db).await?.rows_affected();
    Ok((responses, rejected))
}
