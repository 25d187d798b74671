//! Executes the follow-up actions of a send.

use crate::Refusal;
use crate::tickets::commands::{Close, Transfer};
use crate::tickets::{AfterSend, Author, Command, Context, Ticket};

impl AfterSend {
    /// Transfers the ticket, then closes it, each only if requested.
    pub(crate) fn execute(self, ticket: &mut Ticket, cx: &mut Context<'_>, author: &Author) -> Result<(), Refusal> {
        if self.queue_id.is_some() {
            Transfer { queue: self.queue_id, user: None, author: author.clone() }.decide(ticket, cx)?;
        }
        if self.close_ticket {
            let close =
                Close { wrapup_type: self.wrapup_type_id, wrapup_note: self.wrapup_note, author: author.clone() };
            close.decide(ticket, cx)?;
        }
        Ok(())
    }

    /// Checks whether [`Self::execute`] would succeed now, on a copy of the ticket.
    pub(super) fn check(&self, ticket: &Ticket, cx: &Context<'_>, author: &Author) -> Result<(), Refusal> {
        let ids = hotline_persistence::id_blocks::IdBlocks::unbacked();
        let mut trial = Context::new(cx.now, cx.organization, &ids);
        self.clone().execute(&mut ticket.clone(), &mut trial, author)
    }
}
