//! Events of scheduled messages.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use sqlx::PgConnection;

use super::embedded_contacts::embedded_contacts;
use super::{BatchIndex, EventCollector, PreviousRows};
use crate::persister::facts::SourceRow;
use crate::persister::kinds::Kind;
use crate::tables::cascades::{self, DeletedRecord};
use crate::tables::events::{self, ContactSnapshot, EventKind, NewEvent, Record, ScheduleSnapshot};
use crate::tables::schedules::{DeletedContact, ScheduleRow, ScheduleStatus};
use crate::{CompanyId, ContactId, ScheduleId};

impl EventCollector<'_> {
    /// Adds one event for each scheduled message that was created, changed or finished.
    pub(super) async fn add_schedule_events(
        &self,
        db: &mut PgConnection,
        previous_rows: &PreviousRows,
        refusals: &HashSet<SourceRow>,
        events: &mut Vec<(CompanyId, BatchIndex, NewEvent)>,
    ) -> sqlx::Result<()> {
        if self.schedules.is_empty() {
            return Ok(());
        }
        let previous_contacts = previous_rows.schedules.values().map(|row| (row.company_id, row.contact_id));
        let current_contacts = self.schedules.iter().map(|(_, row)| (row.company_id, row.contact_id));
        let contacts = embedded_contacts(db, current_contacts.chain(previous_contacts)).await?;
        let deletions = self.deletions_before_due(db, &contacts).await?;
        let mut latest_rows: HashMap<(CompanyId, ScheduleId), &ScheduleRow> = HashMap::new();
        for (index, row) in &self.schedules {
            let key = (row.company_id, row.id);
            let source_row = SourceRow { kind: ScheduleRow::NAME, company: row.company_id, id: row.id.0 };
            // A finished scheduled message is written even if part of it is refused.
            if row.status == ScheduleStatus::Pending && refusals.contains(&source_row) {
                continue;
            }
            let previous_row = latest_rows.get(&key).copied().or_else(|| previous_rows.schedules.get(&key));
            let deletion = deletions.get(&(row.company_id, row.contact_id)).filter(|_| has_failed_when_due(row));
            let contact_was = row.contact_was.clone().or_else(|| deletion?.deleted_contact());
            let previous = previous_row
                .and_then(|previous_row| changed_fields(previous_row, row, contact_was.as_ref(), &contacts));
            let previous_status = previous_row.map(|previous_row| previous_row.status);
            let Some(kind) = event_kind(previous_status, row.status, previous.is_some()) else { continue };
            latest_rows.insert(key, row);
            let by = deletion.map(|deletion| deletion.by.clone()).or_else(|| row.by.clone());
            let by = Some(by.unwrap_or_default());
            let contact = contacts.get(&(row.company_id, row.contact_id)).cloned();
            let snapshot = ScheduleRow { by: None, contact_was: None, ..(*row).clone() };
            let record = Record::Schedule(Box::new(ScheduleSnapshot { row: snapshot, contact }));
            events.push((row.company_id, *index, NewEvent { kind, at: row.updated_at, record, previous, by }));
        }
        Ok(())
    }

    /// The deletions of contacts whose scheduled messages failed when due. `contacts` are those that exist.
    async fn deletions_before_due(
        &self,
        db: &mut PgConnection,
        contacts: &HashMap<(CompanyId, ContactId), ContactSnapshot>,
    ) -> sqlx::Result<HashMap<(CompanyId, ContactId), DeletedRecord>> {
        let failed = self.schedules.iter().filter(|(_, row)| has_failed_when_due(row));
        let failed_contacts = failed.map(|(_, row)| (row.company_id, row.contact_id));
        let missing_contacts = failed_contacts.filter(|contact| !contacts.contains_key(contact)).collect();
        cascades::deleted_contacts(db, missing_contacts).await
    }
}

/// The kind of event for a new row of a scheduled message; `None` if it has no event. `has_changed`: a shown field
/// differs from the previous row.
fn event_kind(previous: Option<ScheduleStatus>, status: ScheduleStatus, has_changed: bool) -> Option<EventKind> {
    match (previous, status) {
        (None, ScheduleStatus::Pending) => Some(EventKind::ScheduleCreated),
        (Some(previous), _) if previous == status => has_changed.then_some(EventKind::ScheduleUpdated),
        (_, ScheduleStatus::Sent) => Some(EventKind::ScheduleSent),
        (_, ScheduleStatus::Failed) => Some(EventKind::ScheduleFailed),
        (_, ScheduleStatus::Canceled) => Some(EventKind::ScheduleCanceled),
        // A finished scheduled message never becomes pending again.
        (Some(_), ScheduleStatus::Pending) => None,
    }
}

/// Whether a scheduled message failed when it was due, perhaps because its contact was deleted earlier. `contact_was`
/// is set only if the deletion itself made the scheduled message fail.
fn has_failed_when_due(row: &ScheduleRow) -> bool {
    row.status == ScheduleStatus::Failed && row.contact_was.is_none()
}

/// The fields of a scheduled message that changed, with their previous values.
fn changed_fields(
    previous_row: &ScheduleRow,
    row: &ScheduleRow,
    contact_was: Option<&DeletedContact>,
    contacts: &HashMap<(CompanyId, ContactId), ContactSnapshot>,
) -> Option<Value> {
    let contact_json = |id: ContactId| {
        let contact = contacts.get(&(row.company_id, id))?;
        Some(json!({"id": id, "name": contact.name, "number": contact.number}))
    };
    // A deleted contact is no longer among `contacts`.
    let deleted_contact =
        contact_was.map(|contact| json!({"id": row.contact_id, "name": contact.name, "number": contact.number}));
    let row_json = |row: &ScheduleRow, contact: Option<Value>| {
        json!({
            "contact": contact, "channelId": row.channel_id, "body": row.body, "queueId": row.queue_id,
            "sendAt": crate::Timestamp(row.send_at), "status": row.status, "messageId": row.message_id,
            "error": row.error,
        })
    };
    let previous_contact = contact_json(previous_row.contact_id).or(deleted_contact);
    events::previous_values(&row_json(previous_row, previous_contact), &row_json(row, contact_json(row.contact_id)))
}
