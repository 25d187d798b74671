//! Erasures: contacts whose data is to be removed, the records with their data, and what was removed.
//!
//! The contact itself is deleted as any contact is ([`super::contact_removal`]). This module removes the copies that
//! remain in events, deliveries, recorded responses and refused rows.

mod copies;
mod redaction;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use sqlx::types::Json;

pub use copies::{forget_deliveries, forget_responses, redact_events};

use crate::cluster::SlotFilter;
use crate::document::Document;
use crate::error::with_timeout;
use crate::{CompanyId, ContactId, Database, Error, Result, SessionId, TicketId};

/// Maximum number of erasures that one run reads; later runs read the others.
const PENDING_MAX: i64 = 20;

/// The records that belong to a contact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traces {
    /// Contacts that were merged into the contact: they are the same person.
    pub contacts: BTreeSet<i64>,
    pub tickets: BTreeSet<i64>,
    pub sessions: BTreeSet<String>,
    pub schedules: BTreeSet<i64>,
    pub files: BTreeSet<String>,
    /// Cards that show the contact. They stay.
    pub cards: BTreeSet<i64>,
}

impl Traces {
    fn add(&mut self, other: Self) {
        self.contacts.extend(other.contacts);
        self.tickets.extend(other.tickets);
        self.sessions.extend(other.sessions);
        self.schedules.extend(other.schedules);
        self.files.extend(other.files);
        self.cards.extend(other.cards);
    }
}

/// Numbers of removed records by their kind.
pub type RemovedCounts = BTreeMap<String, i64>;

/// A requested removal of a contact's data, and its progress.
#[derive(Clone, Debug)]
pub struct Erasure {
    pub company_id: CompanyId,
    pub contact_id: ContactId,
    pub traces: Traces,
    /// Empty if the stored counts are unreadable: nothing depends on them.
    pub removed: RemovedCounts,
    pub failure: Option<String>,
    pub done_at: Option<DateTime<Utc>>,
    /// Whether the stored traces can be read. Without them copies would be left, so the erasure must not be carried
    /// out.
    pub is_readable: bool,
}

impl Erasure {
    /// The contact and those that were merged into it.
    fn contact_ids(&self) -> impl Iterator<Item = i64> {
        std::iter::once(self.contact_id.0).chain(self.traces.contacts.iter().copied())
    }

    /// Whether this is the contact, or one that was merged into it.
    fn has_contact(&self, id: i64) -> bool {
        id == self.contact_id.0 || self.traces.contacts.contains(&id)
    }
}

#[derive(FromRow)]
struct ErasureRow {
    company_id: CompanyId,
    contact_id: ContactId,
    traces: Document<Traces>,
    removed: Document<RemovedCounts>,
    failure: Option<String>,
    done_at: Option<DateTime<Utc>>,
}

impl From<ErasureRow> for Erasure {
    fn from(row: ErasureRow) -> Self {
        let ErasureRow { company_id, contact_id, traces, removed, failure, done_at } = row;
        let (traces, removed) = (traces.into_option(), removed.into_option().unwrap_or_default());
        let is_readable = traces.is_some();
        Self { company_id, contact_id, traces: traces.unwrap_or_default(), removed, failure, done_at, is_readable }
    }
}

/// Requests the erasure of a contact, even of a deleted one, since copies of its data may remain. The contacts that
/// were merged into it are erased with it: they are the same person.
///
/// # Errors
/// [`Error::NotFound`] when there is no such company; other errors when the database cannot answer.
pub async fn request(db: impl Database<'_>, company: CompanyId, contact: ContactId) -> Result<()> {
    let mut transaction = db.transaction().await?;
    let connection = transaction.connection()?;
    // A merge of the contact ends first, or finds that the contact is being erased.
    let lock = sqlx::query("select from contacts where company_id = $1 and id = $2 for key share");
    with_timeout(lock.bind(company).bind(contact).execute(&mut *connection)).await?;
    let request = sqlx::query(
        "insert into erasures (company_id, contact_id) select id, $2::bigint from companies where id = $1
         on conflict (company_id, contact_id) do update set removed = '{}', failure = null, requested_at = now(),
             done_at = null
         where erasures.done_at is not null",
    );
    let requested = with_timeout(request.bind(company).bind(contact).execute(connection)).await?.rows_affected();
    transaction.commit().await?;
    if requested == 0 && find(db, company, contact).await?.is_none() { Err(Error::NotFound("company")) } else { Ok(()) }
}

