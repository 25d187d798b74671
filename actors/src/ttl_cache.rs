//! A bounded cache with a time to live: for values that can be looked up again, and for counts per minute.
//!
//! Every hot ticket has some entries, so an entry must be small: little more than its key and value.

use std::hash::{Hash, RandomState};
use std::time::{Duration, Instant};

use quick_cache::sync::{Cache, DefaultLifecycle, EntryAction, EntryResult};
use quick_cache::{UnitWeighter, Weighter};

use crate::clock;

/// A cache bounded by its number of entries, or by their total weight with [`TtlCache::weighted`]. Entries older than
/// the time to live are not returned. The bound applies to each shard: a full shard evicts entries while another has
/// room.
pub struct TtlCache<K, V, W = UnitWeighter> {
    // Hashed with a random seed, because clients choose some of the keys.
    entries: Cache<K, TimedValue<V>, W, RandomState>,
    ttl: Duration,
    created_at: Instant,
}

/// A value with the time of its insertion.
#[derive(Clone)]
pub struct TimedValue<V> {
    value: V,
    /// Seconds since the cache was created.
    inserted_at_s: u32,
}

/// The weight of an entry, by its key and value.
#[derive(Clone)]
pub struct WeightFn<F>(F);

impl<K, V, F: Fn(&K, &V) -> u64> Weighter<K, TimedValue<V>> for WeightFn<F> {
    fn weight(&self, key: &K, entry: &TimedValue<V>) -> u64 {
        // An entry of weight 0 would never be evicted.
        self.0(key, &entry.value).max(1)
    }
}

impl<K: Eq + Hash + Clone, V: Clone> TtlCache<K, V> {
    /// A cache of about this many entries, each kept for at most this time.
    pub fn new(entries_max: usize, ttl: Duration) -> Self {
        Self::with_weighter(entries_max, u64::try_from(entries_max).unwrap_or(u64::MAX), UnitWeighter, ttl)
    }
}

impl<K: Eq + Hash + Clone, V: Clone, F: Fn(&K, &V) -> u64 + Clone> TtlCache<K, V, WeightFn<F>> {
    /// A cache of entries up to a total weight, each weighed by `weigh` and kept for at most this time. An entry that
    /// weighs more than about 32 times the average, `weight_max / entries_expected`, may not be stored.
    pub fn weighted(entries_expected: usize, weight_max: u64, ttl: Duration, weigh: F) -> Self {
        Self::with_weighter(entries_expected, weight_max, WeightFn(weigh), ttl)
    }
}

impl<K: Eq + Hash + Clone, V: Clone, W: Weighter<K, TimedValue<V>> + Clone> TtlCache<K, V, W> {
    fn with_weighter(entries_expected: usize, weight_max: u64, weighter: W, ttl: Duration) -> Self {
        let entries =
            Cache::with(entries_expected, weight_max, weighter, RandomState::new(), DefaultLifecycle::default());
        Self { entries, ttl, created_at: clock::instant() }
    }

    /// The value, if it has not expired.
    pub fn get(&self, key: &K) -> Option<V> {
        let now_s = self.now_s();
        self.entries.get(key).filter(|entry| self.is_fresh(entry, now_s)).map(|entry| entry.value)
    }

    /// The value, if it has not expired, or a new one. A read does not extend the time to live.
    pub fn get_or_insert_with(&self, key: &K, create: impl FnOnce() -> V) -> V {
        let now_s = self.now_s();
        let result = self.entries.entry(key, None, |_, entry| {
            if self.is_fresh(entry, now_s) {
                EntryAction::Retain(entry.value.clone())
            } else {
                EntryAction::ReplaceWithGuard
            }
        });
        let guard = match result {
            EntryResult::Retained(value) => return value,
            EntryResult::Vacant(guard) | EntryResult::Replaced(guard, _) => Some(guard),
            // The closure above never returns these.
            EntryResult::Removed(..) | EntryResult::Timeout => None,
        };
        let value = create();
        if let Some(guard) = guard {
            // Fails if another value was inserted meanwhile, which is as new.
            let _ = guard.insert(TimedValue { value: value.clone(), inserted_at_s: now_s });
        }
        value
    }

    /// Inserts or replaces a value.
    pub fn insert(&self, key: K, value: V) {
        self.entries.insert(key, TimedValue { value, inserted_at_s: self.now_s() });
    }

