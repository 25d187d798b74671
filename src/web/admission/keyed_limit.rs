//! Limits on concurrent long-lived resources per key.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;

/// The permits in use by key; keys without permits are removed. Clones share the same state.
pub struct KeyedLimit<K: Eq + Hash>(Arc<DashMap<K, u32>>);

/// A permit; dropping it releases it.
pub struct KeyedPermit<K: Eq + Hash> {
    limit: KeyedLimit<K>,
    key: K,
}

impl<K: Eq + Hash> Default for KeyedLimit<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> Clone for KeyedLimit<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> KeyedLimit<K> {
    /// Acquires one of `max` permits (at least one) of a key, if one is free.
    pub fn try_acquire(&self, key: K, max: u32) -> Option<KeyedPermit<K>> {
        let mut count = self.0.entry(key.clone()).or_insert(0);
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(count);
        Some(KeyedPermit { limit: self.clone(), key })
    }

    /// The number of keys with permits in use.
    #[cfg(test)]
    pub fn keys(&self) -> usize {
        self.0.len()
    }
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        if let Some(mut count) = self.limit.0.get_mut(&self.key) {
            *count = count.saturating_sub(1);
        }
        self.limit.0.remove_if(&self.key, |_, count| *count == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_permits_and_a_dropped_one_is_free_again() {
        let limit = KeyedLimit::default();
        let first = limit.try_acquire("a", 2).expect("one");
        let second = limit.clone().try_acquire("a", 2).expect("two");
        assert!(limit.try_acquire("a", 2).is_none());
        let other = limit.try_acquire("b", 2).expect("of another key");
        drop(first);
        let third = limit.try_acquire("a", 2).expect("the first one's");
        assert!(limit.try_acquire("a", 2).is_none());
        drop((second, third, other));
        assert_eq!(limit.keys(), 0);
    }
}
