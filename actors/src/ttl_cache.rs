//! A cache with a bound and a time to live: for what was looked up and may be asked again, and for what is counted by
//! the minute.
//!
//! Every hot conversation has some entries, so what one costs counts: little more than its key and its value.

use std::hash::{Hash, RandomState};
use std::time::{Duration, Instant};

use quick_cache::sync::{Cache, DefaultLifecycle, EntryAction, EntryResult};
use quick_cache::{UnitWeighter, Weighter};

/// A bounded number of entries, or of bytes with [`TtlCache::weighted`]; none is answered beyond its time to live. The
/// bound holds for each of its shards: one that is full drops entries while another has room.
pub struct TtlCache<K, V, W = UnitWeighter> {
    // Strangers choose some of the keys, so they are hashed with a secret.
    entries: Cache<K, Dated<V>, W, RandomState>,
    ttl: Duration,
    began: Instant,
}

/// A value with the time of its insertion.
#[derive(Clone)]
pub struct Dated<V> {
    value: V,
    /// Seconds from the cache's beginning.
    at_s: u32,
}

/// What an entry weighs, by its key and value.
#[derive(Clone)]
pub struct Weigh<F>(F);

impl<K, V, F: Fn(&K, &V) -> u64> Weighter<K, Dated<V>> for Weigh<F> {
    fn weight(&self, key: &K, dated: &Dated<V>) -> u64 {
        // What weighs nothing would never be dropped.
        self.0(key, &dated.value).max(1)
    }
}

impl<K: Eq + Hash + Clone, V: Clone> TtlCache<K, V> {
    /// Holds about this many entries at most, each for no longer than this.
    pub fn new(entries_max: usize, ttl: Duration) -> Self {
        Self::with(entries_max, u64::try_from(entries_max).unwrap_or(u64::MAX), UnitWeighter, ttl)
    }
}

impl<K: Eq + Hash + Clone, V: Clone, F: Fn(&K, &V) -> u64 + Clone> TtlCache<K, V, Weigh<F>> {
    /// Holds entries of this weight together at most, as `weigh` says, each for no longer than this. An entry may be as
    /// heavy as 32 usual ones; a heavier one may find no room.
    pub fn weighted(entries_usual: usize, weight_max: u64, ttl: Duration, weigh: F) -> Self {
        Self::with(entries_usual, weight_max, Weigh(weigh), ttl)
    }
}

impl<K: Eq + Hash + Clone, V: Clone, W: Weighter<K, Dated<V>> + Clone> TtlCache<K, V, W> {
    fn with(entries_usual: usize, weight_max: u64, weighter: W, ttl: Duration) -> Self {
        let entries = Cache::with(entries_usual, weight_max, weighter, RandomState::new(), DefaultLifecycle::default());
        Self { entries, ttl, began: Instant::now() }
    }

    /// The value, if it is not too old.
    pub fn get(&self, key: &K) -> Option<V> {
        let now_s = self.now_s();
        self.entries.get(key).filter(|dated| self.is_fresh(dated, now_s)).map(|dated| dated.value)
    }

    /// The value, if it is not too old, or a new one. What is found gets no younger.
    pub fn get_or_insert_with(&self, key: &K, new: impl FnOnce() -> V) -> V {
        let now_s = self.now_s();
        let entry = self.entries.entry(key, None, |_, dated| {
            if self.is_fresh(dated, now_s) {
                EntryAction::Retain(dated.value.clone())
            } else {
                EntryAction::ReplaceWithGuard
            }
        });
        let guard = match entry {
            EntryResult::Retained(value) => return value,
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => Some(guard),
            // Neither is asked for above.
            EntryResult::Removed(..) | EntryResult::Timeout => None,
        };
        let value = new();
        if let Some(guard) = guard {
            // Refused when it was inserted meanwhile: that is as new.
            let _ = guard.insert(Dated { value: value.clone(), at_s: now_s });
        }
        value
    }

    /// Inserts a value, whatever there was.
    pub fn insert(&self, key: K, value: V) {
        self.entries.insert(key, Dated { value, at_s: self.now_s() });
    }

    /// Inserts what `of` makes of the value there is and this one.
    pub fn merge(&self, key: &K, value: V, of: impl FnOnce(&V, &V) -> V) {
        let now_s = self.now_s();
        let entry = self.entries.entry(key, None, |_, dated| {
            let value = if self.is_fresh(dated, now_s) { of(&dated.value, &value) } else { value.clone() };
            *dated = Dated { value, at_s: now_s };
            EntryAction::Retain(())
        });
        if let EntryResult::Vacant(guard) = entry {
            // Refused when it was inserted meanwhile: that is as new.
            let _ = guard.insert(Dated { value, at_s: now_s });
        }
    }

