//! Which idempotency keys were used recently. Most keys are new, which memory alone can prove: such keys need no
//! look-up in the database, and work while it is unavailable.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_actors::keyed_locks::{KeyedGuard, KeyedLocks};
use hotline_actors::seen::{Membership, SeenSet};
use hotline_actors::ttl_cache::{TtlCache, WeightFn};
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow, Digest, RETENTION};
use hotline_persistence::{CompanyId, Database};
use parking_lot::Mutex;

/// Maximum number of remembered keys, 32 bytes plus map overhead each. Once unexpired keys had to be dropped, every key
/// is looked up.
const KEYS_MAX: usize = 2_000_000;

/// Size of the cache of recorded responses, for retries right after a failure, in bytes, and its capacity in responses
/// of usual size.
const RECENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
const RECENT_EXPECTED: usize = 16 * 1024;

/// Companies whose keys are loaded with one statement: a takeover brings thousands. Few enough that the keys of busy
/// companies, tens of thousands each, are read within a statement's timeout.
const LOADED_AT_ONCE: usize = 32;

/// How often expired responses are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Responses recorded before this time have expired.
pub(super) fn expiry_cutoff() -> DateTime<Utc> {
    clock::now() - RETENTION
}

type RequestKey = (CompanyId, Digest);
type AnswerWeight = fn(&RequestKey, &Arc<AnswerRow>) -> u64;

/// The keys of every company. Cheap to clone.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    /// Locked by the request that is being served under a key; its retries wait.
    locks: KeyedLocks<RequestKey>,
    recent: TtlCache<RequestKey, Arc<AnswerRow>, WeightFn<AnswerWeight>>,
    used: Mutex<UsedKeys>,
}

/// The unexpired keys.
struct UsedKeys {
    /// The hashes of the keys, with the second of their use.
    hashes: SeenSet<u64, i64>,
    /// How often each company was dropped. The count is part of the hash, so that entries from before the drop no
    /// longer match; they expire with their age. Only companies that were dropped are listed.
    dropped: HashMap<CompanyId, u32>,
    /// Companies that were dropped and not loaded since: any of their keys may have been used.
    unloaded: HashSet<CompanyId>,
}

impl UsedKeys {
    fn hash(&self, company: CompanyId, key: Digest) -> u64 {
        let mut hasher = DefaultHasher::new();
        (company, self.dropped.get(&company), key).hash(&mut hasher);
        hasher.finish()
    }

    fn insert(&mut self, company: CompanyId, key: Digest, at_s: i64) {
        let hash = self.hash(company, key);
        self.hashes.insert(hash, at_s);
    }
}

/// The lock of one request on its key. It is released when nothing can execute the request any more: neither its task,
/// nor the actor that has received the task's command.
pub(super) struct KeyLock {
    keys: Keys,
    guard: KeyedGuard<RequestKey>,
}

impl KeyLock {
    pub(super) fn company(&self) -> CompanyId {
        self.guard.key().0
    }

    pub(super) fn key(&self) -> Digest {
        self.guard.key().1
    }

    /// Records that a key of this company was used: the request's own, or the key of a step.
    pub(super) fn mark_used(&self, key: Digest) {
        self.keys.mark_used(self.company(), key);
    }

    /// Whether the key may have been used; `false` is certain.
    pub(super) fn may_be_used(&self, key: Digest) -> bool {
        self.keys.may_be_used(self.company(), key)
    }
}

impl Keys {
    /// Loads the unexpired keys from the table.
    pub async fn load(db: impl Database<'_>) -> hotline_persistence::Result<Self> {
        let keys = Self::default();
        // Swept before the first response is recorded, because the sweep also creates the partition of that response;
        // without one, it could only be stored among expired rows.
        keys.sweep(db).await;
        // One more than the capacity, to detect that there are more keys.
        let limit = i64::try_from(KEYS_MAX + 1).unwrap_or(i64::MAX);
        // The rows come newest first; they are inserted oldest first, because the oldest are dropped first.
        for (company, key, at) in idempotency_keys::recent(db, expiry_cutoff(), limit).await?.into_iter().rev() {
            keys.0.used.lock().insert(company, key, at.timestamp());
        }
        Ok(keys)
    }

    /// Drops everything known of a company's keys, while no request of the company is running. Until its keys are
    /// loaded again, each key is looked up.
    pub fn forget(&self, company: CompanyId) {
        self.forget_all(&HashSet::from([company]));
    }

    /// Drops everything known of these companies' keys, as [`Keys::forget`] does for one company.
    pub fn forget_all(&self, companies: &HashSet<CompanyId>) {
        // Locks exist only while a request is served or waits.
        let Inner { locks: _, recent, used: _ } = &*self.0;
        // One pass over the responses for all companies.
        recent.remove_where(|(of, _)| companies.contains(of));
        let mut used = self.0.used.lock();
        for company in companies {
            *used.dropped.entry(*company).or_default() += 1;
            used.unloaded.insert(*company);
        }
    }

    /// Loads a company's keys after it was dropped.
    ///
    /// # Errors
    /// When the database cannot answer; the next sweep retries.
    pub async fn load_company(&self, db: impl Database<'_>, company: CompanyId) -> hotline_persistence::Result<()> {
        let dropped = self.0.used.lock().dropped.get(&company).copied();
        self.load_companies(db, &[(company, dropped)]).await
    }

    /// Loads the keys of companies that were dropped and whose loading failed or was not requested.
    pub async fn load_missing(&self, db: impl Database<'_>) {
        let unloaded: Vec<(CompanyId, Option<u32>)> = {
            let used = self.0.used.lock();
            used.unloaded.iter().map(|company| (*company, used.dropped.get(company).copied())).collect()
        };
        for chunk in unloaded.chunks(LOADED_AT_ONCE) {
            if let Err(error) = self.load_companies(db, chunk).await {
                tracing::debug!(%error, companies = chunk.len(), "loading idempotency keys will be retried");
            }
        }
    }

