//! The published snapshot of a ticket, which is read without a message to its actor. Most tickets are unchanged since
//! the last read: reading them again needs neither a message in the mailbox nor a switch of threads.

use std::sync::{Arc, OnceLock};

use hotline_persistence::{ChannelId, ContactId};
use parking_lot::Mutex;

use crate::registry::ActorStatus;
use crate::tickets::Ticket;

/// The published state of a ticket. Its actor withdraws it before a change. Once the change is durable, the next read
/// that reaches the actor publishes it again.
#[derive(Debug, Default)]
pub struct PublishedSnapshot {
    state: Mutex<SnapshotState>,
    /// The ticket's channel and contact, which never change.
    parties: OnceLock<(ChannelId, ContactId)>,
}

#[derive(Debug, Default)]
struct SnapshotState {
    /// `None`: not published.
    ticket: Option<Arc<Ticket>>,
    /// Updates to the contact that are still in the mailbox: nothing is published until the actor has applied them.
    pending_updates: u32,
}

impl PublishedSnapshot {
    /// The ticket's channel and contact; `None` before its actor has started.
    pub(crate) fn parties(&self) -> Option<(ChannelId, ContactId)> {
        self.parties.get().copied()
    }

    /// Sets the channel and contact when the actor starts.
    pub(super) fn set_parties(&self, ticket: &Ticket) {
        // Fails if they are set already: they never change.
        let _ = self.parties.set((ticket.row.channel_id, ticket.row.contact_id));
    }

    /// Publishes the ticket. The actor calls this when everything in it is durable.
    pub(super) fn publish(&self, ticket: &Arc<Ticket>) {
        let mut state = self.state.lock();
        if state.pending_updates == 0 {
            state.ticket = Some(ticket.clone());
        }
    }

    /// Withdraws the snapshot.
    pub(super) fn withdraw(&self) {
        self.state.lock().ticket = None;
    }

    /// Withdraws the snapshot until the actor has applied an update. Called before the update is sent to the actor.
    pub(crate) fn begin_update(&self) {
        let mut state = self.state.lock();
        state.ticket = None;
        state.pending_updates += 1;
    }

    /// Ends an update: the actor has applied it.
    pub(super) fn end_update(&self) {
        let mut state = self.state.lock();
        state.ticket = None;
        state.pending_updates = state.pending_updates.saturating_sub(1);
    }
}

impl ActorStatus<PublishedSnapshot> {
    /// The snapshot, if it is published, for a list. Reading it does not count as use of the actor: otherwise a program
    /// that lists all tickets would keep them in memory.
    pub(crate) fn peek_snapshot(&self) -> Option<Arc<Ticket>> {
        self.shared.state.lock().ticket.clone()
    }

    /// The snapshot, if it is published. A read counts as use of the actor, like a message to it.
    pub(crate) fn snapshot(&self) -> Option<Arc<Ticket>> {
        let snapshot = self.shared.state.lock().ticket.clone()?;
        self.record_use();
        Some(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tickets::commands::tests::fixture::{Desk, WEBCHAT};

    #[test]
    fn nothing_is_published_while_an_update_is_in_the_mailbox() {
        let (status, ticket) = (ActorStatus::<PublishedSnapshot>::default(), Arc::new(Desk::on(WEBCHAT).ticket));
        assert_eq!(status.snapshot(), None);
        status.shared.publish(&ticket);
        assert_eq!(status.snapshot(), Some(ticket.clone()));
        status.shared.begin_update();
        assert_eq!(status.snapshot(), None);
        // A read that was in the mailbox before the update must not publish the old state.
        status.shared.publish(&ticket);
        assert_eq!(status.snapshot(), None);
        status.shared.begin_update();
        status.shared.end_update();
        status.shared.publish(&ticket);
        assert_eq!(status.snapshot(), None, "the second update is still in the mailbox");
        status.shared.end_update();
        status.shared.publish(&ticket);
        assert_eq!(status.snapshot(), Some(ticket.clone()));
        status.shared.withdraw();
        assert_eq!(status.snapshot(), None);
    }
}
