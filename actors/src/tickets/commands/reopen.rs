use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::tables::tickets::TicketStatus;
use serde_json::json;

use super::{Transfer, check_user, named_wrapup_type};
use crate::tickets::{Author, Command, Context, Ticket};
use crate::{Conflict, Refusal};

/// Reopens a closed ticket.
#[derive(Clone, Debug)]
pub struct Reopen {
    /// Who reopens it.
    pub author: Author,
}

impl Command for Reopen {
    type Reply = Ticket;

    fn opens(&self) -> bool {
        true
    }

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<Ticket, Refusal> {
        if ticket.is_open() {
            return Err(Refusal::Conflict(Conflict::of("the ticket is open", "open", "ticketId", ticket.row.id.0)));
        }
        if let Some(other) = cx.open_elsewhere {
            return Err(Refusal::AlreadyOpen(other));
        }
        let from = json!({
            "status": "closed",
            "wrapupType": named_wrapup_type(cx.organization, ticket.row.wrapup_type_id),
            "wrapupNote": ticket.row.wrapup_note,
        });
        ticket.row.status = TicketStatus::Open;
        ticket.row.opened_at = cx.now;
        ticket.row.closed_at = None;
        ticket.row.first_response_at = None;
        ticket.row.answer_id = None;
        ticket.row.wrapup_type_id = None;
        ticket.row.wrapup_note = None;
        ticket.row.reopen_count += 1;
        cx.touch(ticket);
        cx.record_event(ticket, EventType::Reopened, &self.author, Some(from), Some(json!({"status": "open"})))?;
        // A user who is inactive, or has left the company or the ticket's queue, does not get the ticket back.
        let queue = ticket.row.queue_id;
        if ticket.row.user_id.is_some_and(|user| check_user(cx.organization, user, queue).is_err()) {
            Transfer { queue: None, user: Some(None), author: self.author }.decide(ticket, cx)?;
        }
        Ok(ticket.clone())
    }
}
