//! What a ticket's actor holds: the row, and what answers need beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::tables::messages::Direction;
use hotline_persistence::tables::tickets::{Following, LoadedTicket, TicketRow, TicketStatus};

use super::{AfterSend, Author, Written};

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
    /// When the contact last wrote on this channel: a phone channel takes anything but templates only for a while after
    /// it. Whoever sends looks it up when it is not known here.
    pub heard: Heard,
    /// What follows messages that are not yet handed over. Most tickets have none.
    pub following: Option<Arc<BTreeMap<MessageId, Follows>>>,
    /// How far its messages are known to have come; what is not known here is known in the tables.
    pub reached: Reached,
    /// What those who look at it are answered.
    pub written: Written,
}

/// When a contact last wrote on a channel, as far as that is known. What is known better is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// It was not looked up.
    #[default]
    Unknown,
    /// They never did.
    Never,
    /// Then.
    At(DateTime<Utc>),
}

impl From<Option<DateTime<Utc>>> for Heard {
    fn from(found: Option<DateTime<Utc>>) -> Self {
        found.map_or(Self::Never, Self::At)
    }
}

/// What follows a message once its channel has taken it.
#[derive(Clone, Debug, PartialEq)]
pub struct Follows {
    /// What is done.
    pub after: AfterSend,
    /// Who asked for it.
    pub author: Author,
}

impl From<Following> for Follows {
    fn from(row: Following) -> Self {
        let user = row.user_id.map(|id| (id, row.user_name.unwrap_or_default()));
        // Whatever this release cannot read asks for nothing it can do.
        let after = serde_json::from_value(row.after_send).unwrap_or_default();
        Self { after, author: Author { user, integration: row.integration_id, source: row.source } }
    }
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
            heard: Heard::Unknown,
            following: None,
            reached: Reached::default(),
            written: Written::default(),
        }
    }

    /// Keeps what follows a message until that is handed over.
    pub(crate) fn follow(&mut self, message: MessageId, follows: Follows) {
        Arc::make_mut(self.following.get_or_insert_default()).insert(message, follows);
    }

    /// What follows a message that is handed over now, once.
    pub(crate) fn followed(&mut self, message: MessageId) -> Option<Follows> {
        // Looked for first: a message that nothing follows must not copy the others'.
        let following = self.following.as_mut().filter(|following| following.contains_key(&message))?;
        let follows = Arc::make_mut(following).remove(&message);
        self.following.take_if(|following| following.is_empty());
        follows
    }
}