    /// Inserts a value, or merges it into the existing one with `combine`, which gets the existing value first.
    pub fn merge(&self, key: &K, value: V, combine: impl FnOnce(&V, &V) -> V) {
        let now_s = self.now_s();
        let result = self.entries.entry(key, None, |_, entry| {
            let value = if self.is_fresh(entry, now_s) { combine(&entry.value, &value) } else { value.clone() };
            *entry = TimedValue { value, inserted_at_s: now_s };
            EntryAction::Retain(())
        });
        if let EntryResult::Vacant(guard) = result {
            // Fails if another value was inserted meanwhile, which is as new.
            let _ = guard.insert(TimedValue { value, inserted_at_s: now_s });
        }
    }

    /// Removes an entry.
    pub fn remove(&self, key: &K) {
        self.entries.remove(key);
    }

    /// Removes every entry whose key matches.
    pub fn remove_where(&self, matches: impl Fn(&K) -> bool) {
        self.entries.retain(|key, _| !matches(key));
    }

    /// Removes expired entries.
    pub fn sweep(&self) {
        let now_s = self.now_s();
        self.entries.retain(|_, entry| self.is_fresh(entry, now_s));
    }

    fn now_s(&self) -> u32 {
        u32::try_from(clock::instant().saturating_duration_since(self.created_at).as_secs()).unwrap_or(u32::MAX)
    }

    fn is_fresh(&self, entry: &TimedValue<V>, now_s: u32) -> bool {
        u64::from(now_s.saturating_sub(entry.inserted_at_s)) <= self.ttl.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stops the clock: only [`pass_minute`] makes entries older, however slow the machine is.
    fn stop_clock() {
        #[cfg(feature = "failpoints")]
        clock::stop();
    }

    /// Makes all entries a minute older.
    fn pass_minute<V, W>(cache: &mut TtlCache<u8, V, W>) {
        cache.created_at -= Duration::from_secs(60);
    }

    #[test]
    fn an_expired_entry_is_not_returned_and_is_swept() {
        stop_clock();
        let mut cache = TtlCache::new(100, Duration::from_secs(60));
        cache.insert(1, "one");
        pass_minute(&mut cache);
        cache.insert(2, "two");
        assert_eq!((cache.get(&1), cache.get(&2), cache.get(&3)), (Some("one"), Some("two"), None));
        cache.sweep();
        assert_eq!(cache.entries.len(), 2);
        pass_minute(&mut cache);
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
    fn a_merged_entry_has_the_age_of_its_last_value() {
        stop_clock();
        let mut cache = TtlCache::new(100, Duration::from_secs(60));
        let merge = |cache: &mut TtlCache<u8, u8>, value| {
            cache.merge(&1, value, |old, new| *old.max(new));
            cache.get(&1)
        };
        assert_eq!(merge(&mut cache, 5), Some(5));
        pass_minute(&mut cache);
        assert_eq!(merge(&mut cache, 3), Some(5));
        pass_minute(&mut cache);
        assert_eq!(cache.get(&1), Some(5));
        pass_minute(&mut cache);
        assert_eq!(merge(&mut cache, 3), Some(3), "the earlier value has expired");
    }

    #[test]
    fn a_read_does_not_extend_the_time_to_live() {
        stop_clock();
        let mut cache = TtlCache::new(100, Duration::from_secs(60));
        let mut created = 0;
        let mut get = |cache: &TtlCache<u8, i32>| {
            cache.get_or_insert_with(&1, || {
                created += 1;
                created
            })
        };
        assert_eq!(get(&cache), 1);
        pass_minute(&mut cache);
        assert_eq!(get(&cache), 1);
        pass_minute(&mut cache);
        assert_eq!(get(&cache), 2, "the time to live begins with the insertion");
        assert_eq!(get(&cache), 2);
        assert_eq!(cache.get(&1), Some(2));
    }

    #[test]
    fn concurrent_callers_get_the_same_value() {
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
    fn the_number_of_entries_is_bounded() {
        let cache = TtlCache::new(1000, Duration::MAX);
        (0..10_000u32).for_each(|key| cache.insert(key, ()));
        assert!((900..=1100).contains(&cache.entries.len()), "{}", cache.entries.len());
        assert_eq!(cache.get(&9999), Some(()), "the last entry is cached");
    }

    #[test]
    fn the_total_weight_is_bounded() {
        let cache = TtlCache::weighted(64, 1000, Duration::MAX, |_: &u32, value: &&str| value.len() as u64);
        (0..1000).for_each(|key| cache.insert(key, "ten bytes."));
        assert!((50..=100).contains(&cache.entries.len()), "{}", cache.entries.len());
        assert!(cache.entries.weight() <= 1000);
        (1000..3000).for_each(|key| cache.insert(key, ""));
        assert!(cache.entries.len() <= 1000, "entries without weight are bounded too");
    }
}
