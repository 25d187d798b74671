//! Derives the events of live rows from entries. Each entry is evaluated as a whole, as for the report figures. The
//! tables are queried for what only they know: whether a status advanced, whether a session is new.

mod embedded_contacts;
mod revision_events;
mod row_events;
mod schedule_events;
mod session_events;
mod status_events;

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use self::embedded_contacts::{as_sqlx, group_by_company};
use super::facts::SourceRow;
use super::kinds::Kind;
use crate::tables::contacts::{self, ContactRow};
use crate::tables::events::{self, By, EventKind, NewEvent, Record, RecordSnapshot};
use crate::tables::messages::{
    self, ChangedMessage, DeliveryStatusRow, MediaRow, MessageRow, MessageStatus, Revisables, RevisionRow,
};
use crate::tables::schedules::{self, ScheduleRow};
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::{self, SessionRow, SessionStatus};
use crate::{Change, CompanyId, ContactId, LoggedEventId, MessageId, ScheduleId, SessionId, TicketId};

/// The position of a change in its batch.
type BatchIndex = usize;

/// An event that depends only on its own row.
struct RowEvent<'a> {
    index: BatchIndex,
    company: CompanyId,
    at: DateTime<Utc>,
    source_row: SourceRow,
    source: EventSource<'a>,
}

enum EventSource<'a> {
    /// The event, and the ticket right after it.
    Ticket(&'a EventRow, &'a TicketRow),
    /// The message, and its ticket right after it.
    Message(&'a MessageRow, Option<&'a TicketRow>),
}

impl<'a> RowEvent<'a> {
    /// The event of a ticket; `None` without the ticket in the same entry.
    fn of_ticket(index: BatchIndex, event: &'a EventRow, entry: &'a [Change]) -> Option<Self> {
        Some(Self {
            index,
            company: event.company_id,
            at: event.created_at,
            source_row: SourceRow { kind: EventRow::NAME, company: event.company_id, id: event.id.0 },
            source: EventSource::Ticket(event, latest_ticket(entry, event.ticket_id)?),
        })
    }

    /// The event of a new message.
    fn of_message(index: BatchIndex, row: &'a MessageRow, entry: &'a [Change]) -> Self {
        Self {
            index,
            company: row.company_id,
            at: row.created_at,
            source_row: SourceRow::of_message(row),
            source: EventSource::Message(row, latest_ticket(entry, row.ticket_id)),
        }
    }
}

/// A ticket as it is after an entry; `None` if the entry does not change its row.
fn latest_ticket(entry: &[Change], id: TicketId) -> Option<&TicketRow> {
    entry.iter().rev().find_map(|change| match change {
        Change::Ticket(row) if row.id == id => Some(row),
        _ => None,
    })
}

/// A message was reported to have reached this status, perhaps not for the first time.
struct StatusReport {
    index: BatchIndex,
    company: CompanyId,
    message: MessageId,
    status: MessageStatus,
    at: DateTime<Utc>,
}

impl StatusReport {
    fn of(index: BatchIndex, row: &DeliveryStatusRow) -> Self {
        Self {
            index,
            company: row.company_id,
            message: row.message_id,
            status: row.delivery_status.status(),
            // The event has Hotline's time, the message the provider's.
            at: row.noted_at.unwrap_or(row.at),
        }
    }
}

/// The file of a message was stored or is lost.
#[derive(Clone, Copy)]
struct FileReport {
    index: BatchIndex,
    is_lost: bool,
    /// `None` in rows of earlier releases.
    noted_at: Option<DateTime<Utc>>,
}

impl FileReport {
    fn of(index: BatchIndex, row: &MediaRow) -> Self {
        Self { index, is_lost: row.media.is_none(), noted_at: row.noted_at }
    }
}

