//! The scheduled messages of a contact that is merged into another.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;

use crate::document;
use crate::error::with_timeout;
use crate::tables::contacts::ContactRow;
use crate::tables::events::{self, ContactSnapshot, EventKind, NewEvent, Record, ScheduleSnapshot};
use crate::tables::schedules::ScheduleRow;
use crate::{CompanyId, Result};

/// Moves the scheduled messages to the contact that stays. Only pending ones count as changed and have events.
pub(super) async fn move_schedules(
    db: &mut PgConnection,
    company: CompanyId,
    from: &ContactRow,
    into: &ContactRow,
    at: DateTime<Utc>,
) -> Result<()> {
    // `is true` keeps PostgreSQL from using an index of all pending scheduled messages: the one by contact finds fewer
    // rows.
    let update = sqlx::query(
        "update schedules set contact_id = $3, updated_at = greatest($4, updated_at + interval '1 millisecond')
         where company_id = $1 and contact_id = $2 and (status = 'pending') is true returning *",
    );
    let update = update.bind(company).bind(from.id).bind(into.id).bind(at);
    let mut pending: Vec<ScheduleRow> = document::read_all(&with_timeout(update.fetch_all(&mut *db)).await?);
    pending.sort_by_key(|row| row.id);
    let finished = sqlx::query("update schedules set contact_id = $3 where company_id = $1 and contact_id = $2");
    with_timeout(finished.bind(company).bind(from.id).bind(into.id).execute(&mut *db)).await?;
    let previous = json!({"contact": {"id": from.id, "name": from.name, "number": from.number}});
    let contact = ContactSnapshot {
        name: into.name.as_str().into(),
        number: into.number.as_deref().map(Into::into),
        verified: into.verified,
    };
    let event = |row: ScheduleRow| {
        let at = row.updated_at;
        let record = Record::Schedule(Box::new(ScheduleSnapshot { row, contact: Some(contact.clone()) }));
        NewEvent::plain(EventKind::ScheduleUpdated, at, record, Some(previous.clone()))
    };
    let events: Vec<NewEvent> = pending.into_iter().map(event).collect();
    events::draft(db, company, &events).await
}
