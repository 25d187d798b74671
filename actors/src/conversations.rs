//! The slots of one channel: which ticket each contact is talking in. All races between openings are settled here.
//!
//! A slot is locked while a ticket is opened or reopened, from the check to the entry in the log, without any await in
//! between. So a contact has at most one open ticket on a channel, however many requests are concurrent, and the
//! journal has openings in their actual order.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use hotline_persistence::{ContactId, TicketId};

/// The slot of a contact on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// This ticket is open.
    Open(TicketId),
    /// No ticket is open; this one was the latest, and is hot.
    Closed(TicketId),
}

/// The slots of one channel.
#[derive(Debug, Default)]
pub struct Conversations {
    slots: DashMap<ContactId, Slot>,
}

impl Conversations {
    /// Creates the slots from the open tickets of a channel.
    pub fn of(open: impl IntoIterator<Item = (ContactId, TicketId)>) -> Self {
        let slots = open.into_iter().map(|(contact, ticket)| (contact, Slot::Open(ticket))).collect();
        Self { slots }
    }

    /// The slot of a contact; `None` if it has no open ticket, and its latest is not hot.
    pub fn get(&self, contact: ContactId) -> Option<Slot> {
        self.slots.get(&contact).map(|slot| *slot)
    }

    /// Locks the slot and runs `opening`, which makes a ticket the open one. `opening` receives the ticket that is open
    /// now, and returns the one that is open afterwards, or refuses.
    ///
    /// # Errors
    /// The error of `opening`; the slot is then unchanged.
    pub fn open<T, E>(
        &self,
        contact: ContactId,
        opening: impl FnOnce(Option<TicketId>) -> Result<(TicketId, T), E>,
    ) -> Result<T, E> {
        match self.slots.entry(contact) {
            Entry::Occupied(mut slot) => {
                let open_ticket = match slot.get() {
                    Slot::Open(ticket) => Some(*ticket),
                    Slot::Closed(_) => None,
                };
                let (ticket, outcome) = opening(open_ticket)?;
                slot.insert(Slot::Open(ticket));
                Ok(outcome)
            }
            Entry::Vacant(slot) => {
                let (ticket, outcome) = opening(None)?;
                slot.insert(Slot::Open(ticket));
                Ok(outcome)
            }
        }
    }

    /// Records that a ticket was closed, unless another one is open already.
    pub fn close(&self, contact: ContactId, ticket: TicketId) {
        if let Some(mut slot) = self.slots.get_mut(&contact)
            && *slot == Slot::Open(ticket)
        {
            *slot = Slot::Closed(ticket);
        }
    }

    /// Sets a contact's open ticket, or that none is open. The contact must be marked, so that no ticket is opened
    /// meanwhile.
    pub fn set(&self, contact: ContactId, open: Option<TicketId>) {
        match open {
            Some(ticket) => drop(self.slots.insert(contact, Slot::Open(ticket))),
            None => drop(self.slots.remove(&contact)),
        }
    }

    /// Removes a closed ticket that is no longer hot.
    pub fn release(&self, contact: ContactId, ticket: TicketId) {
        self.slots.remove_if(&contact, |_, slot| *slot == Slot::Closed(ticket));
    }

    /// The number of contacts with an open or hot ticket.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no contact has an open or hot ticket.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_opening_leaves_the_slot_unchanged() {
        let slots = Conversations::of([(ContactId::new(1), TicketId::new(7))]);
        let refused: Result<(), TicketId> =
            slots.open(ContactId::new(1), |open_ticket| Err(open_ticket.unwrap_or(TicketId::new(0))));
        assert_eq!(refused, Err(TicketId::new(7)));
        assert_eq!(slots.get(ContactId::new(1)), Some(Slot::Open(TicketId::new(7))));
        assert!(slots.open::<(), ()>(ContactId::new(2), |_| Err(())).is_err());
        assert_eq!(slots.get(ContactId::new(2)), None);
    }

    #[test]
    fn a_contact_that_is_merged_gives_up_its_slot() {
        let slots = Conversations::of([(ContactId::new(1), TicketId::new(7)), (ContactId::new(2), TicketId::new(8))]);
        slots.set(ContactId::new(1), None);
        slots.set(ContactId::new(2), Some(TicketId::new(7)));
        assert_eq!((slots.get(ContactId::new(1)), slots.len()), (None, 1));
        assert_eq!(slots.get(ContactId::new(2)), Some(Slot::Open(TicketId::new(7))));
    }

    #[test]
    fn closing_an_older_ticket_does_not_free_the_slot_of_a_newer_one() {
        let slots = Conversations::of([(ContactId::new(1), TicketId::new(8))]);
        slots.close(ContactId::new(1), TicketId::new(7));
        assert_eq!(slots.get(ContactId::new(1)), Some(Slot::Open(TicketId::new(8))));
        slots.close(ContactId::new(1), TicketId::new(8));
        slots.release(ContactId::new(1), TicketId::new(7));
        assert_eq!(slots.get(ContactId::new(1)), Some(Slot::Closed(TicketId::new(8))));
        slots.release(ContactId::new(1), TicketId::new(8));
        assert!(slots.is_empty());
    }
}
