//! Detects repeats among more ids than memory can hold: most ids are new, and memory alone shows that.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A bounded set of ids with the times they were seen. It evicts those that arrived first, and knows from which time on
/// it is complete.
pub struct SeenSet<I, T> {
    seen_at: HashMap<I, T>,
    /// In order of arrival. An id that was seen again is here several times, and only its last position counts.
    order: VecDeque<(T, I)>,
    entries_max: usize,
    /// Ids seen up to this time may be missing; `None` if no id is missing.
    missing_up_to: Option<T>,
}

/// Whether something was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It was seen.
    Present,
    /// It was not seen.
    Absent,
    /// It may have been evicted.
    Unknown,
}

impl<I: Copy + Eq + Hash, T: Copy + Ord> SeenSet<I, T> {
    /// An empty set of at most `entries_max` entries. Each entry takes the bytes of two ids and two times.
    pub fn with_entries_max(entries_max: usize) -> Self {
        Self { seen_at: HashMap::new(), order: VecDeque::new(), entries_max, missing_up_to: None }
    }

    /// Records an id. If it was seen before, the later time counts.
    pub fn insert(&mut self, id: I, at: T) {
        if self.seen_at.get(&id).is_some_and(|before| *before >= at) {
            return;
        }
        self.seen_at.insert(id, at);
        self.order.push_back((at, id));
        self.evict_beyond(self.entries_max);
    }

    /// The number of entries: one for each id, and one more for each time that an id was seen again.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Evicts the oldest ids until at most `entries` are left.
    pub fn evict_beyond(&mut self, entries: usize) {
        while self.order.len() > entries {
            if let Some(at) = self.drop_first() {
                self.mark_missing_up_to(at);
            }
        }
    }

    /// Marks ids seen up to this time as possibly missing.
    pub fn mark_missing_up_to(&mut self, at: T) {
        self.missing_up_to = self.missing_up_to.max(Some(at));
    }

    /// The time up to which ids may be missing.
    pub fn missing_up_to(&self) -> Option<T> {
        self.missing_up_to
    }

    /// Whether an id was seen. `may_be_missing` receives the time up to which ids may be missing, and decides whether
    /// this id may be one of them.
    pub fn look_up(&self, id: &I, may_be_missing: impl FnOnce(T) -> bool) -> Membership {
        if self.seen_at.contains_key(id) {
            Membership::Present
        } else if self.missing_up_to.is_some_and(may_be_missing) {
            Membership::Unknown
        } else {
            Membership::Absent
        }
    }

    /// Removes ids seen before this time, which no longer matter, and releases memory if most of it is then unused.
    pub fn expire(&mut self, before: T) {
        while self.order.front().is_some_and(|(at, _)| *at < before) {
            self.drop_first();
        }
        if self.order.len() < self.order.capacity() / 4 {
            self.order.shrink_to(self.order.len() * 2);
            self.seen_at.shrink_to(self.seen_at.len() * 2);
        }
    }

    /// Removes the oldest entry, and returns its time unless the id was seen again.
    fn drop_first(&mut self) -> Option<T> {
        let (at, id) = self.order.pop_front()?;
        if self.seen_at.get(&id) != Some(&at) {
            return None;
        }
        self.seen_at.remove(&id);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evicted_id_is_unknown_unless_it_is_newer_than_the_eviction() {
        let mut set = SeenSet::with_entries_max(2);
        assert_eq!(set.look_up(&1, |_| true), Membership::Absent, "nothing was ever seen");
        set.insert(1, 100);
        set.insert(2, 200);
        assert_eq!((set.look_up(&1, |_| true), set.look_up(&3, |_| true)), (Membership::Present, Membership::Absent));
        set.insert(3, 300);
        assert_eq!(set.missing_up_to(), Some(100));
        assert_eq!(set.look_up(&1, |up_to| 99 <= up_to), Membership::Unknown);
        assert_eq!(set.look_up(&4, |up_to| 101 <= up_to), Membership::Absent);
        assert_eq!(set.look_up(&3, |_| true), Membership::Present);
    }

    #[test]
    fn an_id_that_is_seen_again_keeps_its_later_time() {
        let mut set = SeenSet::with_entries_max(3);
        set.insert(1, 100);
        set.insert(2, 200);
        set.insert(1, 300);
        set.insert(1, 250);
        set.insert(3, 400);
        assert_eq!(set.missing_up_to(), None, "only its later entry counts");
        assert_eq!(set.look_up(&1, |_| true), Membership::Present);
        set.insert(4, 500);
        assert_eq!((set.look_up(&1, |_| true), set.look_up(&2, |_| true)), (Membership::Present, Membership::Unknown));
    }

    #[test]
    fn an_expired_id_is_not_missing() {
        let mut set = SeenSet::with_entries_max(2);
        set.insert(1, 100);
        set.insert(2, 200);
        set.expire(200);
        assert_eq!((set.look_up(&1, |_| true), set.look_up(&2, |_| true)), (Membership::Absent, Membership::Present));
        set.insert(3, 300);
        assert_eq!(set.missing_up_to(), None);
        assert!(set.order.len() <= 2 && set.seen_at.len() == 2);
    }
}
