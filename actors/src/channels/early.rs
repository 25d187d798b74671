//! The index of early statuses: those that arrived before their message was known to be sent.

use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use dashmap::DashMap;

/// Maximum messages in memory, some 150 bytes each. There are more only if another system sends much through the same
/// account; then the table is queried for every message.
pub(crate) const EARLY_MAX: usize = 50_000;

/// The early statuses of one channel.
#[derive(Default)]
pub(crate) struct Early {
    kept: DashMap<String, DateTime<Utc>>,
    /// Whether some are only in the table.
    has_more: AtomicBool,
}

impl Early {
    /// Loads the index from the table. Fewer than [`EARLY_MAX`] rows mean that the table has no more.
    pub(crate) fn of(kept: &[String], now: DateTime<Utc>) -> Self {
        let has_more = AtomicBool::new(kept.len() >= EARLY_MAX);
        Self { kept: kept.iter().map(|id| (id.clone(), now)).collect(), has_more }
    }

    /// A status of this message was stored.
    pub(crate) fn note(&self, id: &str, now: DateTime<Utc>) {
        if self.kept.len() >= EARLY_MAX && !self.kept.contains_key(id) {
            self.has_more.store(true, Ordering::Release);
        } else {
            self.kept.insert(id.to_owned(), now);
        }
    }

    /// Whether a status of this message may be stored; false is certain.
    pub(crate) fn may_hold(&self, id: &str) -> bool {
        self.kept.contains_key(id) || self.has_more.load(Ordering::Acquire)
    }

    /// The stored statuses of this message were applied.
    pub(crate) fn remove(&self, id: &str) {
        self.kept.remove(id);
    }

    /// Drops entries from before this time.
    pub(crate) fn sweep(&self, before: DateTime<Utc>) {
        self.kept.retain(|_, at| *at >= before);
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn what_does_not_fit_makes_every_message_one_to_look_up() {
        let (first, later) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH + TimeDelta::days(1));
        let early = Early::of(&["a".to_owned()], first);
        assert!(early.may_hold("a") && !early.may_hold("b"));
        early.remove("a");
        assert!(!early.may_hold("a"));
        (0..EARLY_MAX).for_each(|number| early.note(&number.to_string(), first));
        assert!(!early.may_hold("b"));
        early.note("7", later);
        assert!(!early.may_hold("b"), "one that is known needs no more room");
        early.note("c", later);
        assert!(early.may_hold("b"), "nobody can be sure any more");
        early.sweep(later);
        assert_eq!(early.kept.len(), 1);
    }
}
