//! Limits how many things run or are open at a time, in total and by key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::futures::Notified;
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::Denied;

/// Limits on permits, and on callers that wait for one.
#[derive(Clone, Copy, Debug)]
pub struct PermitLimits {
    all: usize,
    of_key: usize,
    /// The last permits of the total, which only keys without a permit get.
    reserved: usize,
    /// Maximum callers that wait for a permit of one key.
    waiting: usize,
    wait: Duration,
}

impl PermitLimits {
    /// At most `all` permits in total, and `of_key` of each key.
    pub fn new(all: usize, of_key: usize) -> Self {
        let [all, of_key] = [all, of_key].map(|permits| permits.min(Semaphore::MAX_PERMITS));
        Self { all, of_key, reserved: 0, waiting: 0, wait: Duration::ZERO }
    }

    /// At most this many permits of each key, without a total.
    pub fn of_key(of_key: usize) -> Self {
        Self::new(usize::MAX, of_key)
    }

    /// Reserves the last permits of the total for keys that have none. This affects only [`KeyedPermits::try_acquire`];
    /// callers that wait are limited to the share of their key.
    pub fn reserve(self, reserved: usize) -> Self {
        Self { reserved, ..self }
    }

    /// At most `waiting` callers may wait for a permit of one key, each for at most `wait`.
    pub fn wait(self, waiting: usize, wait: Duration) -> Self {
        Self { waiting, wait, ..self }
    }
}

/// Permits by key. Clones share the same state.
#[derive(Debug)]
pub struct KeyedPermits<K: Eq + Hash>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    limits: PermitLimits,
    all: Arc<Semaphore>,
    /// Keys that have permits, or wait for one.
    keys: Mutex<HashMap<K, KeyShare>>,
    released: Notify,
}

#[derive(Debug)]
struct KeyShare {
    permits: Arc<Semaphore>,
    /// Number of callers that have a permit or wait for one.
    callers: usize,
    /// Number of callers that wait for a permit.
    waiting: usize,
}

/// A permit; released when dropped.
#[derive(Debug)]
pub struct KeyedPermit<K: Eq + Hash> {
    /// The permit of the total, then that of the key: released in the reverse order of acquisition. `None` while
    /// the caller waits.
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    owner: KeyedPermits<K>,
    key: K,
}

impl<K: Eq + Hash> Clone for KeyedPermits<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> KeyedPermits<K> {
    /// Creates the permits, all of them free.
    pub fn new(limits: PermitLimits) -> Self {
        let all = Arc::new(Semaphore::new(limits.all));
        Self(Arc::new(Inner { limits, all, keys: Mutex::default(), released: Notify::new() }))
    }

    /// A permit of a key; `None` if none is free now.
    pub fn try_acquire(&self, key: K) -> Option<KeyedPermit<K>> {
        let Inner { limits, all, keys, .. } = &*self.0;
        // Locked throughout: two keys without a permit could otherwise both find the last permit free.
        let mut keys = keys.lock();
        let semaphore = keys.get(&key).map_or_else(|| limits.semaphore(), |share| share.permits.clone());
        let reserved = if semaphore.available_permits() == limits.of_key { 0 } else { limits.reserved };
        if all.available_permits() <= reserved {
            return None;
        }
        let key_permit = semaphore.clone().try_acquire_owned().ok()?;
        let total_permit = all.clone().try_acquire_owned().ok()?;
        keys.entry(key.clone()).or_insert_with(|| KeyShare::new(semaphore)).callers += 1;
        Some(KeyedPermit { permits: Some((total_permit, key_permit)), owner: self.clone(), key })
    }

    /// Waits for a permit of the key's share, then for one of the total. So a caller whose key has used up its share
    /// waits only for this key, and delays no other key.
    ///
    /// # Errors
    /// [`Denied`] when too many callers wait for the key already, or no permit was free in time.
    pub async fn acquire(&self, key: K) -> Result<KeyedPermit<K>, Denied> {
        let (semaphore, mut permit) = self.start_waiting(key)?;
        let acquire = async {
            let key_permit = semaphore.acquire_owned().await?;
            Ok::<_, AcquireError>((self.0.all.clone().acquire_owned().await?, key_permit))
        };
        let permits = timeout(self.0.limits.wait, acquire).await.map_err(|_| Denied::TooLong)?;
        permit.grant(permits.map_err(|_| Denied::Closed)?);
        Ok(permit)
    }

    /// Counts the caller as waiting; returns its key's semaphore and a permit that is not granted yet.
    fn start_waiting(&self, key: K) -> Result<(Arc<Semaphore>, KeyedPermit<K>), Denied> {
        let limits = &self.0.limits;
        let mut keys = self.0.keys.lock();
        if keys.get(&key).map_or(0, |share| share.waiting) >= limits.waiting {
            return Err(Denied::TooMany);
        }
        let share = keys.entry(key.clone()).or_insert_with(|| KeyShare::new(limits.semaphore()));
        share.callers += 1;
        share.waiting += 1;
        Ok((share.permits.clone(), KeyedPermit { permits: None, owner: self.clone(), key }))
    }

    /// Completes at the next release of a permit. Create it before you call [`KeyedPermits::try_acquire`].
    pub fn released(&self) -> Notified<'_> {
        self.0.released.notified()
    }

    /// The number of permits in use.
    pub fn in_use(&self) -> usize {
        self.0.limits.all - self.0.all.available_permits()
    }

    /// The number of callers that have a permit or wait for one.
    pub fn caller_count(&self) -> usize {
        self.0.keys.lock().values().map(|share| share.callers).sum()
    }

    /// The number of keys that have permits, or wait for one.
    pub fn key_count(&self) -> usize {
        self.0.keys.lock().len()
    }
}

