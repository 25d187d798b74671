//! The copies of a contact's data that remain after the contact is deleted: events, the attempts of their deliveries,
//! recorded responses, and rows that PostgreSQL refused.
//!
//! The search may take many minutes. A company cannot move to another process of the cluster while one of these
//! statements runs ([`run_here`]), but it can between two of them: the search then fails here and begins again there.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{Erasure, redaction};
use crate::error::with_timeout;
use crate::tables::events::{self, EventKind};
use crate::{CompanyId, Database, Ownership, Result};

/// Number of event ids that one statement searches. It takes a few hundred milliseconds.
const EVENTS_PER_STEP: i64 = 20_000;

/// Maximum number of ids in a search pattern; with more, every row is examined.
const PATTERN_IDS_MAX: usize = 500;

/// Number of deliveries that are examined at once. It takes about ten milliseconds.
const DELIVERIES_PER_STEP: i64 = 5_000;

/// Number of recorded responses, or of refused rows, that are read at once: usually less than a MiB.
const ROWS_PER_STEP: i64 = 500;

/// Runs a statement while the company is served by this process.
///
/// # Errors
/// When the company is not served here, or the database cannot answer.
async fn run_here<T>(
    ownership: &Ownership,
    company: CompanyId,
    statement: impl Future<Output = sqlx::Result<T>>,
) -> Result<T> {
    let _presence = ownership.enter(company).await?;
    with_timeout(statement).await
}

/// Removes the contact's data from the events; returns the number of changed events. Must be called only when no
/// further event of the contact can be written.
///
/// # Errors
/// When the company is not served here, or the database cannot answer; events that were already changed stay changed.
pub async fn redact_events(db: impl Database<'_>, ownership: &Ownership, erasure: &mut Erasure) -> Result<u64> {
    let company = erasure.company_id;
    let (mut after, last, mut redacted) = (0, events::last_id(db, company).await?.0, 0);
    find_merged_contacts(db, ownership, erasure, last).await?;
    while after < last {
        // Built again for each step: redacting events adds tickets to the traces.
        let pattern = search_pattern(erasure);
        let find = sqlx::query_as::<_, (i64, DateTime<Utc>, String)>(
            "select last_id, created_at, told from events
             where company_id = $1 and last_id > $2 and last_id <= $3 and ($4::text is null or told ~ $4)
             order by last_id",
        );
        let find = find.bind(company).bind(after).bind(after + EVENTS_PER_STEP).bind(pattern);
        for (id, at, text) in run_here(ownership, company, find.fetch_all(db)).await? {
            let Some((text, count)) = redaction::redact_row_events(&text, erasure) else { continue };
            let update =
                sqlx::query("update events set told = $4 where company_id = $1 and last_id = $2 and created_at = $3");
            let update = update.bind(company).bind(id).bind(at).bind(text);
            run_here(ownership, company, update.execute(db)).await?;
            redacted += count;
        }
        after += EVENTS_PER_STEP;
    }
    Ok(redacted)
}

/// Adds the contacts that were merged into the contact to the traces. If the contact was deleted before the erasure,
/// only the events still name them: the deletion removes the stored merges.
async fn find_merged_contacts(
    db: impl Database<'_>,
    ownership: &Ownership,
    erasure: &mut Erasure,
    last: i64,
) -> Result<()> {
    let company = erasure.company_id;
    // From the last merge to the first, so that a contact is known before those that were merged into it earlier.
    let mut until = last;
    while until > 0 {
        let find = sqlx::query_scalar::<_, String>(
            "select told from events
             where company_id = $1 and last_id > $2 and last_id <= $3 and types & $4 <> 0 order by last_id desc",
        );
        let find = find.bind(company).bind(until - EVENTS_PER_STEP).bind(until).bind(EventKind::ContactMerged.bit());
        for text in run_here(ownership, company, find.fetch_all(db)).await? {
            redaction::add_merged_contacts(&text, erasure);
        }
        until -= EVENTS_PER_STEP;
    }
    Ok(())
}

/// A pattern that the text of every event of the contact matches; `None` if the contact has too many records.
fn search_pattern(erasure: &Erasure) -> Option<String> {
    let traces = &erasure.traces;
    let records = traces.tickets.iter().chain(&traces.schedules).copied();
    let ids: Vec<String> = erasure.contact_ids().chain(records).map(|id| id.to_string()).collect();
    if ids.len() + traces.sessions.len() > PATTERN_IDS_MAX {
        return None;
    }
    // Other characters could have a meaning in the pattern. The events of a session are also found by its contact's id.
    let is_plain = |id: &&String| id.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    let sessions: Vec<&str> = traces.sessions.iter().filter(is_plain).map(String::as_str).collect();
    let ids = ids.join("|");
    Some(match sessions.as_slice() {
        [] => format!(":({ids})[,}}]"),
        _ => format!(":({ids})[,}}]|\"({})\"", sessions.join("|")),
    })
}

