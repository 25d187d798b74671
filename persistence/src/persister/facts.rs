//! Derives report figures from entries. An entry is evaluated as a whole: an event of a ticket counts for the queue and
//! user that the ticket had right after it.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::kinds::Kind;
use crate::tables::messages::{DeliveryStatus, DeliveryStatusRow, Direction, FailedMessage, MessageRow, MessageStatus};
use crate::tables::reports::{
    Counts, MessageCell, MessageCounts, TicketCell, TicketCounts, WrapupCell, start_of_quarter_hour,
};
use crate::tables::ticket_events::{EventRow, EventType};
use crate::tables::tickets::TicketRow;
use crate::{Change, CompanyId, MessageId, QueueId, TicketId, UserId, WrapupTypeId};

/// The row a fact is derived from. If PostgreSQL refused that row, the fact is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SourceRow {
    pub(super) kind: &'static str,
    pub(super) company: CompanyId,
    pub(super) id: i64,
}

impl SourceRow {
    /// The row of a message.
    pub(super) fn of_message(row: &MessageRow) -> Self {
        Self { kind: MessageRow::NAME, company: row.company_id, id: row.id.0 }
    }
}

/// One contribution to the figures: a cell, and what is added to it.
enum Fact {
    Ticket(TicketCell, TicketCounts),
    Message(MessageCell, MessageCounts),
    Wrapup(WrapupCell, i64),
}

/// The contributions of a batch.
#[derive(Default)]
pub(super) struct Facts {
    facts: Vec<(SourceRow, Fact)>,
    /// Messages reported as failed. Only the table knows which of them had not failed before.
    possibly_failed: Vec<(CompanyId, MessageId)>,
}

impl Facts {
    /// Adds the contributions of one entry.
    pub(super) fn add(&mut self, entry: &[Change]) {
        for change in entry {
            match change {
                Change::Event(event) => {
                    if let Some(ticket) = ticket_of(entry, |row| row.id == event.ticket_id) {
                        self.add_event(event, ticket, next_transfer(entry, event));
                    }
                }
                Change::Message(message) => {
                    self.add_message(message);
                    // A webchat message counts as sent in its own entry, so it may answer the ticket there.
                    if let Some(ticket) = ticket_of(entry, |row| row.answer_id == Some(message.id)) {
                        self.add_answer(SourceRow::of_message(message), ticket, first_transfer(entry, ticket.id));
                    }
                }
                Change::Progress(row) if matches!(row.delivery_status, DeliveryStatus::Failed(_)) => {
                    self.possibly_failed.push((row.company_id, row.message_id));
                }
                // The first status of a message answers its ticket; entries of later statuses do not contain the
                // ticket.
                Change::Progress(row) => {
                    if let Some(ticket) = ticket_of(entry, |ticket| ticket.answer_id == Some(row.message_id)) {
                        let source_row =
                            SourceRow { kind: DeliveryStatusRow::NAME, company: row.company_id, id: row.message_id.0 };
                        self.add_answer(source_row, ticket, first_transfer(entry, ticket.id));
                    }
                }
                _ => {}
            }
        }
    }

    /// Messages that this batch may move to failed.
    pub(super) fn possibly_failed(&self) -> &[(CompanyId, MessageId)] {
        &self.possibly_failed
    }

    /// Sums up the facts, except those derived from rows in `refusals`, and adds the messages that have just failed.
    pub(super) fn sum(&self, refusals: &HashSet<SourceRow>, failed: &[FailedMessage]) -> Counts {
        let mut counts = Counts::default();
        for (source_row, fact) in &self.facts {
            if refusals.contains(source_row) {
                continue;
            }
            match fact {
                Fact::Ticket(cell, increment) => *counts.tickets.entry(*cell).or_default() += *increment,
                Fact::Message(cell, increment) => *counts.messages.entry(*cell).or_default() += *increment,
                Fact::Wrapup(cell, increment) => *counts.wrapups.entry(*cell).or_default() += increment,
            }
        }
        for message in failed {
            let cell = MessageCell {
                company: message.company_id,
                at: start_of_quarter_hour(message.created_at),
                channel: message.channel_id,
                user: message.user_id,
                kind: message.kind,
            };
            counts.messages.entry(cell).or_default().failed += 1;
        }
        counts
    }

