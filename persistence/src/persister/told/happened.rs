//! Events that are derived directly from written rows: ticket events and messages.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::people::people;
use super::{Happened, Place, Telling, What};
use crate::persister::facts::Origin;
use crate::tables::events::{By, EventKind, MessageThen, ReceivedThen, Record, SaidLast, TicketThen, Told};
use crate::tables::messages::Direction;
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::{CompanyId, MessageId};

impl Telling<'_> {
    pub(super) async fn tell_happened(
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
        let said_by = happened.iter().filter_map(|happened| match happened.what {
            What::Message(row, _) if row.direction == Direction::Inbound => Some((row.company_id, row.contact_id)),
            _ => None,
        });
        let people = people(db, tickets.iter().map(|row| (row.company_id, row.contact_id)).chain(said_by)).await?;
        let said = said_last(db, &tickets).await?;
        for Happened { place, company, at, what, .. } in happened {
            let (kind, record, previous, by) = match what {
                What::Ticket(event, row) => {
                    let Some(kind) = kind_of(event) else { continue };
                    let contact = people.get(&(*company, row.contact_id)).map(|person| &*person.name);
                    let by = By::author(
                        (event.user_id, event.user_name.as_deref()),
                        event.integration_id,
                        event.source,
                        (row.contact_id, contact),
                    );
                    let ticket = TicketThen {
                        row: (*row).clone(),
                        contact: people.get(&(*company, row.contact_id)).cloned(),
                        last_message: row.last_message_id.and_then(|id| said.get(&(*company, id)).cloned()),
                    };
                    (kind, Record::Ticket(Box::new(ticket)), event.was.clone().or_else(|| changed_of(event)), by)
                }
                What::Message(row, ticket) => {
                    let kind = match row.direction {
                        Direction::Inbound => EventKind::MessageReceived,
                        Direction::Outbound => EventKind::MessageCreated,
                        Direction::Internal => EventKind::NoteAdded,
                    };
                    let contact = people.get(&(*company, row.contact_id)).map(|person| &*person.name);
                    let by = By::author(
                        (row.user_id, row.user_name.as_deref()),
                        row.integration_id,
                        row.source,
                        (row.contact_id, contact),
                    );
                    let received = (row.direction == Direction::Inbound).then(|| received(*ticket, contact));
                    let (id, ticket_id, status) = (row.id, row.ticket_id, row.status);
                    let received = received.map(Box::new);
                    let message = MessageThen { id, ticket_id, status, received, updated_at: None };
                    (kind, Record::Message(message), None, by)
                }
            };
            told.push((*company, *place, Told { kind, at: *at, record, previous, by: Some(by) }));
        }
        Ok(())
    }
}

/// Where a contact's message has come in.
fn received(ticket: Option<&TicketRow>, contact: Option<&str>) -> ReceivedThen {
    ReceivedThen {
        status: ticket.map(|row| row.status),
        queue_id: ticket.and_then(|row| row.queue_id),
        user_id: ticket.and_then(|row| row.user_id),
        contact_name: contact.map(Box::from),
    }
}

/// The kind of log event for a ticket event.
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

/// The fields in `from` of a ticket event that have changed: all that an entry of an earlier release tells.
fn changed_of(event: &EventRow) -> Option<Value> {
    let Some(Value::Object(from)) = &event.from else { return None };
    let after = |field: &String| event.to.as_ref().and_then(|to| to.get(field));
    let changed: Map<_, _> =
        from.iter().filter(|(field, was)| after(field) != Some(was)).map(|(f, w)| (f.clone(), w.clone())).collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}

/// The last messages of tickets, as the tickets show them.
async fn said_last(
    db: &mut PgConnection,
    tickets: &[&TicketRow],
) -> sqlx::Result<HashMap<(CompanyId, MessageId), SaidLast>> {
    let ids: HashSet<_> = tickets.iter().filter_map(|row| Some((row.company_id, row.last_message_id?))).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let (companies, ids): (Vec<_>, Vec<_>) = ids.into_iter().unzip();
    type Said = (CompanyId, MessageId, Option<Box<str>>, String, DateTime<Utc>);
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