/// Removes the endpoints' responses to deliveries of the contact's events; returns the number of deliveries.
///
/// # Errors
/// When the company is not served here, or the database cannot answer; responses that were already removed stay
/// removed, and are not counted again.
pub async fn forget_deliveries(db: impl Database<'_>, ownership: &Ownership, erasure: &Erasure) -> Result<u64> {
    let Erasure { company_id, traces, .. } = erasure;
    let tickets = traces.tickets.iter().map(|id| format!("ticket:{id}"));
    let schedules = traces.schedules.iter().map(|id| format!("schedule:{id}"));
    let sessions = traces.sessions.iter().map(|id| format!("session:{id}"));
    let cards = traces.cards.iter().map(|id| format!("card:{id}"));
    let contacts = erasure.contact_ids().map(|id| format!("contact:{id}"));
    let lanes: Vec<String> = contacts.chain(tickets).chain(schedules).chain(sessions).chain(cards).collect();
    let (mut after, mut changed) = ((0_i64, 0_i64), 0);
    loop {
        // All deliveries are read: no index has the lanes of finished ones.
        let find = sqlx::query_as::<_, (i64, i64, bool)>(
            "select webhook_id, event_id, lane = any ($4) and attempts <> '[]' from webhook_deliveries
             where company_id = $1 and (webhook_id, event_id) > ($2, $3) order by webhook_id, event_id limit $5",
        );
        let find = find.bind(company_id).bind(after.0).bind(after.1).bind(&lanes).bind(DELIVERIES_PER_STEP);
        let rows = run_here(ownership, *company_id, find.fetch_all(db)).await?;
        let Some((webhook, event, _)) = rows.last() else { return Ok(changed) };
        after = (*webhook, *event);
        let found = rows.iter().filter(|(.., is_of_contact)| *is_of_contact);
        let (webhooks, events): (Vec<i64>, Vec<i64>) = found.map(|(webhook, event, _)| (*webhook, *event)).unzip();
        if !events.is_empty() {
            let update = sqlx::query(
                "update webhook_deliveries set attempts = '[]' where company_id = $1
                     and (webhook_id, event_id) in (select * from unnest($2::bigint[], $3::bigint[]))",
            );
            let update = update.bind(company_id).bind(webhooks).bind(events);
            changed += run_here(ownership, *company_id, update.execute(db)).await?.rows_affected();
        }
    }
}

/// Removes the recorded responses and refused rows that contain data of the contact; returns how many of each.
///
/// # Errors
/// When the company is not served here, or the database cannot answer; rows that were already removed stay removed.
pub async fn forget_responses(db: impl Database<'_>, ownership: &Ownership, erasure: &Erasure) -> Result<(u64, u64)> {
    let responses = forget_recorded_responses(db, ownership, erasure).await?;
    Ok((responses, forget_rejected_changes(db, ownership, erasure).await?))
}

async fn forget_recorded_responses(db: impl Database<'_>, ownership: &Ownership, erasure: &Erasure) -> Result<u64> {
    let company = erasure.company_id;
    let mentions = |body: &str| match serde_json::from_str::<Value>(body) {
        Ok(body) => redaction::mentions(&body, erasure),
        // An empty body.
        Err(_) => false,
    };
    let mut after: (Vec<u8>, DateTime<Utc>) = (Vec::new(), DateTime::UNIX_EPOCH);
    let mut removed = 0;
    loop {
        // A key that was used again after its response had expired has several rows.
        let find = sqlx::query_as::<_, (Vec<u8>, DateTime<Utc>, String)>(
            "select key, created_at, body from idempotency_keys
             where company_id = $1 and (key, created_at) > ($2, $3) order by key, created_at limit $4",
        );
        let find = find.bind(company).bind(after.0).bind(after.1).bind(ROWS_PER_STEP);
        let rows = run_here(ownership, company, find.fetch_all(db)).await?;
        let Some((key, at, _)) = rows.last() else { return Ok(removed) };
        after = (key.clone(), *at);
        let found: Vec<Vec<u8>> = rows.into_iter().filter(|(.., body)| mentions(body)).map(|(key, ..)| key).collect();
        if !found.is_empty() {
            let delete = sqlx::query("delete from idempotency_keys where company_id = $1 and key = any ($2)");
            let delete = delete.bind(company).bind(found);
            removed += run_here(ownership, company, delete.execute(db)).await?.rows_affected();
        }
    }
}

async fn forget_rejected_changes(db: impl Database<'_>, ownership: &Ownership, erasure: &Erasure) -> Result<u64> {
    let company = erasure.company_id;
    let mentions = |change: &Value| {
        // A change that JSON cannot represent is stored as its text.
        let text: Option<Value> = change.as_str().and_then(|text| serde_json::from_str(text).ok());
        redaction::mentions(text.as_ref().unwrap_or(change), erasure)
    };
    let (mut after, mut removed) = (0_i64, 0);
    loop {
        let find = sqlx::query_as::<_, (i64, Value)>(
            "select id, change from rejected_changes where company_id = $1 and id > $2 order by id limit $3",
        );
        let find = find.bind(company).bind(after).bind(ROWS_PER_STEP);
        let rows = run_here(ownership, company, find.fetch_all(db)).await?;
        let Some((last, _)) = rows.last() else { return Ok(removed) };
        after = *last;
        let found: Vec<i64> = rows.iter().filter(|(_, change)| mentions(change)).map(|(id, _)| *id).collect();
        if !found.is_empty() {
            let delete = sqlx::query("delete from rejected_changes where company_id = $1 and id = any ($2)");
            let delete = delete.bind(company).bind(found);
            removed += run_here(ownership, company, delete.execute(db)).await?.rows_affected();
        }
    }
}