    /// Removes an entry.
    pub fn remove(&self, key: &K) {
        self.entries.remove(key);
    }

    /// Removes every entry whose key `which` picks.
    pub fn remove_where(&self, which: impl Fn(&K) -> bool) {
        self.entries.retain(|key, _| !which(key));
    }

    /// Removes whatever is too old.
    pub fn sweep(&self) {
        let now_s = self.now_s();
        self.entries.retain(|_, dated| self.is_fresh(dated, now_s));
    }

    fn now_s(&self) -> u32 {
        u32::try_from(self.began.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    fn is_fresh(&self, dated: &Dated<V>, now_s: u32) -> bool {
        u64::from(now_s.saturating_sub(dated.at_s)) <= self.ttl.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a minute does.
    fn age<V, W>(cache: &mut TtlCache<u8, V, W>) {
        cache.began -= Duration::from_secs(60);
    }

    #[test]
    fn what_is_too_old_is_not_answered_and_goes() {
        let mut cache = TtlCache::new(100, Duration::from_secs(60));
        cache.insert(1, "one");
        age(&mut cache);
        cache.insert(2, "two");
        assert_eq!((cache.get(&1), cache.get(&2), cache.get(&3)), (Some("one"), Some("two"), None));
        cache.sweep();
        assert_eq!(cache.entries.len(), 2);
        age(&mut cache);
        assert_eq!((cache.get(&1), cache.get(&2)), (None, Some("two")));
        cache.sweep();
        assert_eq!(cache.entries.len(), 1);
        cache.insert(1, "again");
        assert_eq!(cache.get(&1), Some("again"));
        cache.remove(&1);
        assert_eq!(cache.get(&1), None);
        (0..10).for_each(|key| cache.insert(key, "many"));
        cache.remove_where(|key| *key < 9);
        assert_eq!((cache.entries.len(), cache.get(&9)), (1, Some("many")));
    }

    #[test]
    fn what_is_merged_is_as_young_as_the_last_of_it() {
        let mut cache = TtlCache::new(100, Duration::from_secs(60));
        let merge = |cache: &mut TtlCache<u8, u8>, value| {
            cache.merge(&1, value, |known, learned| *known.max(learned));
            cache.get(&1)
        };
        assert_eq!(merge(&mut cache, 5), Some(5));
        age(&mut cache);
        assert_eq!(merge(&mut cache, 3), Some(5));
        age(&mut cache);
        assert_eq!(cache.get(&1), Some(5));
        age(&mut cache);
        assert_eq!(merge(&mut cache, 3), Some(3), "the five is too old to count");
    }

    #[test]
    fn what_is_found_gets_no_younger_and_what_is_too_old_is_made_anew() {
        let mut cache = TtlCache::new(100, Duration::from_secs(60));
        let mut made = 0;
        let mut found = |cache: &TtlCache<u8, i32>| {
            cache.get_or_insert_with(&1, || {
                made += 1;
                made
            })
        };
        assert_eq!(found(&cache), 1);
        age(&mut cache);
        assert_eq!(found(&cache), 1);
        age(&mut cache);
        assert_eq!(found(&cache), 2, "its time began with its insertion");
        assert_eq!(found(&cache), 2);
        assert_eq!(cache.get(&1), Some(2));
    }

    #[test]
    fn threads_that_ask_at_once_are_given_the_same_value() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicU32, Ordering};

        let cache: TtlCache<u8, Arc<AtomicU32>> = TtlCache::new(100, Duration::MAX);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for key in (0..50).cycle().take(1000) {
                        cache.get_or_insert_with(&key, Arc::default).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let counted: Vec<_> =
            (0..50).map(|key| cache.get(&key).map_or(0, |count| count.load(Ordering::Relaxed))).collect();
        assert_eq!(counted, [8 * 1000 / 50; 50]);
    }

    #[test]
    fn there_are_never_many_more_than_it_holds() {
        let cache = TtlCache::new(1000, Duration::MAX);
        (0..10_000u32).for_each(|key| cache.insert(key, ()));
        assert!((900..=1100).contains(&cache.entries.len()), "{}", cache.entries.len());
        assert_eq!(cache.get(&9999), Some(()), "what comes last is there");
    }

    #[test]
    fn weights_bound_it_where_they_are_given() {
        let cache = TtlCache::weighted(64, 1000, Duration::MAX, |_: &u32, value: &&str| value.len() as u64);
        (0..1000).for_each(|key| cache.insert(key, "ten bytes."));
        assert!((50..=100).contains(&cache.entries.len()), "{}", cache.entries.len());
        assert!(cache.entries.weight() <= 1000);
        (1000..3000).for_each(|key| cache.insert(key, ""));
        assert!(cache.entries.len() <= 1000, "what weighs nothing is bounded as well");
    }
}