/// Collects the events of a batch.
#[derive(Default)]
pub(super) struct EventCollector<'a> {
    /// The index of the next change.
    next_index: BatchIndex,
    row_events: Vec<RowEvent<'a>>,
    status_reports: Vec<StatusReport>,
    /// Tickets whose messages were marked as delivered to or read by the contact.
    receipts: HashMap<(CompanyId, TicketId), (BatchIndex, DateTime<Utc>)>,
    /// Messages whose file was stored or is lost.
    files: HashMap<(CompanyId, MessageId), FileReport>,
    /// Revisions of messages, in the order of the log.
    revisions: Vec<(BatchIndex, &'a RevisionRow)>,
    sessions: Vec<(BatchIndex, &'a SessionRow)>,
    schedules: Vec<(BatchIndex, &'a ScheduleRow)>,
    /// Contacts that may change.
    contacts: BTreeMap<(CompanyId, ContactId), (BatchIndex, DateTime<Utc>)>,
}

/// The rows as they are before the batch is written.
#[derive(Default)]
pub(super) struct PreviousRows {
    sessions: HashMap<(CompanyId, SessionId), SessionStatus>,
    revisables: Revisables,
    schedules: HashMap<(CompanyId, ScheduleId), ScheduleRow>,
    contacts: HashMap<(CompanyId, ContactId), ContactRow>,
}

/// The outcome of writing the rows.
#[derive(Clone, Copy)]
pub(super) struct FlushOutcome<'a> {
    /// Whether rows were written in parts, so that some may have been refused.
    pub(super) in_parts: bool,
    /// The refused rows.
    pub(super) refusals: &'a HashSet<SourceRow>,
    /// The messages whose row has changed.
    pub(super) changed_messages: &'a [ChangedMessage],
}

impl<'a> EventCollector<'a> {
    /// Adds the events of one entry. Every kind of change is listed, with its events or the reason why it has none.
    pub(super) fn add(&mut self, entry: &'a [Change]) {
        for change in entry {
            let index = self.next_index;
            self.next_index += 1;
            match change {
                // Its events come from `Change::Event`; its last message and unread count follow from the messages.
                Change::Ticket(_) => {}
                // A note's event comes from its message.
                Change::Event(event) if event.kind == EventType::NoteAdded => {}
                Change::Event(event) => self.row_events.extend(RowEvent::of_ticket(index, event, entry)),
                Change::Message(row) => self.row_events.push(RowEvent::of_message(index, row, entry)),
                Change::Media(row) => {
                    self.files.insert((row.company_id, row.message_id), FileReport::of(index, row));
                }
                Change::Revision(row) => self.revisions.push((index, row)),
                Change::Progress(row) => self.status_reports.push(StatusReport::of(index, row)),
                Change::Delivered(receipt) | Change::Seen(receipt) => {
                    self.receipts.insert((receipt.company_id, receipt.ticket_id), (index, receipt.at));
                }
                // Reading a ticket has a ticket event of its own (`EventType::Read`).
                Change::Read(_) => {}
                Change::Session(row) => self.sessions.push((index, row)),
                // A contact's last channel changes when a ticket opens, which has an event.
                Change::ContactChannel(_) => {}
                Change::Referral(row) => drop(self.contacts.insert((row.company_id, row.contact_id), (index, row.at))),
                Change::OptOut(row) => drop(self.contacts.insert((row.company_id, row.contact_id), (index, row.at))),
                Change::Schedule(row) => self.schedules.push((index, row)),
                // The message does not change; its job shows the attempts.
                Change::Attempt(_) => {}
                // The recipient's status follows from the message; the campaign has its own event on completion.
                Change::Recipient(_) => {}
                // The recorded response to a request; the events come from the other changes of the entry.
                Change::Answer(_) => {}
            }
        }
    }

    /// Reads the current state of rows that are about to be written.
    pub(super) async fn previous_rows(&self, db: &mut PgConnection) -> sqlx::Result<PreviousRows> {
        let mut previous = PreviousRows::default();
        if !self.revisions.is_empty() {
            let keys = self.revisions.iter().map(|(_, row)| (row.company_id, row.message_id));
            previous.revisables = messages::read_revisables(db, keys).await?;
        }
        if !self.sessions.is_empty() {
            let ids = self.sessions.iter().map(|(_, row)| (row.company_id, row.id.clone()));
            previous.sessions = webchat_sessions::statuses(db, ids).await?;
        }
        if !self.schedules.is_empty() {
            let ids = self.schedules.iter().map(|(_, row)| (row.company_id, row.id));
            previous.schedules = schedules::find_all(db, ids).await?;
        }
        // With these locks, other changes to the contacts come either before or after this transaction.
        for (company, ids) in group_by_company(self.contacts.keys().copied()) {
            contacts::lock_rows(&mut *db, company, &ids).await.map_err(as_sqlx)?;
        }
        previous.contacts = self.load_contacts(db).await?;
        Ok(previous)
    }

    /// The current state of the contacts that may change.
    async fn load_contacts(&self, db: &mut PgConnection) -> sqlx::Result<HashMap<(CompanyId, ContactId), ContactRow>> {
        let mut found = HashMap::new();
        for (company, ids) in group_by_company(self.contacts.keys().copied()) {
            let rows = contacts::find_all(&mut *db, company, &ids).await.map_err(as_sqlx)?;
            found.extend(rows.into_iter().map(|row| ((company, row.id), row)));
        }
        Ok(found)
    }

    /// Appends the events of the written rows, and returns the last event of each company. This is the last step of
    /// the transaction.
    pub(super) async fn write(
        &self,
        db: &mut PgConnection,
        previous_rows: &PreviousRows,
        FlushOutcome { in_parts, refusals, changed_messages }: FlushOutcome<'_>,
    ) -> sqlx::Result<Vec<(CompanyId, LoggedEventId)>> {
        let mut events: Vec<(CompanyId, BatchIndex, NewEvent)> = Vec::new();
        self.add_row_events(db, refusals, &mut events).await?;
        self.add_status_events(changed_messages, &mut events);
        self.add_revision_events(db, previous_rows, changed_messages, &mut events).await?;
        self.add_session_events(db, previous_rows, in_parts, &mut events).await?;
        self.add_schedule_events(db, previous_rows, refusals, &mut events).await?;
        if !self.contacts.is_empty() {
            for ((company, id), after) in self.load_contacts(db).await? {
                let Some((index, at)) = self.contacts.get(&(company, id)).copied() else { continue };
                let previous =
                    previous_rows.contacts.get(&(company, id)).and_then(|before| changed_fields(before, &after));
                let Some(previous) = previous else { continue };
                let Ok(contact) = RecordSnapshot::of(id, &after) else { continue };
                let record = Record::Contact(contact);
                let by = Some(By::contact(id, Some(after.name.clone())));
                let event = NewEvent { kind: EventKind::ContactUpdated, at, record, previous: Some(previous), by };
                events.push((company, index, event));
            }
        }
        if events.is_empty() {
            return Ok(Vec::new());
        }
        // The events were collected kind by kind. The sort is stable: the events of one receipt stay in message order.
        events.sort_by_key(|(company, index, _)| (*company, *index));
        let mut companies: Vec<(CompanyId, Vec<NewEvent>)> = Vec::new();
        for (company, _, event) in events {
            match companies.last_mut() {
                Some((last, events)) if *last == company => events.push(event),
                _ => companies.push((company, vec![event])),
            }
        }
        events::append(db, &companies).await
    }
}

fn changed_fields(before: &ContactRow, after: &ContactRow) -> Option<Value> {
    events::previous_values(&contacts::without_last_channel(before), &contacts::without_last_channel(after))
}
