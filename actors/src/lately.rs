//! What was lately looked up and may be asked again: a bounded number of answers, none kept beyond its age.
//!
//! Every hot conversation has some, so what one costs counts: little more than its key and its value.

use std::hash::{Hash, RandomState};
use std::time::{Duration, Instant};

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle, EntryAction, EntryResult};

/// Answers by what was asked.
pub(crate) struct Lately<K, V> {
    // Strangers choose some of the keys, so they are hashed with a secret.
    kept: Cache<K, Dated<V>, UnitWeighter, RandomState>,
    age_max: Duration,
    began: Instant,
}

#[derive(Clone)]
struct Dated<V> {
    value: V,
    /// Seconds from the beginning to when it was learned.
    at_s: u32,
}

impl<K: Eq + Hash + Clone, V: Clone> Lately<K, V> {
    /// Keeps about this many at most, each for no longer than this.
    pub(crate) fn new(most: usize, age_max: Duration) -> Self {
        let weight = u64::try_from(most).unwrap_or(u64::MAX);
        let kept = Cache::with(most, weight, UnitWeighter, RandomState::new(), DefaultLifecycle::default());
        Self { kept, age_max, began: Instant::now() }
    }

    /// What is known, if it is not too old.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let now_s = self.now_s();
        self.kept.get(key).filter(|known| self.is_fresh(known, now_s)).map(|known| known.value)
    }

    /// Keeps what was learned now.
    pub(crate) fn insert(&self, key: K, value: V) {
        self.kept.insert(key, Dated { value, at_s: self.now_s() });
    }

    /// Keeps what `of` makes of what is known and what was learned now.
    pub(crate) fn merge(&self, key: &K, value: V, of: impl FnOnce(&V, &V) -> V) {
        let now_s = self.now_s();
        let entry = self.kept.entry(key, None, |_, known| {
            let value = if self.is_fresh(known, now_s) { of(&known.value, &value) } else { value.clone() };
            *known = Dated { value, at_s: now_s };
            EntryAction::Retain(())
        });
        if let EntryResult::Vacant(place) = entry {
            // Refused when it was inserted meanwhile: that is as new.
            let _ = place.insert(Dated { value, at_s: now_s });
        }
    }

    /// Forgets what is known.
    pub(crate) fn remove(&self, key: &K) {
        self.kept.remove(key);
    }

    /// Forgets whatever is too old.
    pub(crate) fn sweep(&self) {
        let now_s = self.now_s();
        self.kept.retain(|_, known| self.is_fresh(known, now_s));
    }

    fn now_s(&self) -> u32 {
        u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    fn is_fresh(&self, known: &Dated<V>, now_s: u32) -> bool {
        u64::from(now_s.saturating_sub(known.at_s)) <= self.age_max.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a minute does.
    fn age<V>(lately: &mut Lately<u8, V>) {
        lately.began -= Duration::from_secs(60);
    }

    #[test]
    fn what_is_too_old_is_not_known_and_goes() {
        let mut lately = Lately::new(100, Duration::from_secs(60));
        lately.insert(1, "one");
        age(&mut lately);
        lately.insert(2, "two");
        assert_eq!((lately.get(&1), lately.get(&2), lately.get(&3)), (Some("one"), Some("two"), None));
        lately.sweep();
        assert_eq!(lately.kept.len(), 2);
        age(&mut lately);
        assert_eq!((lately.get(&1), lately.get(&2)), (None, Some("two")));
        lately.sweep();
        assert_eq!(lately.kept.len(), 1);
        lately.insert(1, "again");
        assert_eq!(lately.get(&1), Some("again"));
        lately.remove(&1);
        assert_eq!(lately.get(&1), None);
    }

    #[test]
    fn what_is_merged_is_as_young_as_the_last_of_it() {
        let mut lately = Lately::new(100, Duration::from_secs(60));
        let merge = |lately: &mut Lately<u8, u8>, value| {
            lately.merge(&1, value, |known, learned| *known.max(learned));
            lately.get(&1)
        };
        assert_eq!(merge(&mut lately, 5), Some(5));
        age(&mut lately);
        assert_eq!(merge(&mut lately, 3), Some(5));
        age(&mut lately);
        assert_eq!(lately.get(&1), Some(5));
        age(&mut lately);
        assert_eq!(merge(&mut lately, 3), Some(3), "the five is too old to count");
    }

    #[test]
    fn there_are_never_many_more_than_it_keeps() {
        let lately = Lately::new(1000, Duration::MAX);
        (0..10_000u32).for_each(|key| lately.insert(key, ()));
        assert!((900..=1100).contains(&lately.kept.len()), "{}", lately.kept.len());
        assert_eq!(lately.get(&9999), Some(()), "what comes last is kept");
    }
}
