//! A conversation that commands are sent to.

use std::sync::Arc;

use hotline_persistence::TicketId;
use hotline_persistence::tables::contacts::ContactRef;

/// One contact's conversation, as its caller knows it.
#[derive(Clone)]
pub struct Slot {
    pub contact: Arc<ContactRef>,
    pub ticket: Option<TicketId>,
    /// The index of its next command, counted over all cycles.
    pub next: usize,
}

impl Slot {
    pub fn ticket(&self) -> TicketId {
        self.ticket.expect("the ticket was opened before")
    }
}