impl PermitLimits {
    fn semaphore(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.of_key))
    }
}

impl KeyShare {
    fn new(permits: Arc<Semaphore>) -> Self {
        Self { permits, callers: 0, waiting: 0 }
    }
}

impl<K: Eq + Hash> KeyedPermit<K> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    fn grant(&mut self, permits: (OwnedSemaphorePermit, OwnedSemaphorePermit)) {
        if let Some(share) = self.owner.0.keys.lock().get_mut(&self.key) {
            share.waiting -= 1;
        }
        self.permits = Some(permits);
    }
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let was_granted = self.permits.take().is_some();
        let mut keys = self.owner.0.keys.lock();
        if let Some(share) = keys.get_mut(&self.key) {
            share.callers -= 1;
            share.waiting -= usize::from(!was_granted);
            if share.callers == 0 {
                keys.remove(&self.key);
            }
        }
        drop(keys);
        if was_granted {
            self.owner.0.released.notify_waiters();
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A failed expectation fails the test.
mod tests {
    use futures_util::FutureExt;
    use proptest::prelude::*;

    use super::*;

    const WAIT: Duration = Duration::from_secs(3);

    fn permits(limits: PermitLimits) -> KeyedPermits<u8> {
        KeyedPermits::new(limits)
    }

    #[test]
    fn the_last_permits_are_for_keys_without_any() {
        let permits = permits(PermitLimits::new(4, 4).reserve(1));
        let of_first: Vec<_> = std::iter::from_fn(|| permits.try_acquire(1)).collect();
        assert_eq!(of_first.len(), 3);
        let of_second = permits.try_acquire(2).expect("the reserved one");
        assert!(permits.try_acquire(2).is_none() && permits.try_acquire(3).is_none());
        assert_eq!((of_second.key(), permits.in_use(), permits.key_count()), (&2, 4, 2));
        drop((of_first, of_second));
        assert_eq!((permits.in_use(), permits.key_count()), (0, 0));
    }

    #[tokio::test]
    async fn callers_of_one_key_delay_others_by_at_most_its_share() {
        let permits = permits(PermitLimits::new(1, 2).wait(4, WAIT));
        let permit = permits.acquire(2).await.expect("a permit");
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire(1))).collect();
        for acquire in &mut waiting {
            assert!(acquire.as_mut().now_or_never().is_none());
        }
        let mut next = Box::pin(permits.acquire(3));
        assert!(next.as_mut().now_or_never().is_none());
        drop(permit);
        for acquire in waiting.drain(..2) {
            drop(acquire.await.expect("its turn"));
        }
        drop(next.await.expect("its turn is before the third caller of key 1"));
        drop(waiting);
        assert_eq!((permits.in_use(), permits.key_count()), (0, 0));
    }

    #[tokio::test]
    async fn the_number_of_waiting_callers_is_limited_and_one_that_is_dropped_makes_room() {
        let permits = permits(PermitLimits::new(9, 1).wait(2, WAIT));
        let permit = permits.acquire(1).await.expect("a permit");
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(permits.acquire(1))).collect();
        for acquire in &mut waiting {
            assert!(acquire.as_mut().now_or_never().is_none());
        }
        assert_eq!(permits.acquire(1).await.expect_err("too many"), Denied::TooMany);
        waiting.pop();
        let mut last = Box::pin(permits.acquire(1));
        assert!(last.as_mut().now_or_never().is_none(), "there is room to wait again");
        drop((waiting, permit));
        assert!(last.await.is_ok());
        assert_eq!(permits.key_count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn no_wait_exceeds_the_limit() {
        let permits = permits(PermitLimits::new(1, 1).wait(1, WAIT));
        let permit = permits.acquire(1).await.expect("a permit");
        assert_eq!(permits.acquire(1).await.expect_err("too long"), Denied::TooLong);
        assert_eq!(permits.acquire(2).await.expect_err("too long"), Denied::TooLong);
        assert_eq!(permits.key_count(), 1, "callers that gave up are not counted");
        drop(permit);
        assert!(permits.acquire(2).await.is_ok());
    }

    #[tokio::test]
    async fn a_release_notifies_those_that_wait_for_it() {
        let permits = permits(PermitLimits::of_key(1));
        let permit = permits.try_acquire(1).expect("a permit");
        let released = permits.released();
        assert!(permits.try_acquire(1).is_none());
        drop(permit);
        released.await;
        assert!(permits.try_acquire(1).is_some());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Acquire(u8),
        Release(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![2 => (0..4_u8).prop_map(Step::Acquire), 1 => any::<usize>().prop_map(Step::Release)]
    }

    proptest! {
        #[test]
        fn permits_agree_with_a_plain_count(
            all in 1..8_usize,
            of_key in 1..5_usize,
            reserved in 0..4_usize,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let permits = permits(PermitLimits::new(all, of_key).reserve(reserved));
            let mut acquired: Vec<KeyedPermit<u8>> = Vec::new();
            for step in steps {
                match step {
                    Step::Acquire(key) => {
                        let used = acquired.iter().filter(|permit| permit.key == key).count();
                        let free = all - acquired.len();
                        let is_free = used < of_key && free > if used == 0 { 0 } else { reserved };
                        let permit = permits.try_acquire(key);
                        prop_assert_eq!(permit.is_some(), is_free);
                        acquired.extend(permit);
                    }
                    Step::Release(index) if !acquired.is_empty() => {
                        drop(acquired.swap_remove(index % acquired.len()));
                    }
                    Step::Release(_) => {}
                }
                let keys: std::collections::HashSet<u8> = acquired.iter().map(|permit| permit.key).collect();
                prop_assert_eq!((permits.in_use(), permits.key_count()), (acquired.len(), keys.len()));
            }
        }
    }
}
