//! A ticket that can be read without asking its actor: most reads of a conversation find it unchanged since
//! the last one, and then cost neither a place in its mailbox nor a change of threads.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hotline_persistence::{ChannelId, ContactId};

use super::Ticket;
use crate::registry::ActorStatus;

/// What the actor shows. It hides it before it changes, and shows it again, once the change is durable, to the next who
/// asks.
#[derive(Debug, Default)]
pub struct PublishedSnapshot {
    view: Mutex<View>,
    /// On which channel it is, and with whom: that never changes.
    parties: OnceLock<(ChannelId, ContactId)>,
}

#[derive(Debug, Default)]
struct View {
    ticket: Option<Arc<Ticket>>,
    /// Nobody has looked since its answer was forgotten.
    rests: bool,
    /// Updates of the contact that lie in the mailbox: until the actor has taken them it shows nothing.
    outdated: u32,
}

impl PublishedSnapshot {
    fn lock(&self) -> MutexGuard<'_, View> {
        // Nothing that can panic runs under the lock.
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On which channel the ticket is, and with whom; none before its actor has started.
    pub(crate) fn parties(&self) -> Option<(ChannelId, ContactId)> {
        self.parties.get().copied()
    }

    /// The actor starts.
    pub(super) fn set_parties(&self, ticket: &Ticket) {
        let _ = self.parties.set((ticket.row.channel_id, ticket.row.contact_id));
    }

    /// Shows the ticket from now on. For its actor, when everything it tells is durable.
    pub(super) fn show(&self, ticket: &Arc<Ticket>) {
        let mut view = self.lock();
        if view.outdated == 0 {
            view.ticket = Some(ticket.clone());
            view.rests = false;
        }
    }

    /// Shows nothing from now on.
    pub(super) fn hide(&self) {
        self.lock().ticket = None;
    }

    /// Nobody has looked for a while: what they were answered makes room.
    pub(crate) fn rest(&self) {
        let mut view = self.lock();
        if !std::mem::replace(&mut view.rests, true)
            && let Some(ticket) = &view.ticket
        {
            ticket.written.forget();
        }
    }

    /// Shows nothing until the actor has taken an update that is about to be sent to it.
    pub(crate) fn invalidate(&self) {
        let mut view = self.lock();
        view.ticket = None;
        view.outdated += 1;
    }

    /// The actor has taken such an update.
    pub(super) fn updated(&self) {
        let mut view = self.lock();
        view.ticket = None;
        view.outdated = view.outdated.saturating_sub(1);
    }
}

impl ActorStatus<PublishedSnapshot> {
    /// The ticket, if it is shown. A look is a use, as a question is.
    pub(crate) fn look(&self) -> Option<Arc<Ticket>> {
        let shown = {
            let mut view = self.shared.lock();
            view.rests = false;
            view.ticket.clone()?
        };
        self.used();
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tickets::commands::tests::fixture::{Desk, WEBCHAT};

    #[test]
    fn what_was_answered_is_forgotten_each_time_nobody_looks_for_a_while() {
        let (life, ticket) = (ActorStatus::<PublishedSnapshot>::default(), Arc::new(Desk::on(WEBCHAT).ticket));
        let answer = |new: &str| ticket.written.body(1, || Ok::<_, ()>(new.as_bytes().to_vec()));
        life.shared.show(&ticket);
        for round in ["first", "second"] {
            assert_eq!(life.look(), Some(ticket.clone()));
            assert_eq!(answer(round), Ok(round.into()));
            assert_eq!(answer("kept"), Ok(round.into()));
            life.shared.rest();
        }
        assert_eq!(answer("third"), Ok("third".into()));
    }

    #[test]
    fn nothing_is_shown_while_an_update_is_on_its_way() {
        let (life, ticket) = (ActorStatus::<PublishedSnapshot>::default(), Arc::new(Desk::on(WEBCHAT).ticket));
        assert_eq!(life.look(), None);
        life.shared.show(&ticket);
        assert_eq!(life.look(), Some(ticket.clone()));
        life.shared.invalidate();
        assert_eq!(life.look(), None);
        // A question that was in the mailbox before the update must not bring back what was.
        life.shared.show(&ticket);
        assert_eq!(life.look(), None);
        life.shared.invalidate();
        life.shared.updated();
        life.shared.show(&ticket);
        assert_eq!(life.look(), None, "the second is still on its way");
        life.shared.updated();
        life.shared.show(&ticket);
        assert_eq!(life.look(), Some(ticket.clone()));
        life.shared.hide();
        assert_eq!(life.look(), None);
    }
}
