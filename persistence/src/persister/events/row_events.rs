//! Events that depend only on their own row, which is a ticket event or a message.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::PgConnection;

use super::embedded_contacts::embedded_contacts;
use super::{BatchIndex, EventCollector, EventSource, RowEvent};
use crate::persister::facts::SourceRow;
use crate::tables::events::{
    By, ContactSnapshot, EventKind, InboundSnapshot, LastMessageSnapshot, MessageSnapshot, NewEvent, Record,
    TicketSnapshot,
};
use crate::tables::messages::{Direction, MessageRow, MessageType};
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::{CompanyId, ContactId, MessageId};

impl EventCollector<'_> {
    /// Adds the events of the rows that PostgreSQL has not refused.
    pub(super) async fn add_row_events(
        &self,
        db: &mut PgConnection,
        refusals: &HashSet<SourceRow>,
        events: &mut Vec<(CompanyId, BatchIndex, NewEvent)>,
    ) -> sqlx::Result<()> {
        let is_written = |event: &&RowEvent<'_>| !refusals.contains(&event.source_row);
        let row_events: Vec<&RowEvent<'_>> = self.row_events.iter().filter(is_written).collect();
        let tickets: Vec<&TicketRow> = row_events
            .iter()
            .filter_map(|event| match event.source {
                EventSource::Ticket(_, ticket) => Some(ticket),
                _ => None,
            })
            .collect();
        let senders = row_events.iter().filter_map(|event| match event.source {
            EventSource::Message(row, _) if row.direction == Direction::Inbound => {
                Some((row.company_id, row.contact_id))
            }
            _ => None,
        });
        let contacts =
            embedded_contacts(db, tickets.iter().map(|row| (row.company_id, row.contact_id)).chain(senders)).await?;
        let embedded = EmbeddedRecords { contacts, last_messages: last_messages(db, &tickets).await? };
        for RowEvent { index, company, at, source, .. } in row_events {
            let event = match source {
                EventSource::Ticket(event, row) => embedded.ticket_event(event, row, *at),
                EventSource::Message(row, ticket) => Some(embedded.message_event(row, *ticket, *at)),
            };
            events.extend(event.map(|event| (*company, *index, event)));
        }
        Ok(())
    }
}

/// The records that are embedded in events.
struct EmbeddedRecords {
    contacts: HashMap<(CompanyId, ContactId), ContactSnapshot>,
    last_messages: HashMap<(CompanyId, MessageId), LastMessageSnapshot>,
}

impl EmbeddedRecords {
    /// `None`: no event is logged for the ticket event.
    fn ticket_event(&self, event: &EventRow, row: &TicketRow, at: DateTime<Utc>) -> Option<NewEvent> {
        let kind = logged_kind_of(event)?;
        let contact = self.contacts.get(&(event.company_id, row.contact_id));
        let by = By::author(
            (event.user_id, event.user_name.as_deref()),
            event.integration_id,
            event.source,
            (row.contact_id, contact.map(|contact| &*contact.name)),
        );
        let last_message = row.last_message_id.and_then(|id| self.last_messages.get(&(event.company_id, id)));
        let ticket = TicketSnapshot {
            row: row.clone(),
            contact: contact.cloned(),
            last_message: last_message.cloned(),
            merged_from: None,
        };
        let previous = event.was.clone().or_else(|| changed_fields(event));
        Some(NewEvent { kind, at, record: Record::Ticket(Box::new(ticket)), previous, by: Some(by) })
    }

