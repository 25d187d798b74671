//! Events of contact changes.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};

use super::{ContactRow, find, find_all};
use crate::clock;
use crate::error::with_timeout;
use crate::table::CHANGED_AT;
use crate::tables::events::{self, EventKind, NewEvent, Record, RecordSnapshot};
use crate::tables::tags::TagId;
use crate::{CompanyId, ContactId, Error, Result};

/// Contacts before a change, to derive its events afterwards.
pub struct ContactTracker {
    company: CompanyId,
    before: HashMap<ContactId, ContactRow>,
    /// The kind of the event for changed fields.
    change_kind: EventKind,
}

/// Reads contacts that are about to be changed, created or deleted, within the transaction of the change. They are
/// locked until its end, so that the events of a contact are in the order of its changes, and the last event shows all
/// of them.
pub async fn track_changes(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<ContactTracker> {
    lock_rows(&mut *db, company, ids).await?;
    let rows = if ids.is_empty() { Vec::new() } else { find_all(db, company, ids).await? };
    Ok(ContactTracker {
        company,
        before: rows.into_iter().map(|row| (row.id, row)).collect(),
        change_kind: EventKind::ContactUpdated,
    })
}

/// Locks contacts against other changes until the transaction ends. A transaction that changes several contacts locks
/// all of them first, so that no two transactions wait for each other.
pub(crate) async fn lock_rows(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<()> {
    if !ids.is_empty() {
        // Each row is found by its key: for many ids at once, the planner would read all contacts of the company.
        let lock = "select from (select distinct id from unnest($2::bigint[]) x (id) order by id) x, lateral (
             select from contacts where company_id = $1 and id = x.id for no key update) locked";
        with_timeout(sqlx::query(lock).bind(company).bind(ids).execute(db)).await?;
    }
    Ok(())
}

/// Writes the events of created contacts.
pub async fn record_created(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<()> {
    ContactTracker { company, before: HashMap::new(), change_kind: EventKind::ContactUpdated }.record(db, ids).await
}

/// Sets the `updated_at` of locked contacts from which a deleted record was removed, and writes their events. `restore`
/// adds the record to a copy of the contact, which then is the contact before the removal.
pub(crate) async fn write_removal_events(
    db: &mut PgConnection,
    company: CompanyId,
    ids: &[ContactId],
    restore: impl Fn(&mut ContactRow),
) -> Result<()> {
    let sql = format!("update contacts set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)");
    with_timeout(sqlx::query(AssertSqlSafe(sql)).bind(company).bind(ids).execute(&mut *db)).await?;
    let mut rows = find_all(&mut *db, company, ids).await?;
    rows.sort_by_key(|row| row.id);
    let mut events = Vec::with_capacity(rows.len());
    for after in rows {
        let mut before = after.clone();
        restore(&mut before);
        add_change_events(&before, &after, EventKind::ContactUpdated, &mut events)?;
    }
    events::draft(db, company, &events).await
}

/// Writes the event of a contact that another one was merged into, and returns the contact as it is now.
pub(crate) async fn record_merged(
    db: &mut PgConnection,
    company: CompanyId,
    before: &ContactRow,
    from: ContactId,
) -> Result<ContactRow> {
    let after = find(&mut *db, company, before.id).await?.ok_or(Error::NotFound("contact"))?;
    let previous = events::previous_values(&without_last_channel(before), &without_last_channel(&after));
    let mut view = serde_json::to_value(&after).unwrap_or_default();
    view["mergedFrom"] = from.0.into();
    let record = Record::Contact(RecordSnapshot::of(after.id, &view)?);
    let event = NewEvent::plain(EventKind::ContactMerged, after.updated_at, record, previous);
    events::draft(db, company, &[event]).await?;
    Ok(after)
}

impl ContactTracker {
    /// Tracks a change in which the provider reports who the contact is: its event is `contact.identified`.
    pub(super) fn into_identification(self) -> Self {
        Self { change_kind: EventKind::ContactIdentified, ..self }
    }

    /// Writes the events of these contacts, and sets the `updatedAt` of those that have changed. A contact that has not
    /// changed gets no event, and keeps its `updatedAt`.
    pub async fn record(mut self, db: &mut PgConnection, ids: &[ContactId]) -> Result<()> {
        let mut events = Vec::new();
        let mut rows = find_all(&mut *db, self.company, ids).await?;
        rows.sort_by_key(|row| row.id);
        self.set_updated_at(&mut *db, &mut rows).await?;
        for after in rows {
            match self.before.remove(&after.id) {
                Some(before) => add_change_events(&before, &after, self.change_kind, &mut events)?,
                None => events.push(event(EventKind::ContactCreated, after.created_at, &after, None)?),
            }
        }
        let mut deleted: Vec<_> = self.before.into_values().filter(|before| ids.contains(&before.id)).collect();
        deleted.sort_by_key(|before| before.id);
        for before in deleted {
            events.push(event(EventKind::ContactDeleted, clock::now(), &before, None)?);
        }
        events::draft(db, self.company, &events).await
    }

    /// Sets the `updatedAt` of changed contacts, unless their change has done so.
    async fn set_updated_at(&self, db: &mut PgConnection, rows: &mut [ContactRow]) -> Result<()> {
        let needs_touch = |row: &&mut ContactRow| {
            let before = self.before.get(&row.id).filter(|before| before.updated_at == row.updated_at);
            before.is_some_and(|before| is_changed(before, row))
        };
        let mut rows_to_touch: HashMap<ContactId, &mut ContactRow> =
            rows.iter_mut().filter(needs_touch).map(|row| (row.id, row)).collect();
        if rows_to_touch.is_empty() {
            return Ok(());
        }
        let ids: Vec<ContactId> = rows_to_touch.keys().copied().collect();
        let sql = format!(
            "update contacts set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2) returning id, updated_at"
        );
        let update = sqlx::query_as(AssertSqlSafe(sql)).bind(self.company).bind(ids).fetch_all(db);
        let updated: Vec<(ContactId, DateTime<Utc>)> = with_timeout(update).await?;
        for (id, updated_at) in updated {
            if let Some(row) = rows_to_touch.get_mut(&id) {
                row.updated_at = updated_at;
            }
        }
        Ok(())
    }
}

/// Whether a contact has changed visibly, apart from its last channel, which follows from messages.
fn is_changed(before: &ContactRow, after: &ContactRow) -> bool {
    events::previous_values(&without_last_channel(before), &without_last_channel(after)).is_some()
}

/// A contact as its events compare it: without its last channel, which follows from the messages' events.
pub(crate) fn without_last_channel(row: &ContactRow) -> Value {
    let mut json = serde_json::to_value(row).unwrap_or_default();
    if let Some(fields) = json.as_object_mut() {
        fields.remove("lastChannel");
    }
    json
}

fn event(kind: EventKind, at: DateTime<Utc>, row: &ContactRow, previous: Option<Value>) -> Result<NewEvent> {
    Ok(NewEvent::plain(kind, at, Record::Contact(RecordSnapshot::of(row.id, row)?), previous))
}

/// Adds one event each for changed fields, added tags and removed tags; none for the last channel, which follows from
/// the messages' events.
fn add_change_events(
    before: &ContactRow,
    after: &ContactRow,
    change_kind: EventKind,
    events: &mut Vec<NewEvent>,
) -> Result<()> {
    let tags = |row: &ContactRow| row.tags.iter().map(|tag| tag.id).collect::<HashSet<TagId>>();
    let (old_tags, new_tags) = (tags(before), tags(after));
    let without_tags = |row: &ContactRow| {
        let mut json = without_last_channel(row);
        if let Some(fields) = json.as_object_mut() {
            fields.remove("tags");
        }
        json
    };
    if let Some(previous) = events::previous_values(&without_tags(before), &without_tags(after)) {
        events.push(event(change_kind, after.updated_at, after, Some(previous))?);
    }
    let previous_tags = || Some(json!({"tags": &*before.tags}));
    if new_tags.difference(&old_tags).next().is_some() {
        events.push(event(EventKind::ContactTagged, after.updated_at, after, previous_tags())?);
    }
    if old_tags.difference(&new_tags).next().is_some() {
        events.push(event(EventKind::ContactUntagged, after.updated_at, after, previous_tags())?);
    }
    Ok(())
}
