//! What entries tell: the events of the log that are of live rows. Derived from an entry as a whole, like the figures, and
//! from what the tables make of it where only they know: a status that moves forward, a session that is new.

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
use crate::tables::events::{self, EventKind, Record, ShownThen, Told};
use crate::tables::messages::{MessageRow, MessageStatus, Moved};
use crate::tables::schedules::{self, ScheduleRow};
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::tables::webchat_sessions::{self, SessionRow, SessionStatus};
use crate::{Change, CompanyId, ContactId, LoggedEventId, MessageId, ScheduleId, SessionId, TicketId};

/// Where in its batch something happened.
type Place = usize;

/// What is told as soon as its own row is written.
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
    Message(&'a MessageRow),
}

/// That a message has come this far, which may be known already.
struct Milestone {
    place: Place,
    company: CompanyId,
    message: MessageId,
    status: MessageStatus,
    at: DateTime<Utc>,
}

/// What the entries of a batch tell.
#[derive(Default)]
pub(super) struct Telling<'a> {
    /// Changes that were looked at.
    places: Place,
    happened: Vec<Happened<'a>>,
    milestones: Vec<Milestone>,
    /// Marks of what has been delivered to or read by the contact of a ticket.
    marks: HashMap<(CompanyId, TicketId), (Place, DateTime<Utc>)>,
    /// Files of messages.
    files: HashMap<(CompanyId, MessageId), Place>,
    sessions: Vec<(Place, &'a SessionRow)>,
    schedules: Vec<(Place, &'a ScheduleRow)>,
    /// Contacts that may change.
    contacts: BTreeMap<(CompanyId, ContactId), (Place, DateTime<Utc>)>,
}

/// What the tables held of rows before they were written.
#[derive(Default)]
pub(super) struct Before {
    sessions: HashMap<(CompanyId, SessionId), SessionStatus>,
    schedules: HashMap<(CompanyId, ScheduleId), ScheduleRow>,
    contacts: HashMap<(CompanyId, ContactId), ContactRow>,
}

/// How the rows were written.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    /// Whether some of them may have been refused.
    pub(super) careful: bool,
    /// Those that were.
    pub(super) refused: &'a HashSet<Origin>,
    /// The messages that were moved on.
    pub(super) moved: &'a [Moved],
}

impl<'a> Telling<'a> {
    /// Adds what one entry tells. Every kind of change is here, with what it tells or why it tells nothing.
    pub(super) fn add(&mut self, entry: &'a [Change]) {
        for change in entry {
            let place = self.places;
            self.places += 1;
            match change {
                // What happened to it is an event beside it; its last message and what is unread follow from messages.
                Change::Ticket(_) => {}
                Change::Event(event) => {
                    // What a note says is in its message.
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
                    self.happens(place, row.company_id, row.created_at, Origin::of_message(row), What::Message(row));
                }
                Change::Media(row) => drop(self.files.insert((row.company_id, row.message_id), place)),
                Change::Progress(row) => self.milestones.push(Milestone {
                    place,
                    company: row.company_id,
                    message: row.message_id,
                    status: row.milestone.status(),
                    at: row.at,
                }),
                Change::Delivered(mark) | Change::Seen(mark) => {
                    self.marks.insert((mark.company_id, mark.ticket_id), (place, mark.at));
                }
                // The ticket's own event tells that it was read.
                Change::Read(_) => {}
                Change::Session(row) => self.sessions.push((place, row)),
                // Whoever was talked to, and where, the message's event tells.
                Change::ContactChannel(_) => {}
                Change::Referral(row) => drop(self.contacts.insert((row.company_id, row.contact_id), (place, row.at))),
                Change::OptOut(row) => drop(self.contacts.insert((row.company_id, row.contact_id), (place, row.at))),
                Change::Schedule(row) => self.schedules.push((place, row)),
                // What becomes of a recipient becomes of their message; the campaign tells when it is completed.
                Change::Recipient(_) => {}
                // It is what was answered, of which the other changes tell.
                Change::Answer(_) => {}
            }
        }
    }

    fn happens(&mut self, place: Place, company: CompanyId, at: DateTime<Utc>, origin: Origin, what: What<'a>) {
        self.happened.push(Happened { place, company, at, origin, what });
    }

    /// Looks at what is there of rows that are about to be written.
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

    /// The contacts that may change, as they are now.
    async fn changing(&self, db: &mut PgConnection) -> sqlx::Result<HashMap<(CompanyId, ContactId), ContactRow>> {
        let mut found = HashMap::new();
        for (company, ids) in by_company(self.contacts.keys().copied()) {
            let rows = contacts::find_all(&mut *db, company, &ids).await.map_err(as_sqlx)?;
            found.extend(rows.into_iter().map(|row| ((company, row.id), row)));
        }
        Ok(found)
    }

    /// Writes what is told of what was written, and answers the last event of each company. The last thing of the
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
                let event = Told { kind: EventKind::ContactUpdated, at, record, previous: Some(previous) };
                told.push((company, place, event));
            }
        }
        if told.is_empty() {
            return Ok(Vec::new());
        }
        // In the order in which it happened, whoever had to be asked; of one mark, in the order of its messages.
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