    /// Loads the keys of companies, with the number of times that each was dropped when loading started.
    async fn load_companies(
        &self,
        db: impl Database<'_>,
        companies: &[(CompanyId, Option<u32>)],
    ) -> hotline_persistence::Result<()> {
        let ids: Vec<CompanyId> = companies.iter().map(|(company, _)| *company).collect();
        let limit = i64::try_from(KEYS_MAX).unwrap_or(i64::MAX);
        let keys = idempotency_keys::recent_of(db, &ids, expiry_cutoff(), limit).await?;
        let mut used = self.0.used.lock();
        for (company, key, at) in &keys {
            used.insert(*company, *key, at.timestamp());
        }
        if keys.len() < KEYS_MAX {
            for (company, dropped) in companies {
                // If the company was dropped again meanwhile, another process may have used keys since.
                if used.dropped.get(company) == dropped.as_ref() {
                    used.unloaded.remove(company);
                }
            }
        }
        Ok(())
    }

    /// Waits until no other request holds the key, and locks it.
    pub(super) async fn lock_key(&self, company: CompanyId, key: Digest) -> KeyLock {
        KeyLock { keys: self.clone(), guard: self.0.locks.lock((company, key)).await }
    }

    /// The number of keys in use right now: of requests that are served or wait.
    pub fn in_use(&self) -> usize {
        self.0.locks.in_use()
    }

    /// A response that was recorded recently; `None` if the cache has none that is valid.
    pub(super) fn recent(&self, company: CompanyId, key: Digest) -> Option<Arc<AnswerRow>> {
        self.0.recent.get(&(company, key)).filter(|answer| answer.created_at > expiry_cutoff())
    }

    /// Whether the key may have been used; `false` is certain.
    pub(super) fn may_be_used(&self, company: CompanyId, key: Digest) -> bool {
        let since_s = expiry_cutoff().timestamp();
        let used = self.0.used.lock();
        used.unloaded.contains(&company)
            || used.hashes.look_up(&used.hash(company, key), |missing_up_to_s| missing_up_to_s >= since_s)
                != Membership::Absent
    }

    /// Caches a recorded response; its key was noted as used.
    pub(super) fn remember(&self, answer: AnswerRow) {
        self.0.recent.insert((answer.company_id, answer.key), Arc::new(answer));
    }

    /// Records that a key was used.
    fn mark_used(&self, company: CompanyId, key: Digest) {
        self.0.used.lock().insert(company, key, clock::now().timestamp());
    }

    /// Deletes expired entries, in memory and in the table, for as long as the process runs.
    pub async fn run_sweep(&self, db: impl Database<'_>) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.sweep(db).await;
            self.load_missing(db).await;
        }
    }

    /// Deletes expired entries, in memory and in the table.
    pub async fn sweep(&self, db: impl Database<'_>) {
        let before = expiry_cutoff();
        // The current second is not expired yet: a recorded response must not outlive the entry of its key.
        self.0.used.lock().hashes.expire(before.timestamp());
        if let Err(error) = idempotency_keys::sweep(db, clock::now(), before).await {
            tracing::debug!(%error, "sweep of expired idempotency keys will be retried");
        }
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self::with_room(KEYS_MAX)
    }
}

impl Keys {
    fn with_room(room: usize) -> Self {
        let bytes: AnswerWeight = |_, answer| (answer.body.len() + size_of::<AnswerRow>()) as u64;
        Self(Arc::new(Inner {
            locks: KeyedLocks::default(),
            recent: TtlCache::weighted(RECENT_EXPECTED, RECENT_BYTES_MAX, Duration::MAX, bytes),
            used: Mutex::new(UsedKeys {
                hashes: SeenSet::with_room(room),
                dropped: HashMap::new(),
                unloaded: HashSet::new(),
            }),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CompanyId = CompanyId::new(1);
    const B: CompanyId = CompanyId::new(2);

    fn key(text: &str) -> Digest {
        Digest::of(&[text.as_bytes()])
    }

    #[test]
    fn when_memory_is_full_every_key_is_looked_up() {
        let keys = Keys::with_room(2);
        assert!(!keys.may_be_used(A, key("a")));
        keys.mark_used(A, key("a"));
        assert!(keys.may_be_used(A, key("a")));
        assert!(!keys.may_be_used(B, key("a")), "another company's key is its own");
        keys.mark_used(A, key("b"));
        keys.mark_used(A, key("b"));
        assert!(!keys.may_be_used(B, key("b")), "a key that is known needs no more room");
        keys.mark_used(B, key("c"));
        assert!(keys.may_be_used(B, key("b")), "unknown keys may have been used");
        assert!(keys.may_be_used(A, key("a")), "it was dropped, and is looked up");
    }

    #[test]
    fn keys_of_a_company_that_was_dropped_are_looked_up_until_they_are_loaded() {
        let keys = Keys::with_room(10);
        for company in [A, B] {
            keys.mark_used(company, key("a"));
        }
        keys.forget(A);
        assert!(keys.may_be_used(A, key("b")) && !keys.may_be_used(B, key("b")), "A's keys are unknown");
        keys.0.used.lock().unloaded.remove(&A);
        assert!(!keys.may_be_used(A, key("a")), "what was known before is gone");
        assert!(keys.may_be_used(B, key("a")));
        keys.mark_used(A, key("a"));
        assert!(keys.may_be_used(A, key("a")));
    }
}
