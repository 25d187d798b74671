//! Changes made to contacts while messages are read from the tables: the rows that are read may predate them.

use std::collections::{HashMap, HashSet};

use hotline_persistence::ContactId;

use super::outgoing::Outgoing;

/// The changes made to contacts during one read.
#[derive(Default)]
pub(super) struct ContactsDuringRead {
    /// For each merged contact, the contact that now has its messages.
    merged: HashMap<ContactId, ContactId>,
    changed: HashSet<ContactId>,
    removed: HashSet<ContactId>,
}

impl ContactsDuringRead {
    pub(super) fn record_merge(&mut self, from: ContactId, into: ContactId) {
        self.merged.values_mut().filter(|owner| **owner == from).for_each(|owner| *owner = into);
        self.merged.insert(from, into);
    }

    pub(super) fn record_changes(&mut self, contacts: &HashSet<ContactId>) {
        self.changed.extend(contacts);
    }

    pub(super) fn record_removal(&mut self, contact: ContactId) {
        self.removed.insert(contact);
    }

    /// Each merged contact, and the contact that now has its messages.
    pub(super) fn merges(&self) -> impl Iterator<Item = (ContactId, ContactId)> {
        self.merged.iter().map(|(from, into)| (*from, *into))
    }

    /// Applies the changes to the messages that were read: drops those of removed contacts, and marks the numbers of
    /// merged and changed contacts as stale.
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
    fn messages_of_merged_and_changed_contacts_are_stale_and_those_of_removed_ones_are_dropped() {
        let mut contacts = ContactsDuringRead::default();
        contacts.record_merge(ANA, BEN);
        contacts.record_merge(BEN, EVA);
        let read_rows = || -> Vec<Outgoing> { [ANA, BEN, EVA].map(|contact| outgoing(contact.0, contact.0)).into() };
        let mut messages = read_rows();
        contacts.apply_to(&mut messages);
        let stale: Vec<_> = messages.iter().map(|outgoing| outgoing.is_number_stale).collect();
        assert_eq!(stale, [true, true, false]);
        let mut merges: Vec<_> = contacts.merges().collect();
        merges.sort_unstable();
        assert_eq!(merges, [(ANA, EVA), (BEN, EVA)]);

        contacts.record_changes(&HashSet::from([EVA]));
        let mut messages = read_rows();
        contacts.apply_to(&mut messages);
        assert!(messages.len() == 3 && messages.iter().all(|outgoing| outgoing.is_number_stale));

        contacts.record_removal(EVA);
        contacts.apply_to(&mut messages);
        assert!(messages.is_empty());
    }
}
