//! Limits how many bytes are in memory at a time, in total and by key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, timeout_at};

/// Limits on the bytes of all keys.
#[derive(Clone, Copy, Debug)]
pub struct BudgetLimits {
    /// Maximum bytes of all keys together.
    pub all: usize,
    /// Bytes beyond `all` that only keys with small usage may use, so that these do not wait for other keys.
    pub reserved: usize,
    /// Maximum bytes of a key whose usage counts as small.
    pub small: usize,
}

impl BudgetLimits {
    /// A total without a reserve.
    pub fn new(all: usize) -> Self {
        Self { all, reserved: 0, small: 0 }
    }
}

/// A budget of bytes by key. A reservation may count for several keys, such as an address and a company. Clones share
/// the same state.
///
/// A reservation larger than a share fits when nothing else of the share is in use: what cannot be made smaller is
/// served alone.
pub struct KeyedBudget<K>(Arc<Inner<K>>);

struct Inner<K> {
    limits: BudgetLimits,
    share: Box<dyn Fn(&K) -> usize + Send + Sync>,
    usage: Mutex<Usage<K>>,
    released: Notify,
}

struct Usage<K> {
    all: usize,
    /// The bytes of each key that uses any.
    by_key: HashMap<K, usize>,
}

/// Reserved bytes; dropping them releases them.
pub struct ReservedBytes<K: Eq + Hash> {
    owner: KeyedBudget<K>,
    keys: Vec<K>,
    bytes: usize,
}

impl<K> Clone for KeyedBudget<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> KeyedBudget<K> {
    /// A budget; `share` returns the maximum bytes of a key.
    pub fn new(limits: BudgetLimits, share: impl Fn(&K) -> usize + Send + Sync + 'static) -> Self {
        let usage = Mutex::new(Usage { all: 0, by_key: HashMap::new() });
        Self(Arc::new(Inner { limits, share: Box::new(share), usage, released: Notify::new() }))
    }

    /// A reservation of no bytes, which can grow.
    pub fn empty_reservation(&self, keys: Vec<K>) -> ReservedBytes<K> {
        ReservedBytes { owner: self.clone(), keys, bytes: 0 }
    }

    /// Reserves bytes; `None` if they are not available now.
    pub fn try_reserve(&self, keys: Vec<K>, bytes: usize) -> Option<ReservedBytes<K>> {
        let mut reservation = self.empty_reservation(keys);
        reservation.try_grow(bytes).then_some(reservation)
    }

    /// Reserves bytes, and waits at most `wait` for them; `None` if they are not available by then.
    pub async fn reserve(&self, keys: Vec<K>, bytes: usize, wait: Duration) -> Option<ReservedBytes<K>> {
        let deadline = Instant::now() + wait;
        let mut reservation = self.empty_reservation(keys);
        loop {
            // Created before the check, so that no release is missed in between.
            let released = self.released();
            if reservation.try_grow(bytes) {
                return Some(reservation);
            }
            timeout_at(deadline, released).await.ok()?;
        }
    }

    /// Completes at the next release of bytes. Create it before you request bytes.
    pub fn released(&self) -> Notified<'_> {
        self.0.released.notified()
    }

    /// The bytes in use.
    pub fn used(&self) -> usize {
        self.0.usage.lock().all
    }

    /// The bytes that a key uses.
    pub fn used_by(&self, key: &K) -> usize {
        self.0.usage.lock().bytes_of(key)
    }

    /// The number of keys that use any bytes.
    pub fn key_count(&self) -> usize {
        self.0.usage.lock().by_key.len()
    }
}

impl<K: Eq + Hash> Usage<K> {
    fn bytes_of(&self, key: &K) -> usize {
        self.by_key.get(key).copied().unwrap_or_default()
    }

