//! A set of locks by key. A lock exists only while it is held or waited for.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The set of locks. Clones share it.
pub struct KeyedLocks<K>(Arc<DashMap<K, Arc<Mutex<()>>>>);

/// The lock of a key, held until this is dropped.
pub struct KeyedGuard<K: Clone + Eq + Hash> {
    locks: KeyedLocks<K>,
    key: K,
    /// The key's mutex; `None` once it is released.
    lock: Option<Arc<Mutex<()>>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl<K> Clone for KeyedLocks<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash> Default for KeyedLocks<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash> KeyedLocks<K> {
    /// Waits for the lock of this key. A caller that stops waiting leaves nothing behind.
    pub async fn lock(&self, key: K) -> KeyedGuard<K> {
        let lock = self.0.entry(key.clone()).or_default().clone();
        let mut guard = KeyedGuard { locks: self.clone(), key, lock: Some(lock.clone()), guard: None };
        guard.guard = Some(lock.lock_owned().await);
        guard
    }

    /// The number of keys whose lock is held or waited for.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no lock is held or waited for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Clone + Eq + Hash> KeyedGuard<K> {
    /// The locked key.
    pub fn key(&self) -> &K {
        &self.key
    }
}

impl<K: Clone + Eq + Hash> Drop for KeyedGuard<K> {
    fn drop(&mut self) {
        drop(self.guard.take());
        drop(self.lock.take());
        // The map has one reference; while holders or waiters have others, the lock stays.
        self.locks.0.remove_if(&self.key, |_, lock| Arc::strong_count(lock) == 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::poll_immediate;

    use super::*;

    #[tokio::test]
    async fn each_key_has_a_lock_of_its_own() {
        let locks = KeyedLocks::default();
        let first = locks.lock("a").await;
        let other = locks.lock("b").await;
        let mut second = Box::pin(locks.lock("a"));
        assert!(poll_immediate(&mut second).await.is_none(), "two callers hold the lock of a key");
        assert_eq!(locks.len(), 2);
        drop(first);
        assert_eq!(locks.len(), 2, "a lock with a waiter was removed");
        let second = second.await;
        assert_eq!((*second.key(), locks.len()), ("a", 2));
        drop((second, other));
        assert!(locks.is_empty());
    }

    #[tokio::test]
    async fn a_canceled_waiter_leaves_no_lock_behind() {
        for is_first_dropped_first in [false, true] {
            let locks = KeyedLocks::default();
            let first = locks.lock("a").await;
            let mut second = Box::pin(locks.lock("a"));
            assert!(poll_immediate(&mut second).await.is_none());
            if is_first_dropped_first {
                drop(first);
                drop(second);
            } else {
                drop(second);
                drop(first);
            }
            assert!(locks.is_empty());
        }
    }
}