/// One erasure, or `None`.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: impl Database<'_>, company: CompanyId, contact: ContactId) -> Result<Option<Erasure>> {
    let find = sqlx::query_as(
        "select company_id, contact_id, traces, removed, failure, done_at from erasures
         where company_id = $1 and contact_id = $2",
    );
    let row: Option<ErasureRow> = with_timeout(find.bind(company).bind(contact).fetch_optional(db)).await?;
    Ok(row.map(Erasure::from))
}

/// The first erasures that are not done: those without a failure first, then by the time of the request.
///
/// # Errors
/// When the database cannot answer.
pub async fn pending(db: impl Database<'_>, slots: &SlotFilter) -> Result<Vec<Erasure>> {
    let in_slots = SlotFilter::condition("company_id", 2);
    let pending = format!(
        "select company_id, contact_id, traces, removed, failure, done_at from erasures
         where done_at is null and {in_slots} order by failure is not null, requested_at limit $1"
    );
    let pending = sqlx::query_as(sqlx::AssertSqlSafe(pending)).bind(PENDING_MAX).bind(slots.numbers());
    let rows: Vec<ErasureRow> = with_timeout(pending.fetch_all(db)).await?;
    Ok(rows.into_iter().map(Erasure::from).collect())
}

#[derive(FromRow)]
struct FoundRecords {
    exists: bool,
    merged_contacts: Vec<i64>,
    tickets: Vec<i64>,
    /// Tickets that were merged into others: events still name them.
    merged_tickets: Vec<i64>,
    sessions: Vec<String>,
    schedules: Vec<i64>,
    files: Vec<String>,
    cards: Vec<i64>,
    messages: i64,
    recipients: i64,
}

/// Adds the ids and counts of the contact's records in the tables to the erasure, and stores it; returns whether the
/// contact exists.
///
/// # Errors
/// When the database cannot answer.
pub async fn collect_traces(db: impl Database<'_>, erasure: &mut Erasure) -> Result<bool> {
    let (company, contact) = (erasure.company_id, erasure.contact_id);
    let found = find_records(db, company, contact).await?;
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let tickets = count(found.tickets.len());
    erasure.traces.add(Traces {
        contacts: found.merged_contacts.into_iter().collect(),
        tickets: found.tickets.into_iter().chain(found.merged_tickets).collect(),
        sessions: found.sessions.into_iter().collect(),
        schedules: found.schedules.into_iter().collect(),
        files: found.files.into_iter().collect(),
        cards: found.cards.into_iter().collect(),
    });
    let traces = &erasure.traces;
    let counts = [
        ("contacts", i64::from(found.exists)),
        ("tickets", tickets),
        ("messages", found.messages),
        ("webchatSessions", count(traces.sessions.len())),
        ("scheduledMessages", count(traces.schedules.len())),
        ("files", count(traces.files.len())),
        ("cardLinks", count(traces.cards.len())),
        ("campaignRecipients", found.recipients),
    ];
    for (name, number) in counts {
        // An earlier run may have deleted records that it had counted.
        let removed = erasure.removed.entry(name.to_owned()).or_default();
        *removed = number.max(*removed);
    }
    let store = sqlx::query("update erasures set traces = $3, removed = $4 where company_id = $1 and contact_id = $2");
    let store = store.bind(company).bind(contact).bind(Json(&erasure.traces)).bind(Json(&erasure.removed));
    with_timeout(store.execute(db)).await?;
    Ok(found.exists)
}

