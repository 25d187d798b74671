//! Derives the events of live rows from entries. Like the figures, an entry is evaluated as a whole. Some facts are
//! known only to the tables, and are queried: whether a status advanced, whether a session is new.

mod happened;
mod moved;
mod people;
mod scheduled;
mod sessions;

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;

use self::people::{as_sqlx, by_company};
use super::facts::Origin;
use super::kinds::Kind;
use crate::tables::contacts::{self, ContactRow};
use crate::tables::events::{self, By, EventKind, Record, ShownThen, Told};
use crate::tables::messages::{MessageRow, MessageStatus, Moved};
use crate::tables::schedules::{self, ScheduleRow};
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::{self, SessionRow, SessionStatus};
use crate::{Change, CompanyId, ContactId, LoggedEventId, MessageId, ScheduleId, SessionId, TicketId};

/// The position of a change in its batch.
type Place = usize;

/// An event that depends only on its own row.
struct Happened<'a> {
    place: Place,
    company: CompanyId,
    at: DateTime<Utc>,
    origin: Origin,
    what: What<'a>,
}

enum What<'a> {
    /// The event, and the ticket right after it.
    Ticket(&'a EventRow, &'a TicketRow),
    /// The message, and its ticket right after it.
    Message(&'a MessageRow, Option<&'a TicketRow>),
}

/// A message reached this status; that may be known already.
struct Milestone {
    place: Place,
    company: CompanyId,
    message: MessageId,
    status: MessageStatus,
    at: DateTime<Utc>,
}

/// The events of a batch.
#[derive(Default)]
pub(super) struct Telling<'a> {
    /// Number of changes processed.
    places: Place,
    happened: Vec<Happened<'a>>,
    milestones: Vec<Milestone>,
    /// Tickets whose messages were marked as delivered to or read by the contact.
    marks: HashMap<(CompanyId, TicketId), (Place, DateTime<Utc>)>,
    /// Files of messages, and whether there is none.
    files: HashMap<(CompanyId, MessageId), (Place, bool)>,
    sessions: Vec<(Place, &'a SessionRow)>,
    schedules: Vec<(Place, &'a ScheduleRow)>,
    /// Contacts that may change.
    contacts: BTreeMap<(CompanyId, ContactId), (Place, DateTime<Utc>)>,
}

/// State of rows before they are written.
#[derive(Default)]
pub(super) struct Before {
    sessions: HashMap<(CompanyId, SessionId), SessionStatus>,
    schedules: HashMap<(CompanyId, ScheduleId), ScheduleRow>,
    contacts: HashMap<(CompanyId, ContactId), ContactRow>,
}

/// The outcome of writing the rows.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    /// Whether some may have been refused.
    pub(super) careful: bool,
    /// The refused ones.
    pub(super) refused: &'a HashSet<Origin>,
    /// The messages whose status advanced.
    pub(super) moved: &'a [Moved],
}

impl<'a> Telling<'a> {
    /// Adds the events of one entry. Every kind of change is listed, with its events or the reason why it has none.
    pub(super) fn add(&mut self, entry: &'a [Change]) {
        for change in entry {
            let place = self.places;
            self.places += 1;
            match change {
                // A separate event change covers it; its last message and unread count follow from the messages.
                Change::Ticket(_) => {}
                Change::Event(event) => {
                    // A note's text is in its message.
                    let ticket = entry.iter().rev().find_map(|change| match change {
                        Change::Ticket(row) if row.id == event.ticket_id => Some(row),
                        _ => None,
                    });
                    if let Some(ticket) = ticket.filter(|_| event.kind != EventType::NoteAdded) {
                        let origin = Origin { kind: EventRow::NAME, company: event.company_id, id: event.id.0 };
                        self.happens(place, event.company_id, event.created_at, origin, What::Ticket(event, ticket));
                    }
                }
                Change::Message(row) => {
                    let ticket = entry.iter().rev().find_map(|change| match change {
                        Change::Ticket(ticket) if ticket.id == row.ticket_id => Some(ticket),
                        _ => None,
                    });
                    let what = What::Message(row, ticket);
                    self.happens(place, row.company_id, row.created_at, Origin::of_message(row), what);
                }
                Change::Media(row) => {
                    self.files.insert((row.company_id, row.message_id), (place, row.media.is_none()));
                }
                Change::Progress(row) => self.milestones.push(Milestone {
                    place,
                    company: row.company_id,
                    message: row.message_id,
                    status: row.milestone.status(),
                    // A provider's clock is shown on the message; the event has Hotline's.
                    at: row.noted_at.unwrap_or(row.at),
                }),
                Change::Delivered(mark) | Change::Seen(mark) => {
                    self.marks.insert((mark.company_id, mark.ticket_id), (place, mark.at));
                }
                // The ticket's own event covers reading.
                Change::Read(_) => {}
                Change::Session(row) => self.sessions.push((place, row)),
                // The event of the message covers it.
                Change::ContactChannel(_) => {}
                Change::Referral(row) => drop(self.contacts.insert((row.company_id, row.contact_id), (place, row.at))),
                Change::OptOut(row) => drop(self.contacts.insert((row.company_id, row.contact_id), (place, row.at))),
                Change::Schedule(row) => self.schedules.push((place, row)),
                // The recipient's status follows from the message; the campaign has its own event on completion.
                Change::Recipient(_) => {}
                // It is a recorded answer; the other changes of the entry have the events.
                Change::Answer(_) => {}
            }
        }
    }

