//! What a command may have to know of its contact: what a channel reaches and accepts depends on it.
//!
//! Three places know of it, each less than the next: the cache, the hot ticket, the tables. Each adds what it knows of
//! the facts that are missing ([`RequiredFacts::missing_in`]), so the tables are read for the rest alone.

use chrono::{DateTime, Utc};

use crate::variables::ContactValues;

/// When a contact last wrote on a channel, as far as known. Better knowledge compares greater, so `max` merges two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastInbound {
    /// Not looked up.
    #[default]
    Unknown,
    /// The contact never wrote.
    Never,
    /// The contact last wrote at this time.
    At(DateTime<Utc>),
}

impl From<Option<DateTime<Utc>>> for LastInbound {
    fn from(found: Option<DateTime<Utc>>) -> Self {
        found.map_or(Self::Never, Self::At)
    }
}

/// What a command must know of its contact that the ticket may lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredFacts {
    /// Whether a channel without phone numbers can reach the contact.
    pub reachable: bool,
    /// When the contact last wrote on the channel.
    pub last_inbound: bool,
    /// The contact's values of variables.
    pub values: bool,
}

impl RequiredFacts {
    /// Those that are not among the known ones. Values of variables are in the tables alone.
    pub(crate) fn missing_in(self, known: &ContactFacts) -> Self {
        Self {
            reachable: self.reachable && !known.reachable,
            last_inbound: self.last_inbound && known.last_inbound == LastInbound::Unknown,
            values: self.values,
        }
    }

    /// Whether a ticket may know some of them.
    pub(crate) fn has_ticket_facts(self) -> bool {
        self.reachable || self.last_inbound
    }

    /// Whether there are none.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The loaded values that [`RequiredFacts`] asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContactFacts {
    /// Whether a channel without phone numbers is known to reach the contact.
    pub reachable: bool,
    /// When the contact last wrote on the channel.
    pub last_inbound: LastInbound,
    /// The contact's values of variables.
    pub values: ContactValues,
}

impl ContactFacts {
    /// Adds what a ticket knows of the required facts.
    pub(crate) fn add(&mut self, required: RequiredFacts, reachable: bool, last_inbound: LastInbound) {
        if required.reachable {
            self.reachable |= reachable;
        }
        if required.last_inbound {
            self.last_inbound = self.last_inbound.max(last_inbound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_not_missing_and_better_knowledge_wins() {
        let all = RequiredFacts { reachable: true, last_inbound: true, values: true };
        let mut facts = ContactFacts::default();
        assert_eq!(all.missing_in(&facts), all);
        facts.add(all, false, LastInbound::Never);
        assert_eq!(all.missing_in(&facts), RequiredFacts { last_inbound: false, ..all });
        facts.add(all, true, LastInbound::Unknown);
        assert_eq!((facts.reachable, facts.last_inbound), (true, LastInbound::Never));
        facts.add(all, false, LastInbound::At(DateTime::UNIX_EPOCH));
        assert_eq!((facts.reachable, facts.last_inbound), (true, LastInbound::At(DateTime::UNIX_EPOCH)));
        let missing = all.missing_in(&facts);
        assert_eq!((missing.has_ticket_facts(), missing.is_empty()), (false, false), "values are never known before");
    }

    #[test]
    fn only_required_facts_are_added() {
        let mut facts = ContactFacts::default();
        facts.add(RequiredFacts::default(), true, LastInbound::Never);
        assert_eq!(facts, ContactFacts::default());
        assert!(RequiredFacts::default().missing_in(&facts).is_empty());
    }
}
