use hotline_persistence::Change;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::tickets::HandledBy;

use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// Adds a provider's notice, for example of a changed security code. Only the company sees it. It is not a message
/// of the contact: it does not count as unread or begin a conversation window, and no contact waits because of it.
#[derive(Clone, Debug)]
pub struct AddNotice {
    /// The notice.
    pub body: String,
    /// The provider's id of the notice, if it has one.
    pub provider_message_id: Option<String>,
    /// Who handles the conversation from now on, if the notice says so.
    pub handled_by: Option<HandledBy>,
}

impl Command for AddNotice {
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        let mut notice = cx.new_message(ticket, Direction::Internal, &Author::AUTOMATION, &self.body)?;
        notice.kind = MessageType::System;
        // A notice is not sent to anyone, so it has its final status at once.
        notice.status = MessageStatus::Sent;
        notice.sent_at = Some(cx.now);
        notice.provider_message_id = self.provider_message_id;
        if let Some(handled_by) = self.handled_by {
            ticket.row.handled_by = handled_by;
            cx.touch(ticket);
        }
        cx.record(Change::Message(Box::new(notice.clone())));
        Ok(notice)
    }
}
