use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::ticket_events::EventType;
use hotline_persistence::{QueueId, UserId};
use serde_json::{Value, json};

use super::{check_queue, check_user, is_member, named_queue, named_user};
use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// Moves an open ticket to a queue, a user, or both.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The new queue; `None` keeps the queue.
    pub queue: Option<QueueId>,
    /// The new user; `Some(None)` leaves the ticket without a user. When only the queue changes, the user stays if
    /// they belong to it.
    pub user: Option<Option<UserId>>,
    /// Who moves it.
    pub author: Author,
}

impl Command for Transfer {
    type Reply = Ticket;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<Ticket, Refusal> {
        if ticket.is_closed() {
            return Err(Refusal::TicketClosed(ticket.row.id));
        }
        // The ticket's present queue and user are not checked: they may have been deactivated since, and keeping them
        // is not a change.
        let queue = self.queue.or(ticket.row.queue_id);
        let keeps_queue = queue == ticket.row.queue_id;
        if let Some(queue) = self.queue.filter(|_| !keeps_queue) {
            check_queue(cx.organization, queue)?;
        }
        let user = match self.user {
            None if keeps_queue => ticket.row.user_id,
            Some(user) if keeps_queue && user == ticket.row.user_id => user,
            Some(Some(user)) => {
                check_user(cx.organization, user, queue)?;
                Some(user)
            }
            Some(None) => None,
            None => ticket.row.user_id.filter(|user| is_member(cx.organization, *user, queue)),
        };
        // Without a change there is no event.
        if (queue, user) == (ticket.row.queue_id, ticket.row.user_id) {
            return Ok(ticket.clone());
        }
        let from = assignment_json(cx.organization, ticket.row.queue_id, ticket.row.user_id);
        let to = assignment_json(cx.organization, queue, user);
        ticket.row.queue_id = queue;
        ticket.row.user_id = user;
        cx.touch(ticket);
        cx.record_event(ticket, EventType::Transferred, &self.author, Some(from), Some(to))?;
        Ok(ticket.clone())
    }
}

fn assignment_json(organization: &Organization, queue: Option<QueueId>, user: Option<UserId>) -> Value {
    json!({"queue": named_queue(organization, queue), "assignedTo": named_user(organization, user)})
}
