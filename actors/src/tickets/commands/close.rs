use hotline_persistence::WrapupTypeId;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::tables::tickets::TicketStatus;
use serde_json::json;

use super::{check_wrapup_type, named_wrapup_type};
use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// Closes an open ticket, with its wrap-up.
#[derive(Clone, Debug)]
pub struct Close {
    /// The wrap-up type. Required when the queue says so.
    pub wrapup_type: Option<WrapupTypeId>,
    /// The wrap-up note, in the agent's words.
    pub wrapup_note: Option<String>,
    /// Who closes it.
    pub author: Author,
}

impl Command for Close {
    type Reply = Ticket;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<Ticket, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        match self.wrapup_type {
            Some(wrapup_type) => check_wrapup_type(cx.organization, wrapup_type, ticket.row.queue_id)?,
            None => {
                let queue = ticket.row.queue_id.and_then(|id| cx.organization.queues.get(&id));
                if queue.is_some_and(|queue| queue.row.wrapup_required) {
                    return Err(Refusal::invalid("wrapupTypeId", "is required by the ticket's queue"));
                }
            }
        }
        self.close(ticket, cx)?;
        Ok(ticket.clone())
    }
}

/// Closes a ticket whose contact is erased, without a wrap-up even if its queue requires one.
#[derive(Clone, Debug)]
pub struct CloseErased;

impl Command for CloseErased {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        Close::without_wrapup(Author::AUTOMATION, ticket, cx)
    }
}

impl Close {
    /// Closes a ticket for which no agent states a wrap-up, even if its queue requires one.
    pub(super) fn without_wrapup(author: Author, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        Self { wrapup_type: None, wrapup_note: None, author }.close(ticket, cx)
    }

    fn close(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let to = json!({
            "status": "closed",
            "wrapupType": named_wrapup_type(cx.organization, self.wrapup_type),
            "wrapupNote": self.wrapup_note,
        });
        ticket.row.status = TicketStatus::Closed;
        ticket.row.closed_at = Some(cx.now);
        ticket.row.waiting_since = None;
        ticket.row.wrapup_type_id = self.wrapup_type;
        ticket.row.wrapup_note = self.wrapup_note.map(Into::into);
        cx.touch(ticket);
        cx.record_event(ticket, EventType::Closed, &self.author, Some(json!({"status": "open"})), Some(to))
    }
}
