use hotline_persistence::{QueueId, UserId};

use super::Transfer;
use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// Unassigns an open ticket from a user who leaves the company or the ticket's queue. If the ticket is no longer
/// theirs, nothing changes.
#[derive(Clone, Debug)]
pub struct Release {
    /// The user who leaves.
    pub user: UserId,
    /// The queue they leave; `None`: the company.
    pub queue: Option<QueueId>,
    /// The author of the change.
    pub author: Author,
}

impl Command for Release {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let is_in_queue = self.queue.is_none() || ticket.row.queue_id == self.queue;
        let is_theirs = ticket.is_open() && ticket.row.user_id == Some(self.user);
        if is_in_queue && is_theirs {
            Transfer { queue: None, user: Some(None), author: self.author }.decide(ticket, cx)?;
        }
        Ok(())
    }
}