    fn happens(&mut self, place: Place, company: CompanyId, at: DateTime<Utc>, origin: Origin, what: What<'a>) {
        self.happened.push(Happened { place, company, at, origin, what });
    }

    /// Reads the current state of rows that are about to be written.
    pub(super) async fn before(&self, db: &mut PgConnection) -> sqlx::Result<Before> {
        let mut before = Before::default();
        if !self.sessions.is_empty() {
            let ids = self.sessions.iter().map(|(_, row)| (row.company_id, row.id.clone()));
            before.sessions = webchat_sessions::statuses(db, ids).await?;
        }
        if !self.schedules.is_empty() {
            let ids = self.schedules.iter().map(|(_, row)| (row.company_id, row.id));
            before.schedules = schedules::find_all(db, ids).await?;
        }
        before.contacts = self.changing(db).await?;
        Ok(before)
    }

    /// The current state of the contacts that may change.
    async fn changing(&self, db: &mut PgConnection) -> sqlx::Result<HashMap<(CompanyId, ContactId), ContactRow>> {
        let mut found = HashMap::new();
        for (company, ids) in by_company(self.contacts.keys().copied()) {
            let rows = contacts::find_all(&mut *db, company, &ids).await.map_err(as_sqlx)?;
            found.extend(rows.into_iter().map(|row| ((company, row.id), row)));
        }
        Ok(found)
    }

    /// Appends the events of the written rows, and returns the last event of each company. It is the last step of the
    /// transaction.
    pub(super) async fn write(
        &self,
        db: &mut PgConnection,
        before: &Before,
        Written { careful, refused, moved }: Written<'_>,
    ) -> sqlx::Result<Vec<(CompanyId, LoggedEventId)>> {
        let mut told: Vec<(CompanyId, Place, Told)> = Vec::new();
        self.tell_happened(db, refused, &mut told).await?;
        self.tell_moved(moved, &mut told);
        self.tell_sessions(db, before, careful, &mut told).await?;
        self.tell_schedules(db, before, refused, &mut told).await?;
        if !self.contacts.is_empty() {
            for ((company, id), after) in self.changing(db).await? {
                let Some((place, at)) = self.contacts.get(&(company, id)).copied() else { continue };
                let previous = before.contacts.get(&(company, id)).and_then(|before| changed(before, &after));
                let Some(previous) = previous else { continue };
                let Ok(shown) = ShownThen::of(id, &after) else { continue };
                let record = Record::Contact(shown);
                let by = Some(By::contact(id, Some(after.name.clone())));
                let event = Told { kind: EventKind::ContactUpdated, at, record, previous: Some(previous), by };
                told.push((company, place, event));
            }
        }
        if told.is_empty() {
            return Ok(Vec::new());
        }
        // Sort by position in the batch, because the events were collected kind by kind; the sort is stable, so the
        // events of one mark stay in message order.
        told.sort_by_key(|(company, place, _)| (*company, *place));
        let mut together: Vec<(CompanyId, Vec<Told>)> = Vec::new();
        for (company, _, event) in told {
            match together.last_mut() {
                Some((last, events)) if *last == company => events.push(event),
                _ => together.push((company, vec![event])),
            }
        }
        events::append(db, &together).await
    }
}

fn changed(before: &ContactRow, after: &ContactRow) -> Option<Value> {
    let shown = |row| serde_json::to_value(row).unwrap_or_default();
    events::previous(&shown(before), &shown(after))
}