    fn fits(&self, budget: &Inner<K>, keys: &[K], bytes: usize) -> bool {
        let fits_share = |used: usize, share: usize| used + bytes.min(share) <= share;
        let largest_usage = keys.iter().map(|key| self.bytes_of(key)).max().unwrap_or_default();
        let is_small = largest_usage + bytes <= budget.limits.small;
        let reserved = if is_small { budget.limits.reserved } else { 0 };
        fits_share(self.all, budget.limits.all + reserved)
            && keys.iter().all(|key| fits_share(self.bytes_of(key), (budget.share)(key)))
    }
}

impl<K: Eq + Hash> ReservedBytes<K> {
    /// The reserved bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves this many more bytes. Returns false, and reserves nothing, if they are not available now.
    pub fn try_grow(&mut self, bytes: usize) -> bool
    where
        K: Clone,
    {
        let budget = &*self.owner.0;
        let mut usage = budget.usage.lock();
        if !usage.fits(budget, &self.keys, bytes) {
            return false;
        }
        if bytes > 0 {
            usage.all += bytes;
            for key in &self.keys {
                *usage.by_key.entry(key.clone()).or_default() += bytes;
            }
        }
        self.bytes += bytes;
        true
    }

    /// Releases all but this many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes);
        if excess == 0 {
            return;
        }
        self.bytes -= excess;
        let mut usage = self.owner.0.usage.lock();
        usage.all -= excess;
        for key in &self.keys {
            if let Some(used) = usage.by_key.get_mut(key) {
                *used -= excess;
                if *used == 0 {
                    usage.by_key.remove(key);
                }
            }
        }
        drop(usage);
        self.owner.0.released.notify_waiters();
    }
}

impl<K: Eq + Hash> Drop for ReservedBytes<K> {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A failed expectation fails the test.
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WAIT: Duration = Duration::from_secs(2);
    const LIMITS: BudgetLimits = BudgetLimits { all: 100, reserved: 20, small: 10 };

    /// Keys below ten have a share of 40 bytes, the others one of 60.
    fn share(key: &u8) -> usize {
        if *key < 10 { 40 } else { 60 }
    }

    #[test]
    fn the_total_and_each_key_are_limited_and_small_usage_has_a_reserve() {
        let budget = KeyedBudget::new(LIMITS, share);
        let first = budget.try_reserve(vec![1, 11], 40).expect("a whole share");
        assert!(budget.try_reserve(vec![1, 12], 1).is_none(), "the share of the first key is used up");
        let second = budget.try_reserve(vec![2, 11], 20).expect("the rest of the other key");
        assert!(budget.try_reserve(vec![3, 11], 1).is_none());
        let third = budget.try_reserve(vec![4, 12], 40).expect("the rest of the total");
        assert!(budget.try_reserve(vec![5, 13], 11).is_none(), "the total is used up");
        let small = budget.try_reserve(vec![5, 13], 10).expect("small usage");
        assert!(budget.try_reserve(vec![5, 13], 1).is_none(), "the usage would no longer be small");
        assert_eq!((budget.used(), budget.used_by(&11), budget.key_count()), (110, 60, 7));
        drop((first, second, third, small));
        assert_eq!((budget.used(), budget.key_count()), (0, 0));
    }

