//! Events of scheduled messages.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use sqlx::PgConnection;

use super::people::people;
use super::{Before, Place, Telling};
use crate::persister::facts::Origin;
use crate::persister::kinds::Kind;
use crate::tables::cascades;
use crate::tables::events::{self, EventKind, PersonThen, Record, ScheduleThen, Told};
use crate::tables::schedules::{ContactWas, ScheduleRow, ScheduleStatus};
use crate::{CompanyId, ContactId, ScheduleId};

impl Telling<'_> {
    pub(super) async fn tell_schedules(
        &self,
        db: &mut PgConnection,
        before: &Before,
        refused: &HashSet<Origin>,
        told: &mut Vec<(CompanyId, Place, Told)>,
    ) -> sqlx::Result<()> {
        if self.schedules.is_empty() {
            return Ok(());
        }
        let before_them = before.schedules.values().map(|row| (row.company_id, row.contact_id));
        let with = self.schedules.iter().map(|(_, row)| (row.company_id, row.contact_id));
        let people = people(db, with.chain(before_them)).await?;
        let failed = self.schedules.iter().filter(|(_, row)| fails_by_itself(row));
        let failed = failed.map(|(_, row)| (row.company_id, row.contact_id));
        let without_contact: Vec<_> = failed.filter(|contact| !people.contains_key(contact)).collect();
        let deleted = cascades::deleted_contacts(db, without_contact).await?;
        let mut known: HashMap<(CompanyId, ScheduleId), &ScheduleRow> = HashMap::new();
        for (place, row) in &self.schedules {
            let key = (row.company_id, row.id);
            let origin = Origin { kind: ScheduleRow::NAME, company: row.company_id, id: row.id.0 };
            // A finished one is written even if part of it is refused.
            if row.status == ScheduleStatus::Pending && refused.contains(&origin) {
                continue;
            }
            let was = known.get(&key).copied().or_else(|| before.schedules.get(&key));
            let deletion = deleted.get(&(row.company_id, row.contact_id)).filter(|_| fails_by_itself(row));
            let contact_was = row.contact_was.clone().or_else(|| deletion?.contact_was());
            let previous = was.and_then(|was| changed_schedule(was, row, contact_was.as_ref(), &people));
            let kind = match (was, row.status) {
                (None, ScheduleStatus::Pending) => EventKind::ScheduleCreated,
                (Some(was), status) if was.status == status => {
                    if previous.is_none() {
                        continue;
                    }
                    EventKind::ScheduleUpdated
                }
                (_, ScheduleStatus::Sent) => EventKind::ScheduleSent,
                (_, ScheduleStatus::Failed) => EventKind::ScheduleFailed,
                (_, ScheduleStatus::Canceled) => EventKind::ScheduleCanceled,
                // A finished one never becomes pending again.
                (Some(_), ScheduleStatus::Pending) => continue,
            };
            known.insert(key, row);
            let by = deletion.map(|deletion| deletion.by.clone()).or_else(|| row.by.clone());
            let by = Some(by.unwrap_or_default());
            let contact = people.get(&(row.company_id, row.contact_id)).cloned();
            let row_then = ScheduleRow { by: None, contact_was: None, ..(*row).clone() };
            let record = Record::Schedule(Box::new(ScheduleThen { row: row_then, contact }));
            told.push((row.company_id, *place, Told { kind, at: row.updated_at, record, previous, by }));
        }
        Ok(())
    }
}

/// Whether it fails without being asked to: also one that is due before the deletion of its contact reaches it.
fn fails_by_itself(row: &ScheduleRow) -> bool {
    row.status == ScheduleStatus::Failed && row.contact_was.is_none()
}

/// The fields of a scheduled message that changed, with their previous values.
fn changed_schedule(
    was: &ScheduleRow,
    is: &ScheduleRow,
    contact_was: Option<&ContactWas>,
    people: &HashMap<(CompanyId, ContactId), PersonThen>,
) -> Option<Value> {
    let contact = |id: ContactId| {
        let person = people.get(&(is.company_id, id))?;
        Some(json!({"id": id, "name": person.name, "number": person.number}))
    };
    // It fails behind the deletion of its contact.
    let deleted = contact_was.map(|was| json!({"id": is.contact_id, "name": was.name, "number": was.number}));
    let shown = |row: &ScheduleRow, contact: Option<Value>| {
        json!({
            "contact": contact, "channelId": row.channel_id, "body": row.body, "queueId": row.queue_id,
            "sendAt": crate::Timestamp(row.send_at), "status": row.status, "messageId": row.message_id,
            "error": row.error,
        })
    };
    let before = contact(was.contact_id).or(deleted);
    events::previous(&shown(was, before), &shown(is, contact(is.contact_id)))
}