async fn find_records(db: impl Database<'_>, company: CompanyId, contact: ContactId) -> Result<FoundRecords> {
    let find = sqlx::query_as(
        "select exists (select from contacts where company_id = $1 and id = $2) as exists,
             array(select id from merges
                 where company_id = $1 and noun = 'contact' and into_id = $2) as merged_contacts,
             array(select id from tickets where company_id = $1 and contact_id = $2) as tickets,
             array(select m.id from tickets t
                 join merges m on m.company_id = t.company_id and m.noun = 'ticket' and m.into_id = t.id
                 where t.company_id = $1 and t.contact_id = $2) as merged_tickets,
             array(select id from webchat_sessions where company_id = $1 and contact_id = $2) as sessions,
             array(select id from schedules where company_id = $1 and contact_id = $2) as schedules,
             array(select media ->> 'id' from messages
                 where company_id = $1 and contact_id = $2 and media ? 'id') as files,
             array(select card_id from card_contacts where company_id = $1 and contact_id = $2) as cards,
             (select count(*) from messages where company_id = $1 and contact_id = $2) as messages,
             (select count(*) from campaign_recipients where company_id = $1 and contact_id = $2) as recipients",
    );
    with_timeout(find.bind(company).bind(contact).fetch_one(db)).await
}

/// The contact's open tickets and active sessions, which must be ended first.
///
/// # Errors
/// When the database cannot answer.
pub async fn open_tickets_and_sessions(
    db: impl Database<'_>,
    company: CompanyId,
    contact: ContactId,
) -> Result<(Vec<TicketId>, Vec<SessionId>)> {
    let find = sqlx::query_as(
        "select array(select id from tickets where company_id = $1 and contact_id = $2 and status = 'open'),
             array(select id from webchat_sessions where company_id = $1 and contact_id = $2 and status = 'active')",
    );
    let (tickets, sessions): (Vec<TicketId>, Vec<String>) =
        with_timeout(find.bind(company).bind(contact).fetch_one(db)).await?;
    Ok((tickets, sessions.into_iter().map(SessionId).collect()))
}

/// Deletes the contact's scheduled messages, pending ones only if `with_pending` is set; returns whether any is left.
///
/// # Errors
/// When the database cannot answer.
pub async fn remove_schedules(
    db: impl Database<'_>,
    company: CompanyId,
    contact: ContactId,
    with_pending: bool,
) -> Result<bool> {
    let remove =
        sqlx::query("delete from schedules where company_id = $1 and contact_id = $2 and (status <> 'pending' or $3)");
    with_timeout(remove.bind(company).bind(contact).bind(with_pending).execute(db)).await?;
    let exists = sqlx::query_scalar("select exists (select from schedules where company_id = $1 and contact_id = $2)");
    with_timeout(exists.bind(company).bind(contact).fetch_one(db)).await
}

/// Whether one of the contact's files may still exist.
///
/// # Errors
/// When the database cannot answer.
pub async fn has_files(db: impl Database<'_>, erasure: &Erasure) -> Result<bool> {
    let files: Vec<&String> = erasure.traces.files.iter().collect();
    let exists = sqlx::query_scalar("select exists (select from media where company_id = $1 and id = any ($2))");
    with_timeout(exists.bind(erasure.company_id).bind(files).fetch_one(db)).await
}

/// Records the end of an erasure. Of its traces, only the cards are kept.
///
/// # Errors
/// When the database cannot answer.
pub async fn finish(db: impl Database<'_>, erasure: &Erasure) -> Result<()> {
    let kept = Traces { cards: erasure.traces.cards.clone(), ..Traces::default() };
    let finish = sqlx::query(
        "update erasures set traces = $3, removed = $4, failure = null, done_at = now()
         where company_id = $1 and contact_id = $2",
    );
    let finish = finish.bind(erasure.company_id).bind(erasure.contact_id).bind(Json(kept)).bind(Json(&erasure.removed));
    with_timeout(finish.execute(db)).await.map(drop)
}

/// Records why a step failed; it is retried.
///
/// # Errors
/// When the database cannot answer.
pub async fn record_failure(db: impl Database<'_>, erasure: &Erasure, failure: &str) -> Result<()> {
    let record = sqlx::query("update erasures set failure = $3 where company_id = $1 and contact_id = $2");
    with_timeout(record.bind(erasure.company_id).bind(erasure.contact_id).bind(failure).execute(db)).await.map(drop)
}