    fn message_event(&self, row: &MessageRow, ticket: Option<&TicketRow>, at: DateTime<Utc>) -> NewEvent {
        let kind = match row.direction {
            Direction::Inbound => EventKind::MessageReceived,
            Direction::Outbound => EventKind::MessageCreated,
            Direction::Internal if row.kind == MessageType::System => EventKind::MessageCreated,
            Direction::Internal => EventKind::NoteAdded,
        };
        let contact_name = self.contacts.get(&(row.company_id, row.contact_id)).map(|contact| &*contact.name);
        let by = By::author(
            (row.user_id, row.user_name.as_deref()),
            row.integration_id,
            row.source,
            (row.contact_id, contact_name),
        );
        let is_inbound = row.direction == Direction::Inbound;
        let received = is_inbound.then(|| Box::new(inbound_snapshot(ticket, contact_name)));
        let (id, ticket_id, status) = (row.id, row.ticket_id, row.status);
        let (updated_at, reaction) = (None, None);
        let message = MessageSnapshot { id, ticket_id, status, received, updated_at, reaction };
        NewEvent { kind, at, record: Record::Message(message), previous: None, by: Some(by) }
    }
}

/// The ticket and the contact of an inbound message when it arrived.
fn inbound_snapshot(ticket: Option<&TicketRow>, contact_name: Option<&str>) -> InboundSnapshot {
    InboundSnapshot {
        status: ticket.map(|row| row.status),
        queue_id: ticket.and_then(|row| row.queue_id),
        user_id: ticket.and_then(|row| row.user_id),
        contact_name: contact_name.map(Box::from),
    }
}

/// The kind of the logged event for a ticket event; `None` if no event is logged for it.
fn logged_kind_of(event: &EventRow) -> Option<EventKind> {
    Some(match event.kind {
        EventType::Opened => EventKind::TicketOpened,
        EventType::Closed => EventKind::TicketClosed,
        EventType::Reopened => EventKind::TicketReopened,
        EventType::WrapupChanged => EventKind::TicketWrapupChanged,
        EventType::Read => EventKind::TicketRead,
        EventType::Transferred => {
            let queue = |side: Option<&Value>| side.and_then(|side| side.get("queue")).cloned();
            let queue_changed = queue(event.from.as_ref()) != queue(event.to.as_ref());
            if queue_changed { EventKind::TicketTransferred } else { EventKind::TicketAssigned }
        }
        // A note's event comes from its message. A merge is a transaction, which writes its event itself.
        EventType::NoteAdded | EventType::Merged => return None,
    })
}

/// The fields of `from` that differ in `to`, for entries of earlier releases, which have no `was`.
fn changed_fields(event: &EventRow) -> Option<Value> {
    let Some(Value::Object(from)) = &event.from else { return None };
    let after = |field: &String| event.to.as_ref().and_then(|to| to.get(field));
    let changed = from.iter().filter(|(field, was)| after(field) != Some(was));
    let changed: Map<_, _> = changed.map(|(field, was)| (field.clone(), was.clone())).collect();
    (!changed.is_empty()).then_some(Value::Object(changed))
}

/// The last messages of tickets, as embedded in them.
async fn last_messages(
    db: &mut PgConnection,
    tickets: &[&TicketRow],
) -> sqlx::Result<HashMap<(CompanyId, MessageId), LastMessageSnapshot>> {
    let ids: HashSet<_> = tickets.iter().filter_map(|row| Some((row.company_id, row.last_message_id?))).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let (companies, ids): (Vec<_>, Vec<_>) = ids.into_iter().unzip();
    type Row = (CompanyId, MessageId, Option<Box<str>>, String, DateTime<Utc>);
    let rows: Vec<Row> = sqlx::query_as(
        "select m.company_id, m.id, m.body, m.direction, m.created_at
         from unnest($1::bigint[], $2::bigint[]) as x (company, message)
         join messages m on m.company_id = x.company and m.id = x.message",
    )
    .bind(companies)
    .bind(ids)
    .fetch_all(db)
    .await?;
    let embed = |(company, id, body, direction, created_at): Row| {
        Some(((company, id), LastMessageSnapshot { body, direction: direction.parse().ok()?, created_at }))
    };
    Ok(rows.into_iter().filter_map(embed).collect())
}
