//! Events of contact changes.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};

use super::{ContactRow, find_all};
use crate::clock;
use crate::error::with_timeout;
use crate::table::CHANGED_AT;
use crate::tables::events::{self, EventKind, Record, ShownThen, Told};
use crate::tables::tags::TagId;
use crate::{CompanyId, ContactId, Result};

/// Contacts before a change, to derive its events afterwards.
pub struct Watched {
    company: CompanyId,
    before: HashMap<ContactId, ContactRow>,
}

/// Reads contacts that are about to be changed, created or deleted, within the transaction of the change.
///
/// # Errors
/// When the database cannot answer.
pub async fn watch(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<Watched> {
    let rows = if ids.is_empty() { Vec::new() } else { find_all(db, company, ids).await? };
    Ok(Watched { company, before: rows.into_iter().map(|row| (row.id, row)).collect() })
}

/// Writes the events of created contacts.
///
/// # Errors
/// When the database cannot answer.
pub async fn tell_created(db: &mut PgConnection, company: CompanyId, ids: &[ContactId]) -> Result<()> {
    Watched { company, before: HashMap::new() }.tell(db, ids).await
}

/// Writes the events of held contacts that have lost a record which reads have not shown any more, and dates them. `put_back`
/// shows it on a contact as before.
///
/// # Errors
/// When the database cannot answer.
pub(crate) async fn tell_lost(
    db: &mut PgConnection,
    company: CompanyId,
    ids: &[ContactId],
    put_back: impl Fn(&mut ContactRow),
) -> Result<()> {
    let date = format!("update contacts set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2)");
    with_timeout(sqlx::query(AssertSqlSafe(date)).bind(company).bind(ids).execute(&mut *db)).await?;
    let mut rows = find_all(&mut *db, company, ids).await?;
    rows.sort_by_key(|row| row.id);
    let mut told = Vec::with_capacity(rows.len());
    for after in rows {
        let mut before = after.clone();
        put_back(&mut before);
        changed(&before, &after, &mut told)?;
    }
    events::tell(db, company, &told).await
}

impl Watched {
    /// Writes the events of what happened to these contacts, and dates each change: what changed nothing is no event and
    /// moves no `updatedAt`.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn tell(mut self, db: &mut PgConnection, ids: &[ContactId]) -> Result<()> {
        let mut told = Vec::new();
        let mut after = find_all(&mut *db, self.company, ids).await?;
        after.sort_by_key(|row| row.id);
        self.date(&mut *db, &mut after).await?;
        for after in after {
            match self.before.remove(&after.id) {
                Some(before) => changed(&before, &after, &mut told)?,
                None => told.push(event(EventKind::ContactCreated, after.created_at, &after, None)?),
            }
        }
        let mut gone: Vec<_> = self.before.into_values().filter(|before| ids.contains(&before.id)).collect();
        gone.sort_by_key(|before| before.id);
        for before in gone {
            told.push(event(EventKind::ContactDeleted, clock::now(), &before, None)?);
        }
        events::tell(db, self.company, &told).await
    }

    /// Moves the `updatedAt` of the contacts that have changed, where their change has not done so.
    async fn date(&self, db: &mut PgConnection, rows: &mut [ContactRow]) -> Result<()> {
        let is_undated = |row: &&mut ContactRow| {
            let before = self.before.get(&row.id).filter(|before| before.updated_at == row.updated_at);
            before.is_some_and(|before| is_changed(before, row))
        };
        let mut undated: HashMap<ContactId, &mut ContactRow> =
            rows.iter_mut().filter(is_undated).map(|row| (row.id, row)).collect();
        if undated.is_empty() {
            return Ok(());
        }
        let ids: Vec<ContactId> = undated.keys().copied().collect();
        let date = format!(
            "update contacts set updated_at = {CHANGED_AT} where company_id = $1 and id = any ($2) returning id, updated_at"
        );
        let dated = sqlx::query_as(AssertSqlSafe(date)).bind(self.company).bind(ids).fetch_all(db);
        let dated: Vec<(ContactId, DateTime<Utc>)> = with_timeout(dated).await?;
        for (id, updated_at) in dated {
            if let Some(row) = undated.get_mut(&id) {
                row.updated_at = updated_at;
            }
        }
        Ok(())
    }
}

/// Whether two states of a contact look different. The last channel follows from messages.
fn is_changed(before: &ContactRow, after: &ContactRow) -> bool {
    let shown = |row: &ContactRow| {
        let mut shown = serde_json::to_value(row).unwrap_or_default();
        if let Some(shown) = shown.as_object_mut() {
            shown.remove("lastChannel");
        }
        shown
    };
    events::previous(&shown(before), &shown(after)).is_some()
}

fn event(kind: EventKind, at: DateTime<Utc>, row: &ContactRow, previous: Option<Value>) -> Result<Told> {
    Ok(Told::plain(kind, at, Record::Contact(ShownThen::of(row.id, row)?), previous))
}

/// One event each for changed fields, added tags and removed tags. The last channel follows from the messages' events.
fn changed(before: &ContactRow, after: &ContactRow, told: &mut Vec<Told>) -> Result<()> {
    let tags = |row: &ContactRow| row.tags.iter().map(|tag| tag.id).collect::<HashSet<TagId>>();
    let (had, has) = (tags(before), tags(after));
    let without_tags = |row: &ContactRow| {
        let mut shown = serde_json::to_value(row).unwrap_or_default();
        if let Some(shown) = shown.as_object_mut() {
            shown.remove("tags");
            shown.remove("lastChannel");
        }
        shown
    };
    if let Some(previous) = events::previous(&without_tags(before), &without_tags(after)) {
        told.push(event(EventKind::ContactUpdated, after.updated_at, after, Some(previous))?);
    }
    let previous = || Some(json!({"tags": &*before.tags}));
    if has.difference(&had).next().is_some() {
        told.push(event(EventKind::ContactTagged, after.updated_at, after, previous())?);
    }
    if had.difference(&has).next().is_some() {
        told.push(event(EventKind::ContactUntagged, after.updated_at, after, previous())?);
    }
    Ok(())
}
