//! What entries tell: the events of the log that are of live rows. Derived from an entry as a whole, like the figures, and
//! from what the tables make of it where only they know: a status that moves forward, a session that is new.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;

use super::facts::Origin;
use super::kinds::Kind;
use crate::document;
use crate::tables::contacts::{self, ContactRef, ContactRow};
use crate::tables::events::{
    self, EventKind, MessageThen, PersonThen, Record, SaidLast, ScheduleThen, SessionThen, ShownThen, TicketThen, Told,
};
use crate::tables::messages::{Direction, MessageRow, MessageStatus, Moved, MovedBy};
use crate::tables::schedules::{self, ScheduleRow, ScheduleStatus};
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

    async fn tell_happened(
        &self,
        db: &mut PgConnection,
        refused: &HashSet<Origin>,
        told: &mut Vec<(CompanyId, Place, Told)>,
    ) -> sqlx::Result<()> {
        let stands = |happened: &&Happened<'_>| !refused.contains(&happened.origin);
        let happened: Vec<&Happened<'_>> = self.happened.iter().filter(stands).collect();
        let tickets: Vec<&TicketRow> = happened
            .iter()
            .filter_map(|happened| match happened.what {
                What::Ticket(_, ticket) => Some(ticket),
                _ => None,
            })
            .collect();
        let people = people(db, tickets.iter().map(|row| (row.company_id, row.contact_id))).await?;
        let said = said_last(db, &tickets).await?;
        for Happened { place, company, at, what, .. } in happened {
            let (kind, record, previous) = match what {
                What::Ticket(event, row) => {
                    let Some(kind) = kind_of(event) else { continue };
                    let ticket = TicketThen {
                        row: (*row).clone(),
                        contact: people.get(&(*company, row.contact_id)).cloned(),
                        last_message: row.last_message_id.and_then(|id| said.get(&(*company, id)).cloned()),
                    };
                    (kind, Record::Ticket(Box::new(ticket)), changed_of(event))
                }
                What::Message(row) => {
                    let kind = match row.direction {
                        Direction::Inbound => EventKind::MessageReceived,
                        Direction::Outbound => EventKind::MessageCreated,
                        Direction::Internal => EventKind::NoteAdded,
                    };
                    let message = MessageThen { id: row.id, ticket_id: row.ticket_id, status: row.status };
                    (kind, Record::Message(message), None)
                }
            };
            told.push((*company, *place, Told { kind, at: *at, record, previous }));
        }
        Ok(())
    }

    /// What has moved messages on: each milestone that was new to its message, and none that was not.
    fn tell_moved(&self, moved: &[Moved], told: &mut Vec<(CompanyId, Place, Told)>) {
        let of = |by| moved.iter().filter(move |moved| moved.by == by);
        let mut tell = |place, at, was: MessageStatus, status: MessageStatus, moved: &Moved| {
            let kind = match status {
                MessageStatus::Sent => EventKind::MessageSent,
                MessageStatus::Delivered => EventKind::MessageDelivered,
                MessageStatus::Read => EventKind::MessageRead,
                MessageStatus::Failed => EventKind::MessageFailed,
                MessageStatus::Queued | MessageStatus::Received => return,
            };
            let record = Record::Message(MessageThen { id: moved.id, ticket_id: moved.ticket, status });
            let previous = Some(json!({"status": was}));
            told.push((moved.company, place, Told { kind, at, record, previous }));
        };
        // How far each has come that was told of by itself, first before this batch, then step by step.
        let mut reached: HashMap<(CompanyId, MessageId), (MessageStatus, &Moved)> =
            of(MovedBy::Progress).map(|moved| ((moved.company, moved.id), (moved.was, moved))).collect();
        for Milestone { place, company, message, status, at } in &self.milestones {
            let Some((was, moved)) = reached.get_mut(&(*company, *message)) else { continue };
            // What has failed had been sent at most; else it has been wherever is before where it is.
            let is_on_the_way = match moved.status {
                MessageStatus::Failed => matches!(status, MessageStatus::Sent | MessageStatus::Failed),
                reached => status.rank() <= reached.rank(),
            };
            if is_on_the_way && status.rank() > was.rank() {
                tell(*place, *at, *was, *status, moved);
                *was = *status;
            }
        }
        let mut marked: Vec<&Moved> = of(MovedBy::Mark).collect();
        marked.sort_by_key(|moved| (moved.company, moved.ticket, moved.id, moved.status.rank()));
        for moved in marked {
            let Some((place, at)) = self.marks.get(&(moved.company, moved.ticket)) else { continue };
            tell(*place, *at, moved.was, moved.status, moved);
        }
        for Moved { company, id, ticket, status, .. } in of(MovedBy::File).copied() {
            let Some(place) = self.files.get(&(company, id)) else { continue };
            let record = Record::Message(MessageThen { id, ticket_id: ticket, status });
            let previous = Some(json!({"media": null}));
            let event = Told { kind: EventKind::MessageUpdated, at: Utc::now(), record, previous };
            told.push((company, *place, event));
        }
    }

    async fn tell_sessions(
        &self,
        db: &mut PgConnection,
        before: &Before,
        careful: bool,
        told: &mut Vec<(CompanyId, Place, Told)>,
    ) -> sqlx::Result<()> {
        let mut sessions = self.sessions.clone();
        if careful && !sessions.is_empty() {
            let ids = sessions.iter().map(|(_, row)| (row.company_id, row.id.clone()));
            let written = webchat_sessions::statuses(&mut *db, ids).await?;
            sessions.retain(|(_, row)| written.contains_key(&(row.company_id, row.id.clone())));
        }
        let mut known: HashMap<(CompanyId, SessionId), SessionStatus> = HashMap::new();
        let mut happened = Vec::new();
        for (place, row) in &sessions {
            let key = (row.company_id, row.id.clone());
            let was = known.get(&key).or_else(|| before.sessions.get(&key)).copied();
            known.insert(key, row.status);
            let kind = match (was, row.status) {
                (None, SessionStatus::Active) => EventKind::SessionStarted,
                (None | Some(SessionStatus::Active), SessionStatus::Ended) => EventKind::SessionEnded,
                _ => continue,
            };
            happened.push((*place, kind, was, *row));
        }
        if happened.is_empty() {
            return Ok(());
        }
        let mut of = HashMap::new();
        for (company, ids) in by_company(happened.iter().map(|(_, _, _, row)| (row.company_id, row.contact_id))) {
            let rows = contacts::find_all(&mut *db, company, &ids).await.map_err(as_sqlx)?;
            of.extend(rows.into_iter().map(|row| ((company, row.id), row)));
        }
        for (place, kind, was, row) in happened {
            let contact =
                of.get(&(row.company_id, row.contact_id)).and_then(|contact| serde_json::to_value(contact).ok());
            let row = SessionRow { token_hash: Vec::new(), token_hashes: Vec::new(), ..row.clone() };
            let (company, at) = (row.company_id, row.ended_at.unwrap_or(row.created_at));
            let previous = was.map(|was| json!({"status": was, "endedAt": null}));
            let record = Record::Session(Box::new(SessionThen { row, contact }));
            told.push((company, place, Told { kind, at, record, previous }));
        }
        Ok(())
    }

    async fn tell_schedules(
        &self,
        db: &mut PgConnection,
        before: &Before,
        refused: &HashSet<Origin>,
        told: &mut Vec<(CompanyId, Place, Told)>,
    ) -> sqlx::Result<()> {
        if self.schedules.is_empty() {
            return Ok(());
        }
        let people = people(db, self.schedules.iter().map(|(_, row)| (row.company_id, row.contact_id))).await?;
        let mut known: HashMap<(CompanyId, ScheduleId), &ScheduleRow> = HashMap::new();
        for (place, row) in &self.schedules {
            let key = (row.company_id, row.id);
            let origin = Origin { kind: ScheduleRow::NAME, company: row.company_id, id: row.id.0 };
            // What is over is written whatever of it is refused.
            if row.status == ScheduleStatus::Pending && refused.contains(&origin) {
                continue;
            }
            let was = known.get(&key).copied().or_else(|| before.schedules.get(&key));
            let previous = was.and_then(|was| changed_schedule(was, row));
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
                // What is over does not wait again.
                (Some(_), ScheduleStatus::Pending) => continue,
            };
            known.insert(key, row);
            let contact = people.get(&(row.company_id, row.contact_id)).cloned();
            let record = Record::Schedule(Box::new(ScheduleThen { row: (*row).clone(), contact }));
            told.push((row.company_id, *place, Told { kind, at: row.updated_at, record, previous }));
        }
        Ok(())
    }
}

