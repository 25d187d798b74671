use std::sync::Arc;

use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus};
use hotline_persistence::{Change, MessageId, SessionId};

use crate::Refusal;
use crate::tickets::state::LastMessage;
use crate::tickets::{Author, Command, Context, Ticket};

/// The contact has written.
#[derive(Clone, Debug)]
pub struct Receive {
    /// What they wrote.
    pub body: String,
    /// The message they reply to.
    pub quoted: Option<MessageId>,
    /// The visitor's session, on a webchat.
    pub session: Option<SessionId>,
    /// The id the visitor's side gave the message.
    pub client_id: Option<String>,
}

impl Command for Receive {
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        let mut message = cx.message(ticket, Direction::Inbound, &Author::CONTACT, &self.body)?;
        message.status = MessageStatus::Received;
        message.quoted_message_id = self.quoted;
        message.session_id = self.session;
        message.client_id = self.client_id;
        ticket.row.unread_count += 1;
        ticket.reachable = true;
        say(ticket, &message);
        cx.touch(ticket);
        cx.record(Change::Message(Box::new(message.clone())));
        Ok(message)
    }
}

/// Makes a message the last one of its ticket.
pub(super) fn say(ticket: &mut Ticket, message: &MessageRow) {
    ticket.row.last_message_id = Some(message.id);
    ticket.last_message = Some(Arc::new(LastMessage {
        id: message.id,
        body: message.body.clone(),
        direction: message.direction,
        created_at: message.created_at,
    }));
}
