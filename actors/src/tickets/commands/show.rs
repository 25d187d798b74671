use crate::Refusal;
use crate::tickets::{Command, Context, Ticket};

/// Reads the ticket.
#[derive(Clone, Debug)]
pub struct Show;

impl Command for Show {
    type Reply = Ticket;
    const READ_ONLY: bool = true;

    fn decide(self, ticket: &mut Ticket, _: &mut Context<'_>) -> Result<Ticket, Refusal> {
        Ok(ticket.clone())
    }
}