/// What an event of a ticket is called in the log.
fn kind_of(event: &EventRow) -> Option<EventKind> {
    Some(match event.kind {
        EventType::Opened => EventKind::TicketOpened,
        EventType::Closed => EventKind::TicketClosed,
        EventType::Reopened => EventKind::TicketReopened,
        EventType::WrapupChanged => EventKind::TicketWrapupChanged,
        EventType::Read => EventKind::TicketRead,
        EventType::Transferred => {
            let queue = |side: Option<&Value>| side.and_then(|side| side.get("queue")).cloned();
            let moves = queue(event.from.as_ref()) != queue(event.to.as_ref());
            if moves { EventKind::TicketTransferred } else { EventKind::TicketAssigned }
        }
        EventType::NoteAdded => return None,
    })
}

/// Of what an event of a ticket says of before, what is not so any more.
fn changed_of(event: &EventRow) -> Option<Value> {
    let Some(Value::Object(from)) = &event.from else { return None };
    let after = |field: &String| event.to.as_ref().and_then(|to| to.get(field));
    let changed: Map<_, _> =
        from.iter().filter(|(field, was)| after(field) != Some(was)).map(|(f, w)| (f.clone(), w.clone())).collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}

fn changed(before: &ContactRow, after: &ContactRow) -> Option<Value> {
    let shown = |row| serde_json::to_value(row).unwrap_or_default();
    events::previous(&shown(before), &shown(after))
}

