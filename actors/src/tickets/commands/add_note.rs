use hotline_persistence::Change;
use hotline_persistence::tables::messages::{Direction, MessageRow, MessageStatus, MessageType};
use hotline_persistence::tables::ticket_events::EventType;
use serde_json::json;

use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// Adds a note, which only the company sees.
#[derive(Clone, Debug)]
pub struct AddNote {
    /// The note.
    pub body: String,
    /// Who writes it.
    pub author: Author,
}

impl Command for AddNote {
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        let mut note = cx.new_message(ticket, Direction::Internal, &self.author, &self.body)?;
        note.kind = MessageType::Note;
        // A note is not sent to anyone, so it has its final status at once.
        note.status = MessageStatus::Sent;
        note.sent_at = Some(cx.now);
        cx.touch(ticket);
        cx.record_event(ticket, EventType::NoteAdded, &self.author, None, Some(json!({"messageId": note.id})))?;
        cx.record(Change::Message(Box::new(note.clone())));
        Ok(note)
    }
}
