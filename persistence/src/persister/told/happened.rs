//! Events that are derived directly from written rows: ticket events and messages.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::people::people;
use super::{Happened, Place, Telling, What};
use crate::persister::facts::Origin;
use crate::tables::events::{EventKind, MessageThen, Record, SaidLast, TicketThen, Told};
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

/// The fields in `from` of a ticket event that have changed.
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
