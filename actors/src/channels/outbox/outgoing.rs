//! A message on its way to its provider.

use std::sync::{Arc, OnceLock};

use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{AddressedMessage, Direction, MessageRow, MessageStatus, Revision};
use hotline_persistence::{Change, ContactId, MessageId, TicketId};

use crate::channels::Accepted;
use crate::tickets::Ticket;

/// A message that waits for its provider.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The message's place in the log: it may be sent once this is durable.
    pub(super) seq: Seq,
    pub(super) message: Arc<MessageRow>,
    /// The recipient's number, if they have one.
    pub(super) number: Option<String>,
    /// The acceptance of its file, while the text that is sent after it is not accepted yet. Shared by all clones.
    pub(super) file_accepted: Arc<OnceLock<Accepted>>,
    /// Approximate bytes in memory.
    pub(super) bytes: usize,
}

impl Outgoing {
    /// The messages and reactions to send among these changes; their place in the log is not known yet.
    pub(super) fn of(changes: &[Change], ticket: &Ticket) -> Vec<Self> {
        let waits = |row: &MessageRow| row.direction == Direction::Outbound && row.status == MessageStatus::Queued;
        let outgoing = changes.iter().filter_map(|change| match change {
            Change::Message(row) if waits(row) => Some(MessageRow::clone(row)),
            Change::Revision(row) => match &row.revision {
                Revision::Reacts { send, .. } => {
                    let conversation = (ticket.row.channel_id, row.contact_id, row.ticket_id);
                    Some(send.clone().into_message(row.company_id, conversation, row.message_id))
                }
                _ => None,
            },
            _ => None,
        });
        let number = || ticket.contact.number.as_deref().map(str::to_owned);
        outgoing.map(|message| Self::new(0, message, number())).collect()
    }

    fn new(seq: Seq, message: MessageRow, number: Option<String>) -> Self {
        let bytes = bytes(&message);
        Self { seq, message: Arc::new(message), number, file_accepted: Arc::default(), bytes }
    }

    pub(super) fn id(&self) -> MessageId {
        self.message.id
    }

    pub(super) fn contact(&self) -> ContactId {
        self.message.contact_id
    }

    pub(super) fn ticket(&self) -> TicketId {
        self.message.ticket_id
    }
}

/// Approximate bytes of a message in memory.
fn bytes(message: &MessageRow) -> usize {
    const ROW: usize = 512;
    // A parsed object takes a multiple of its text; most messages have none.
    let object = |object: &Option<serde_json::Value>| object.as_ref().map_or(0, |object| object.to_string().len());
    ROW + message.body.as_ref().map_or(0, String::len) + object(&message.template) + object(&message.interactive)
}

impl From<AddressedMessage> for Outgoing {
    fn from(stored: AddressedMessage) -> Self {
        // Rows in the tables are durable already.
        Self::new(0, stored.message, stored.number)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::DateTime;
    use hotline_persistence::tables::messages::MessageType;
    use hotline_persistence::tables::source::Source;
    use hotline_persistence::{ChannelId, CompanyId};

    use super::*;

    /// A text to a contact, who has one ticket.
    pub(in crate::channels::outbox) fn outgoing(id: i64, contact: i64) -> Outgoing {
        let message = MessageRow {
            company_id: CompanyId::new(1),
            id: MessageId::new(id),
            job_id: Some(MessageId::new(id)),
            ticket_id: TicketId::new(contact),
            contact_id: ContactId::new(contact),
            channel_id: ChannelId::new(1),
            direction: Direction::Outbound,
            kind: MessageType::Text,
            body: Some(format!("message {id}")),
            media: None,
            template: None,
            interactive: None,
            content: None,
            revisions: None,
            quoted_message_id: None,
            status: MessageStatus::Queued,
            error: None,
            user_id: None,
            user_name: None,
            integration_id: None,
            source: Source::Api,
            session_id: None,
            client_id: None,
            after_send: None,
            provider_message_id: None,
            created_at: DateTime::UNIX_EPOCH,
            sent_at: None,
            delivered_at: None,
            read_at: None,
            updated_at: None,
        };
        Outgoing::new(0, message, Some(format!("551199999{contact:04}")))
    }
}
