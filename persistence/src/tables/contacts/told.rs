//! Events of contact changes.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{ContactRow, find_all};
use crate::clock;
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

impl Watched {
    /// Writes the events of what happened to these contacts.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn tell(mut self, db: &mut PgConnection, ids: &[ContactId]) -> Result<()> {
        let mut told = Vec::new();
        let mut after = find_all(&mut *db, self.company, ids).await?;
        after.sort_by_key(|row| row.id);
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
}

fn event(kind: EventKind, at: DateTime<Utc>, row: &ContactRow, previous: Option<Value>) -> Result<Told> {
    Ok(Told { kind, at, record: Record::Contact(ShownThen::of(row.id, row)?), previous })
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
