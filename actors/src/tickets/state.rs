//! What a ticket's actor holds: the row, and what answers need beside it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::messages::Direction;
use hotline_persistence::tables::tickets::{LoadedTicket, TicketRow, TicketStatus};

/// A ticket in memory. Cheap to clone: commands work on a copy, which takes the original's place when they succeed.
#[derive(Clone, Debug, PartialEq)]
pub struct Ticket {
    /// The row as it is, or will be, stored.
    pub row: TicketRow,
    /// Whom the conversation is with.
    pub contact: Arc<ContactRef>,
    /// What was said last, either way; notes are not said.
    pub last_message: Option<Arc<LastMessage>>,
    /// Whether the contact is known to have talked on this channel, so that a channel without phone reaches them.
    pub reachable: bool,
    /// How far its messages are known to have come; what is not known here is known in the tables.
    pub reached: Reached,
}

/// Up to which of the company's messages the contact has come. Not stored with the ticket: the messages hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The newest that has arrived.
    pub delivered: Option<MessageId>,
    /// The newest they have read.
    pub seen: Option<MessageId>,
}

/// The end of a conversation, as lists show it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LastMessage {
    pub id: MessageId,
    pub body: Option<String>,
    pub direction: Direction,
    pub created_at: DateTime<Utc>,
}

impl Ticket {
    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.row.status == TicketStatus::Open
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        !self.is_open()
    }

    /// From the tables.
    pub fn loaded(loaded: LoadedTicket, reachable: bool) -> Self {
        let last_message =
            match (loaded.ticket.last_message_id, loaded.last_message_direction, loaded.last_message_created_at) {
                (Some(id), Some(direction), Some(created_at)) => {
                    Some(Arc::new(LastMessage { id, body: loaded.last_message_body, direction, created_at }))
                }
                _ => None,
            };
        let contact =
            ContactRef { id: loaded.ticket.contact_id, name: loaded.contact_name, number: loaded.contact_number };
        Self { row: loaded.ticket, contact: Arc::new(contact), last_message, reachable, reached: Reached::default() }
    }
}
