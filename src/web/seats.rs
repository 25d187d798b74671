//! Limits on concurrent long-lived resources per key. Dropping a seat frees it.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;

/// The taken seats by key; keys without seats are removed. Clones share the same state.
pub struct Seats<K: Eq + Hash>(Arc<DashMap<K, u32>>);

/// A seat; it is taken until this is dropped.
pub struct Seat<K: Eq + Hash> {
    of: Seats<K>,
    key: K,
}

impl<K: Eq + Hash> Default for Seats<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash> Clone for Seats<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> Seats<K> {
    /// Takes one of `most` seats (at least one) of a key, if one is free.
    pub fn take(&self, key: K, most: u32) -> Option<Seat<K>> {
        let mut taken = self.0.entry(key.clone()).or_insert(0);
        if *taken >= most {
            return None;
        }
        *taken += 1;
        drop(taken);
        Some(Seat { of: self.clone(), key })
    }

    /// The number of keys with taken seats.
    #[cfg(test)]
    pub fn keys(&self) -> usize {
        self.0.len()
    }
}

impl<K: Eq + Hash> Drop for Seat<K> {
    fn drop(&mut self) {
        if let Some(mut taken) = self.of.0.get_mut(&self.key) {
            *taken = taken.saturating_sub(1);
        }
        self.of.0.remove_if(&self.key, |_, taken| *taken == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_so_many_and_what_is_dropped_is_free_again_and_not_held() {
        let seats = Seats::default();
        let first = seats.take("a", 2).expect("one");
        let second = seats.clone().take("a", 2).expect("two");
        assert!(seats.take("a", 2).is_none());
        let other = seats.take("b", 2).expect("of another key");
        drop(first);
        let third = seats.take("a", 2).expect("the first one's");
        assert!(seats.take("a", 2).is_none());
        drop((second, third, other));
        assert_eq!(seats.keys(), 0);
    }
}
