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

    /// The merges, each with the contact that has the messages now.
    pub(super) fn merges(&self) -> impl Iterator<Item = (ContactId, ContactId)> {
        self.merged.iter().map(|(from, into)| (*from, *into))
    }

    /// Removes the messages of removed contacts from those that were read meanwhile, and marks the numbers of others as
    /// stale.
    pub(super) fn apply_to(&self, messages: &mut Vec<Outgoing>) {
        messages.retain_mut(|outgoing| {
            let contact = outgoing.contact();
            let owner = self.merged.get(&contact).copied().unwrap_or(contact);
            outgoing.is_number_stale |= owner != contact || self.changed.contains(&owner);
            !self.removed.contains(&owner)
        });
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
    fn messages_that_are_read_belong_to_the_contact_that_has_them_now() {
        let mut contacts = ContactsDuringRead::default();
        contacts.merge(ANA, BEN);
        contacts.merge(BEN, EVA);
        let read = || -> Vec<Outgoing> { [ANA, BEN, EVA].map(|contact| outgoing(contact.0, contact.0)).into() };
        let mut messages = read();
        contacts.apply_to(&mut messages);
        let stale: Vec<_> = messages.iter().map(|outgoing| outgoing.is_number_stale).collect();
        assert_eq!(stale, [true, true, false]);
        let mut merges: Vec<_> = contacts.merges().collect();
        merges.sort_unstable();
        assert_eq!(merges, [(ANA, EVA), (BEN, EVA)]);

        contacts.change(&HashSet::from([EVA]));
        let mut messages = read();
        contacts.apply_to(&mut messages);
        assert!(messages.len() == 3 && messages.iter().all(|outgoing| outgoing.is_number_stale));

        contacts.remove(EVA);
        contacts.apply_to(&mut messages);
        assert!(messages.is_empty());
    }
}
