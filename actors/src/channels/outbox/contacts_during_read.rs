//! What happens to contacts while messages are read from the tables: the rows may be older than these changes.

use std::collections::{HashMap, HashSet};

use hotline_persistence::ContactId;

use super::outgoing::Outgoing;

/// The changes of contacts during one read.
#[derive(Default)]
pub(super) struct ContactsDuringRead {
    /// By merged contact, the one that has its messages now.
    merged: HashMap<ContactId, ContactId>,
    changed: HashSet<ContactId>,
    removed: HashSet<ContactId>,
}

impl ContactsDuringRead {
    pub(super) fn merge(&mut self, from: ContactId, into: ContactId) {
        self.merged.values_mut().filter(|owner| **owner == from).for_each(|owner| *owner = into);
        self.merged.insert(from, into);
    }

    pub(super) fn change(&mut self, contacts: &HashSet<ContactId>) {
        self.changed.extend(contacts);
    }

    pub(super) fn remove(&mut self, contact: ContactId) {
        self.removed.insert(contact);
    }

    /// Applies the changes to messages that were read meanwhile.
    pub(super) fn apply_to(&self, messages: &mut Vec<Outgoing>) {
        for outgoing in messages.iter_mut() {
            if let Some(into) = self.merged.get(&outgoing.contact()) {
                outgoing.move_to(*into);
            }
            outgoing.is_number_stale |= self.changed.contains(&outgoing.contact());
        }
        messages.retain(|outgoing| !self.removed.contains(&outgoing.contact()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::outgoing::tests::outgoing;
    use super::*;

    const ANA: ContactId = ContactId::new(1);
    const BEN: ContactId = ContactId::new(2);
    const EVA: ContactId = ContactId::new(3);

    #[test]
    fn messages_that_are_read_go_to_the_contact_that_has_them_now_or_to_nobody() {
        let mut contacts = ContactsDuringRead::default();
        contacts.merge(ANA, BEN);
        contacts.merge(BEN, EVA);
        let read = || -> Vec<Outgoing> { [ANA, BEN, EVA].map(|contact| outgoing(contact.0, contact.0)).into() };
        let mut messages = read();
        contacts.apply_to(&mut messages);
        let seen: Vec<_> = messages.iter().map(|outgoing| (outgoing.contact(), outgoing.is_number_stale)).collect();
        assert_eq!(seen, [(EVA, true), (EVA, true), (EVA, false)]);

        contacts.change(&HashSet::from([EVA]));
        let mut messages = read();
        contacts.apply_to(&mut messages);
        assert!(messages.len() == 3 && messages.iter().all(|outgoing| outgoing.is_number_stale));

        contacts.remove(EVA);
        contacts.apply_to(&mut messages);
        assert!(messages.is_empty());
    }
}