    #[test]
    fn a_reservation_larger_than_a_share_fits_alone() {
        let budget = KeyedBudget::new(LIMITS, share);
        let large = budget.try_reserve(vec![1], 1_000).expect("nothing else is in use");
        assert!(budget.try_reserve(vec![1], 1).is_none() && budget.try_reserve(vec![2], 11).is_none());
        drop(large);
        let small = budget.try_reserve(vec![1], 1).expect("a reservation");
        assert!(budget.try_reserve(vec![1], 1_000).is_none(), "not beside another reservation");
        drop(small);
        assert!(budget.try_reserve(vec![1], 1_000).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reservation_waits_for_a_release_and_not_forever() {
        let budget = KeyedBudget::new(LIMITS, share);
        let mut first = budget.try_reserve(vec![1], 40).expect("a share");
        let waiting = tokio::spawn({
            let budget = budget.clone();
            async move { budget.reserve(vec![1], 30, WAIT).await.map(|reservation| reservation.bytes()) }
        });
        tokio::task::yield_now().await;
        first.shrink_to(10);
        assert_eq!(waiting.await.expect("a task"), Some(30));
        let started = Instant::now();
        assert!(budget.reserve(vec![1], 31, WAIT).await.is_none());
        assert_eq!((started.elapsed(), budget.used()), (WAIT, 10));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Reserve(Vec<u8>, usize),
        Grow(usize, usize),
        Shrink(usize, usize),
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let keys = || prop::sample::subsequence(vec![1_u8, 2, 11, 12], 0..=2);
        prop_oneof![
            2 => (keys(), 0..70_usize).prop_map(|(keys, bytes)| Step::Reserve(keys, bytes)),
            1 => (any::<usize>(), 0..50_usize).prop_map(|(index, bytes)| Step::Grow(index, bytes)),
            1 => (any::<usize>(), 0..50_usize).prop_map(|(index, bytes)| Step::Shrink(index, bytes)),
            1 => any::<usize>().prop_map(Step::Release),
        ]
    }

    /// Whether the bytes fit beside these reservations, calculated without the budget.
    fn fits(reservations: &[ReservedBytes<u8>], keys: &[u8], bytes: usize) -> bool {
        let bytes_of = |key: u8| -> usize {
            reservations.iter().filter(|reservation| reservation.keys.contains(&key)).map(ReservedBytes::bytes).sum()
        };
        let all: usize = reservations.iter().map(ReservedBytes::bytes).sum();
        let is_small = keys.iter().all(|key| bytes_of(*key) + bytes <= LIMITS.small) && bytes <= LIMITS.small;
        let all_max = if is_small { LIMITS.all + LIMITS.reserved } else { LIMITS.all };
        // Within the limit, or alone.
        let fits_share = |used: usize, share: usize| used + bytes <= share || (used == 0 && bytes > share);
        fits_share(all, all_max) && keys.iter().all(|key| fits_share(bytes_of(*key), share(key)))
    }

    proptest! {
        #[test]
        fn the_budget_agrees_with_a_plain_sum(steps in prop::collection::vec(step(), 0..200)) {
            let budget = KeyedBudget::new(LIMITS, share);
            let mut reservations: Vec<ReservedBytes<u8>> = Vec::new();
            for step in steps {
                let count = reservations.len().max(1);
                match step {
                    Step::Reserve(keys, bytes) => {
                        let has_room = fits(&reservations, &keys, bytes);
                        let reservation = budget.try_reserve(keys, bytes);
                        prop_assert_eq!(reservation.is_some(), has_room);
                        reservations.extend(reservation);
                    }
                    Step::Grow(index, bytes) => if let Some(reservation) = reservations.get(index % count) {
                        let has_room = fits(&reservations, &reservation.keys, bytes);
                        prop_assert_eq!(reservations[index % count].try_grow(bytes), has_room);
                    },
                    Step::Shrink(index, bytes) => if let Some(reservation) = reservations.get_mut(index % count) {
                        let before = reservation.bytes();
                        reservation.shrink_to(bytes);
                        prop_assert_eq!(reservation.bytes(), before.min(bytes));
                    },
                    Step::Release(index) if !reservations.is_empty() => drop(reservations.swap_remove(index % count)),
                    Step::Release(_) => {}
                }
                let used = reservations.iter().filter(|reservation| reservation.bytes > 0);
                let keys: std::collections::HashSet<u8> = used.flat_map(|reservation| reservation.keys.clone()).collect();
                let all: usize = reservations.iter().map(ReservedBytes::bytes).sum();
                prop_assert_eq!((budget.used(), budget.key_count()), (all, keys.len()));
            }
        }
    }
}
