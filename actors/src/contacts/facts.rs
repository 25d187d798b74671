//! Facts about a contact that decide whether a channel can reach it, and which messages the channel accepts.
//!
//! They are looked up in the cache, then in the hot ticket, then in the tables. Each look-up adds some of the facts
//! that are still missing ([`RequiredFacts::missing_in`]), so the tables are read only for the rest.

use chrono::{DateTime, Utc};

use crate::variables::ContactValues;

/// When a contact last wrote on a channel, as far as known. Later and more certain values compare greater, so `max`
/// merges two.
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
    fn from(last_inbound: Option<DateTime<Utc>>) -> Self {
        last_inbound.map_or(Self::Never, Self::At)
    }
}

/// The facts that a command requires about its contact; its ticket may lack them.
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
    /// The required facts that `facts` lacks. Values of variables are always missing: only the tables, which are read
    /// last, have them.
    pub(crate) fn missing_in(self, facts: &ContactFacts) -> Self {
        Self {
            reachable: self.reachable && !facts.reachable,
            last_inbound: self.last_inbound && facts.last_inbound == LastInbound::Unknown,
            values: self.values,
        }
    }

    /// Whether a hot ticket may have some of these facts.
    pub(crate) fn has_ticket_facts(self) -> bool {
        self.reachable || self.last_inbound
    }

    /// Whether no fact is required.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The facts found so far; those not required remain at their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContactFacts {
    /// Whether a channel without phone numbers can reach the contact. False: it cannot, or this was not looked up.
    pub reachable: bool,
    /// When the contact last wrote on the channel.
    pub last_inbound: LastInbound,
    /// The contact's values of variables.
    pub values: ContactValues,
}

impl ContactFacts {
    /// Adds the facts of a hot ticket that are required.
    pub(crate) fn add_ticket_facts(&mut self, required: RequiredFacts, reachable: bool, last_inbound: LastInbound) {
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
    fn found_facts_are_no_longer_missing_and_the_latest_inbound_counts() {
        let all = RequiredFacts { reachable: true, last_inbound: true, values: true };
        let mut facts = ContactFacts::default();
        assert_eq!(all.missing_in(&facts), all);
        facts.add_ticket_facts(all, false, LastInbound::Never);
        assert_eq!(all.missing_in(&facts), RequiredFacts { last_inbound: false, ..all });
        facts.add_ticket_facts(all, true, LastInbound::Unknown);
        assert_eq!((facts.reachable, facts.last_inbound), (true, LastInbound::Never));
        facts.add_ticket_facts(all, false, LastInbound::At(DateTime::UNIX_EPOCH));
        assert_eq!((facts.reachable, facts.last_inbound), (true, LastInbound::At(DateTime::UNIX_EPOCH)));
        let missing = all.missing_in(&facts);
        assert_eq!((missing.has_ticket_facts(), missing.is_empty()), (false, false), "values are always missing");
    }

    #[test]
    fn only_required_facts_are_added() {
        let mut facts = ContactFacts::default();
        facts.add_ticket_facts(RequiredFacts::default(), true, LastInbound::Never);
        assert_eq!(facts, ContactFacts::default());
        assert!(RequiredFacts::default().missing_in(&facts).is_empty());
    }
}