/// What of a scheduled message was otherwise.
fn changed_schedule(was: &ScheduleRow, is: &ScheduleRow) -> Option<Value> {
    let shown = |row: &ScheduleRow| {
        json!({
            "contact": {"id": row.contact_id}, "channelId": row.channel_id, "body": row.body, "queueId": row.queue_id,
            "sendAt": crate::Timestamp(row.send_at), "status": row.status, "messageId": row.message_id,
            "error": row.error,
        })
    };
    events::previous(&shown(was), &shown(is))
}

fn by_company<I: Ord>(ids: impl Iterator<Item = (CompanyId, I)>) -> BTreeMap<CompanyId, Vec<I>> {
    let mut companies: BTreeMap<CompanyId, Vec<I>> = BTreeMap::new();
    for (company, id) in ids {
        companies.entry(company).or_default().push(id);
    }
    for ids in companies.values_mut() {
        ids.sort_unstable();
        ids.dedup();
    }
    companies
}

/// Contacts, as tickets and scheduled messages show them.
async fn people(
    db: &mut PgConnection,
    ids: impl Iterator<Item = (CompanyId, ContactId)>,
) -> sqlx::Result<HashMap<(CompanyId, ContactId), PersonThen>> {
    let mut found = HashMap::new();
    let (companies, ids): (Vec<_>, Vec<_>) = ids.collect::<HashSet<_>>().into_iter().unzip();
    if ids.is_empty() {
        return Ok(found);
    }
    let rows = sqlx::query(
        "select c.company_id, c.id, c.name, c.number, c.verified
         from unnest($1::bigint[], $2::bigint[]) as x (company, contact)
         join contacts c on c.company_id = x.company and c.id = x.contact",
    );
    for row in rows.bind(companies).bind(ids).fetch_all(db).await? {
        let company: CompanyId = sqlx::Row::try_get(&row, "company_id")?;
        let contact: ContactRef = document::read(&row)?;
        let person = PersonThen { name: contact.name, number: contact.number, verified: contact.verified };
        found.insert((company, contact.id), person);
    }
    Ok(found)
}

/// The last messages of tickets, as those show them.
async fn said_last(
    db: &mut PgConnection,
    tickets: &[&TicketRow],
) -> sqlx::Result<HashMap<(CompanyId, MessageId), SaidLast>> {
    let ids: HashSet<_> = tickets.iter().filter_map(|row| Some((row.company_id, row.last_message_id?))).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let (companies, ids): (Vec<_>, Vec<_>) = ids.into_iter().unzip();
    type Said = (CompanyId, MessageId, Option<String>, String, DateTime<Utc>);
    let rows: Vec<Said> = sqlx::query_as(
        "select m.company_id, m.id, m.body, m.direction, m.created_at
         from unnest($1::bigint[], $2::bigint[]) as x (company, message)
         join messages m on m.company_id = x.company and m.id = x.message",
    )
    .bind(companies)
    .bind(ids)
    .fetch_all(db)
    .await?;
    let said = |(company, id, body, direction, created_at): Said| {
        Some(((company, id), SaidLast { body, direction: direction.parse().ok()?, created_at }))
    };
    Ok(rows.into_iter().filter_map(said).collect())
}

/// What a statement of another table says, where the writer sorts it by what it is of PostgreSQL's.
fn as_sqlx(error: crate::Error) -> sqlx::Error {
    match error {
        crate::Error::Database(error) => error,
        other => sqlx::Error::Protocol(other.to_string()),
    }
}