    /// Counts an event. `later_transfer` is the event that next transferred the ticket in the same entry.
    fn add_event(&mut self, event: &EventRow, ticket: &TicketRow, later_transfer: Option<&EventRow>) {
        let source_row = SourceRow { kind: EventRow::NAME, company: event.company_id, id: event.id.0 };
        let counts = match event.kind {
            EventType::Opened => TicketCounts { opened: 1, ..TicketCounts::default() },
            EventType::Reopened => TicketCounts { reopened: 1, ..TicketCounts::default() },
            EventType::Closed => {
                self.add_wrapup(source_row, ticket, ticket.wrapup_type_id.map(|id| id.0), 1);
                let resolution_ms = milliseconds(ticket.opened_at, event.created_at);
                TicketCounts { closed: 1, resolution_ms, ..TicketCounts::default() }
            }
            EventType::WrapupChanged => {
                self.add_wrapup(source_row, ticket, id_in(event.from.as_ref(), "wrapupType"), -1);
                self.add_wrapup(source_row, ticket, id_in(event.to.as_ref(), "wrapupType"), 1);
                return;
            }
            EventType::Transferred | EventType::NoteAdded | EventType::Read | EventType::Merged => return,
        };
        let cell = cell_before(cell_of(ticket, event.created_at), later_transfer);
        self.facts.push((source_row, Fact::Ticket(cell, counts)));
    }

    /// The wrap-up of a closed ticket counts at the time the ticket was closed.
    fn add_wrapup(&mut self, source_row: SourceRow, ticket: &TicketRow, wrapup_type: Option<i64>, increment: i64) {
        let (Some(wrapup_type), Some(closed_at)) = (wrapup_type, ticket.closed_at) else { return };
        let cell = WrapupCell {
            company: ticket.company_id,
            at: start_of_quarter_hour(closed_at),
            queue: ticket.queue_id,
            wrapup_type: WrapupTypeId::new(wrapup_type),
        };
        self.facts.push((source_row, Fact::Wrapup(cell, increment)));
    }

    fn add_message(&mut self, message: &MessageRow) {
        let mut counts = MessageCounts::default();
        match message.direction {
            Direction::Inbound => counts.inbound = 1,
            Direction::Outbound => counts.outbound = 1,
            Direction::Internal => return,
        }
        counts.failed = i64::from(message.status == MessageStatus::Failed);
        let cell = MessageCell {
            company: message.company_id,
            at: start_of_quarter_hour(message.created_at),
            channel: message.channel_id,
            user: message.user_id,
            kind: message.kind,
        };
        self.facts.push((SourceRow::of_message(message), Fact::Message(cell, counts)));
    }

    /// Counts the first answer of a ticket that a contact opened, for the queue and user before the entry. `transfer`
    /// is the first event that transferred the ticket in the same entry.
    fn add_answer(&mut self, source_row: SourceRow, ticket: &TicketRow, transfer: Option<&EventRow>) {
        let Some(at) = ticket.first_response_at else { return };
        let answer_ms = milliseconds(ticket.opened_at, at);
        let counts = TicketCounts { answered: 1, answer_ms, ..TicketCounts::default() };
        self.facts.push((source_row, Fact::Ticket(cell_before(cell_of(ticket, at), transfer), counts)));
    }
}

/// The last version of a matching ticket in the entry.
fn ticket_of(entry: &[Change], predicate: impl Fn(&TicketRow) -> bool) -> Option<&TicketRow> {
    entry.iter().rev().find_map(|change| match change {
        Change::Ticket(row) if predicate(row) => Some(row),
        _ => None,
    })
}

fn cell_of(ticket: &TicketRow, at: DateTime<Utc>) -> TicketCell {
    TicketCell {
        company: ticket.company_id,
        at: start_of_quarter_hour(at),
        queue: ticket.queue_id,
        channel: ticket.channel_id,
        user: ticket.user_id,
    }
}

/// The cell of the ticket before this transfer; `cell` itself without a transfer.
fn cell_before(cell: TicketCell, transfer: Option<&EventRow>) -> TicketCell {
    let Some(transfer) = transfer else { return cell };
    TicketCell {
        queue: id_in(transfer.from.as_ref(), "queue").map(QueueId::new),
        user: id_in(transfer.from.as_ref(), "assignedTo").map(UserId::new),
        ..cell
    }
}

fn milliseconds(from: DateTime<Utc>, to: DateTime<Utc>) -> i64 {
    (to - from).num_milliseconds().max(0)
}

/// The next transfer of the same ticket in the entry.
fn next_transfer<'a>(entry: &'a [Change], event: &EventRow) -> Option<&'a EventRow> {
    transfers(entry, event.ticket_id).filter(|next| next.id > event.id).min_by_key(|next| next.id)
}

/// The first transfer of a ticket in the entry.
fn first_transfer(entry: &[Change], ticket: TicketId) -> Option<&EventRow> {
    transfers(entry, ticket).min_by_key(|next| next.id)
}

fn transfers(entry: &[Change], ticket: TicketId) -> impl Iterator<Item = &EventRow> {
    entry.iter().filter_map(move |change| match change {
        Change::Event(next) if next.kind == EventType::Transferred && next.ticket_id == ticket => Some(next),
        _ => None,
    })
}

/// The id in a field of `from` or `to` of an event; `None` if it has none.
fn id_in(side: Option<&Value>, field: &str) -> Option<i64> {
    side?.get(field)?.get("id")?.as_i64()
}
