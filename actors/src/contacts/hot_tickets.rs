//! The hot tickets of each contact.

use std::sync::Arc;

use hotline_persistence::TicketId;
use smallvec::SmallVec;

use super::ContactKey;
use crate::id_map::IdMap;

/// The tickets of each contact that have an actor; usually one.
#[derive(Default)]
pub(crate) struct HotTickets(IdMap<ContactKey, SmallVec<[TicketId; 2]>>);

/// Registers an actor's ticket under its contact until dropped.
pub(crate) struct RegistrationGuard {
    hot_tickets: Arc<HotTickets>,
    key: ContactKey,
    ticket: TicketId,
}

impl HotTickets {
    /// Registers the actor of a ticket. For a moment a ticket may have two actors: one that is retiring and its
    /// successor.
    pub(crate) fn register(self: &Arc<Self>, key: ContactKey, ticket: TicketId) -> RegistrationGuard {
        self.0.entry(key).or_default().push(ticket);
        RegistrationGuard { hot_tickets: self.clone(), key, ticket }
    }

    /// The tickets of a contact.
    pub(crate) fn of(&self, key: ContactKey) -> Vec<TicketId> {
        self.0.get(&key).map(|tickets| tickets.to_vec()).unwrap_or_default()
    }

    /// Whether a contact has hot tickets.
    pub(crate) fn has(&self, key: ContactKey) -> bool {
        self.0.contains_key(&key)
    }
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        self.hot_tickets.0.remove_if_mut(&self.key, |_, tickets| {
            if let Some(index) = tickets.iter().position(|ticket| *ticket == self.ticket) {
                tickets.swap_remove(index);
            }
            tickets.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use hotline_persistence::{CompanyId, ContactId};

    use super::*;

    #[test]
    fn a_ticket_is_registered_while_one_of_its_actors_lives() {
        let hot_tickets = Arc::new(HotTickets::default());
        let key = (CompanyId::new(1), ContactId::new(2));
        let first = hot_tickets.register(key, TicketId::new(7));
        let other = hot_tickets.register(key, TicketId::new(8));
        let successor = hot_tickets.register(key, TicketId::new(7));
        drop(first);
        assert_eq!(hot_tickets.of(key).len(), 2);
        assert!(hot_tickets.of(key).contains(&TicketId::new(7)));
        drop(successor);
        assert_eq!(hot_tickets.of(key), [TicketId::new(8)]);
        drop(other);
        assert!(!hot_tickets.has(key), "nothing is left behind");
    }
}
