//! The state of a ticket's actor: the row, and what else replies and decisions need.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::messages::Direction;
use hotline_persistence::tables::source::Source;
use hotline_persistence::tables::tickets::{LoadedTicket, TicketRow, TicketStatus};

use super::follow_ups::{FollowUp, FollowUps};
use crate::contacts::LastInbound;

/// A ticket in memory. Cheap to clone: commands work on a copy, which takes the original's place when they succeed.
#[derive(Clone, Debug, PartialEq)]
pub struct Ticket {
    /// The row as it is stored, or will be.
    pub row: TicketRow,
    /// The contact of the conversation.
    pub contact: Arc<ContactRef>,
    /// The last message in either direction; notes do not count.
    pub last_message: Option<Arc<LastMessage>>,
    /// Whether the contact is known to have written on this channel. Only then does a channel without phone numbers
    /// reach them.
    pub reachable: bool,
    /// When the contact last wrote on this channel: a phone channel accepts anything but templates only for a while
    /// after that. A sender looks it up when it is not known here.
    pub last_inbound: LastInbound,
    /// Follow-up actions of messages that have no delivery status yet. Most tickets have none.
    pub follow_ups: Option<Box<FollowUps>>,
    /// The latest known delivery and read positions of its messages; the tables have those that are not set here.
    pub receipts: ReceiptPositions,
}

/// The company's last message that the contact has received, and the last one they have read. They are stored in the
/// messages' rows, not in the ticket's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiptPositions {
    /// The newest message that was delivered.
    pub delivered: Position,
    /// The newest message that the contact has read.
    pub seen: Position,
    /// Both are known only of the messages since this time; `None`: of all messages.
    pub since: Option<DateTime<Utc>>,
}

impl ReceiptPositions {
    /// The positions for a receipt of the messages since this time. The known positions are forgotten if they are of
    /// another span: what one session has received, another may not have shown.
    pub(crate) fn of_messages_since(&mut self, since: Option<DateTime<Utc>>) -> &mut Self {
        if self.since != since {
            *self = Self { since, ..Self::default() };
        }
        self
    }
}

/// A position among the messages of a ticket: that of a message, or 0, before all of them. An `Option` of an id would
/// take twice the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(i64);

impl From<MessageId> for Position {
    /// Ids begin at 1.
    fn from(message: MessageId) -> Self {
        Self(message.0)
    }
}

/// The last message of a conversation, as lists show it. Its id is in the ticket's row.
#[derive(Clone, Debug, PartialEq)]
pub struct LastMessage {
    /// Its text, if it has any.
    pub body: Option<Box<str>>,
    /// From or to the contact.
    pub direction: Direction,
    /// When it was received or written.
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

    /// When it was opened or its last message was written, whichever is later; of a closed ticket, when it was closed.
    pub fn last_activity_at(&self) -> DateTime<Utc> {
        let opened_at = self.row.opened_at;
        match self.row.status {
            TicketStatus::Open => self.last_message.as_ref().map_or(opened_at, |last| last.created_at.max(opened_at)),
            TicketStatus::Closed => self.row.closed_at.unwrap_or(opened_at),
        }
    }

    /// A ticket loaded from the tables.
    pub fn loaded(loaded: LoadedTicket, reachable: bool) -> Self {
        let last_message = loaded.last_message_direction.zip(loaded.last_message_created_at);
        let last_message = last_message.map(|(direction, created_at)| {
            Arc::new(LastMessage { body: loaded.last_message_body, direction, created_at })
        });
        let contact = ContactRef {
            id: loaded.ticket.contact_id,
            name: loaded.contact_name,
            number: loaded.contact_number,
            verified: loaded.contact_verified,
        };
        Self {
            row: loaded.ticket,
            contact: Arc::new(contact),
            last_message,
            reachable,
            last_inbound: LastInbound::Unknown,
            follow_ups: None,
            receipts: ReceiptPositions::default(),
        }
    }

    /// Whether a message that is written now may be the first response of this opening, or the answer a contact waits
    /// for.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.row.first_response_at.is_none() || self.row.waiting_since.is_some()
    }

    /// Records a sent message that counts as an answer: the first one of an opening is its first response. If the
    /// contact has written since, they still wait.
    pub(crate) fn record_answer(&mut self, message: MessageId, written_at: DateTime<Utc>) {
        if written_at < self.row.opened_at {
            return;
        }
        if self.row.first_response_at.is_none() {
            self.row.first_response_at = Some(written_at);
            // In a ticket that the company opened, no contact was waiting, so the response is not part of the reports'
            // averages.
            self.row.answer_id = Some(message).filter(|_| self.row.creation_source == Source::Contact);
        }
        let last_message = self.last_message.as_ref().filter(|last| last.direction == Direction::Inbound);
        let last_inbound_at = match self.last_inbound {
            LastInbound::At(at) => Some(at),
            LastInbound::Unknown | LastInbound::Never => None,
        };
        let unanswered_since =
            last_message.map(|last| last.created_at).max(last_inbound_at).filter(|at| *at > written_at);
        self.row.waiting_since = self.row.waiting_since.and(unanswered_since);
    }

    /// Stores the follow-up action of a message until its first delivery status.
    pub(crate) fn add_follow_up(&mut self, message: MessageId, follow_up: FollowUp) {
        self.follow_ups.get_or_insert_default().add(message, follow_up);
    }

    /// Removes the follow-up action of a message, at its first delivery status, and returns it.
    pub(crate) fn take_follow_up(&mut self, message: MessageId) -> Option<FollowUp> {
        let follow_up = self.follow_ups.as_mut()?.take(message);
        self.follow_ups.take_if(|follow_ups| follow_ups.is_empty());
        follow_up
    }
}

#[cfg(test)]
mod tests {
    use super::{LastMessage, Ticket};

    /// With the two counters of an `Arc` they take 320 and 48 bytes, which are size classes of the allocator; the next
    /// classes are 384 and 64.
    #[test]
    fn a_state_fits_into_a_size_class_of_the_allocator() {
        assert!(size_of::<Ticket>() <= 304, "{}", size_of::<Ticket>());
        assert!(size_of::<LastMessage>() <= 32, "{}", size_of::<LastMessage>());
    }
}
