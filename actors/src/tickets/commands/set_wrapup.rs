use hotline_persistence::WrapupTypeId;
use hotline_persistence::tables::ticket_events::EventType;
use serde_json::{Value, json};

use super::{check_wrapup_type, named_wrapup_type};
use crate::tickets::{Author, Command, Context, Ticket};
use crate::{Conflict, Refusal};

/// Sets the wrap-up of a ticket that is already closed. Setting the current wrap-up changes nothing.
#[derive(Clone, Debug)]
pub struct SetWrapup {
    /// The wrap-up type.
    pub wrapup_type: WrapupTypeId,
    /// The wrap-up note: `None` leaves it unchanged, `Some(None)` clears it.
    pub wrapup_note: Option<Option<String>>,
    /// The author of the change.
    pub author: Author,
}

impl Command for SetWrapup {
    type Reply = Ticket;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<Ticket, Refusal> {
        if ticket.is_open() {
            return Err(Refusal::Conflict(Conflict::of("the ticket is open", "open", "ticketId", ticket.row.id.0)));
        }
        // The type that the ticket has may have been deactivated or unlinked since; keeping it is not a change.
        if ticket.row.wrapup_type_id != Some(self.wrapup_type) {
            check_wrapup_type(cx.organization, self.wrapup_type, ticket.row.queue_id)?;
        }
        let before = (ticket.row.wrapup_type_id, ticket.row.wrapup_note.clone());
        let from = wrapup_json(ticket, cx);
        ticket.row.wrapup_type_id = Some(self.wrapup_type);
        if let Some(note) = self.wrapup_note {
            ticket.row.wrapup_note = note.map(Into::into);
        }
        let to = wrapup_json(ticket, cx);
        // Without a change there is no event.
        if before == (ticket.row.wrapup_type_id, ticket.row.wrapup_note.clone()) {
            return Ok(ticket.clone());
        }
        cx.touch(ticket);
        cx.record_event(ticket, EventType::WrapupChanged, &self.author, Some(from), Some(to))?;
        Ok(ticket.clone())
    }
}

fn wrapup_json(ticket: &Ticket, cx: &Context<'_>) -> Value {
    json!({
        "wrapupType": named_wrapup_type(cx.organization, ticket.row.wrapup_type_id),
        "wrapupNote": ticket.row.wrapup_note,
    })
}
