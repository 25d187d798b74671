//! Which idempotency keys were used recently. Most keys are new, which memory alone can prove: such keys need no
//! look-up in the database, and work while it is unavailable.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_actors::keyed_locks::{KeyedGuard, KeyedLocks};
use hotline_actors::seen::{Membership, SeenSet};
use hotline_actors::ttl_cache::{TtlCache, WeightFn};
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow, Digest, RETENTION, UsedKey};
use hotline_persistence::{CompanyId, Database, Ownership};
use parking_lot::Mutex;

/// Maximum number of remembered keys, 32 bytes plus map overhead each. Beyond it, the companies with the most lose their
/// oldest ones, and their keys are looked up until those would have expired.
const KEYS_MAX: usize = 2_000_000;

/// Number of keys that are added at once while requests wait, in a tenth of a millisecond.
const ADDED_AT_ONCE: usize = 1_000;

/// The part of the keys that is evicted at once while requests wait, in less than a millisecond.
const EVICTED_PART: usize = 1_000;

/// Maximum bytes of cached responses, for retries right after a failure.
const RECENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Number of responses of the usual size that fit into these bytes.
const RECENT_EXPECTED: usize = 16 * 1024;

/// Companies whose keys are loaded with one statement: taking over another process brings thousands of companies. Few
/// enough that the keys of busy companies, tens of thousands each, are read within a statement's timeout.
const LOADED_AT_ONCE: usize = 32;

/// Companies loaded alone that may fail before the others of their chunk are left to the next sweep.
const FAILURES_MAX: usize = 2;

/// How often expired responses are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Responses recorded before this time have expired.
pub(super) fn expiry_cutoff() -> DateTime<Utc> {
    clock::now() - RETENTION
}

/// [`KEYS_MAX`] as the limit of a statement.
fn limit() -> i64 {
    i64::try_from(KEYS_MAX).unwrap_or(i64::MAX)
}

type RequestKey = (CompanyId, Digest);

/// A company whose keys are to be loaded, and the number of its last drop; none: it was not dropped.
type CompanyDrop = (CompanyId, Option<u64>);

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

/// The unexpired keys, of each company its own: many keys of one company do not cause look-ups for another.
struct UsedKeys {
    /// The hashes of each company's keys, with the second of their use.
    companies: HashMap<CompanyId, SeenSet<u64, i64>>,
    /// The entries of all companies.
    entries: usize,
    /// Their maximum.
    room: usize,
    /// Companies that were dropped and not loaded since: any of their keys may have been used.
    unloaded: HashMap<CompanyId, MissingKeys>,
    /// The number of the last drop.
    drops: u64,
}

/// The state of a company whose keys are not loaded.
struct MissingKeys {
    /// The number of the last drop.
    drop: u64,
    /// How often its keys could not be loaded alone since then.
    failures: u32,
}

impl UsedKeys {
    fn with_room(room: usize) -> Self {
        Self { companies: HashMap::new(), entries: 0, room, unloaded: HashMap::new(), drops: 0 }
    }

    fn insert(&mut self, company: CompanyId, key: Digest, at_s: i64) {
        let keys = self.keys_of(company);
        let before = keys.len();
        keys.insert(key.short_hash(), at_s);
        self.entries += keys.len() - before;
        if self.entries > self.room {
            self.evict();
        }
    }

    fn keys_of(&mut self, company: CompanyId) -> &mut SeenSet<u64, i64> {
        self.companies.entry(company).or_insert_with(|| SeenSet::with_room(usize::MAX))
    }

    /// Drops the oldest keys of the companies with the most, so that none of these has more than another.
    fn evict(&mut self) {
        let most =
            most_of_each(self.companies.values().map(SeenSet::len), self.room - self.room.div_ceil(EVICTED_PART));
        for keys in self.companies.values_mut() {
            keys.evict_beyond(most);
        }
        self.entries = self.companies.values().map(SeenSet::len).sum();
    }

    /// Whether the key may have been used since this second.
    fn may_contain(&self, company: CompanyId, key: Digest, since_s: i64) -> bool {
        let keys = self.companies.get(&company);
        let membership = keys.map(|keys| keys.look_up(&key.short_hash(), |missing_up_to_s| missing_up_to_s >= since_s));
        self.unloaded.contains_key(&company) || membership.is_some_and(|membership| membership != Membership::Absent)
    }

    fn forget(&mut self, company: CompanyId) {
        let keys = self.companies.remove(&company);
        self.entries -= keys.map_or(0, |keys| keys.len());
        self.drops += 1;
        self.unloaded.insert(company, MissingKeys { drop: self.drops, failures: 0 });
    }

    fn last_drop(&self, company: CompanyId) -> Option<u64> {
        self.unloaded.get(&company).map(|unloaded| unloaded.drop)
    }

    /// The companies that were dropped and not loaded since. Those with the most failures come last: a company whose
    /// keys take too long to read must not keep others from being loaded.
    fn unloaded(&self) -> Vec<CompanyDrop> {
        let mut unloaded: Vec<_> = self.unloaded.iter().collect();
        unloaded.sort_unstable_by_key(|(_, unloaded)| unloaded.failures);
        unloaded.into_iter().map(|(company, unloaded)| (*company, Some(unloaded.drop))).collect()
    }

    fn mark_loaded(&mut self, companies: &[CompanyDrop]) {
        for (company, last_drop) in companies {
            // If the company was dropped again meanwhile, another process may have used keys since.
            if self.last_drop(*company) == *last_drop {
                self.unloaded.remove(company);
            }
        }
    }

    fn record_failure(&mut self, company: CompanyId) {
        if let Some(unloaded) = self.unloaded.get_mut(&company) {
            unloaded.failures = unloaded.failures.saturating_add(1);
        }
    }

    /// Removes keys used before this second.
    fn expire(&mut self, before_s: i64) {
        self.companies.retain(|_, keys| {
            keys.expire(before_s);
            !keys.is_empty() || keys.missing_up_to().is_some_and(|missing_up_to_s| missing_up_to_s >= before_s)
        });
        self.entries = self.companies.values().map(SeenSet::len).sum();
    }
}

/// How many each may have, so that all together have at most `room`, and only those with the most lose some.
fn most_of_each(counts: impl Iterator<Item = usize>, mut room: usize) -> usize {
    let mut counts: Vec<usize> = counts.collect();
    counts.sort_unstable();
    for (place, count) in counts.iter().enumerate() {
        let share = room / (counts.len() - place);
        if *count > share {
            return share;
        }
        room -= count;
    }
    usize::MAX
}

/// The companies of which older keys than these may be missing among those read from the table, at most `limit`, with
/// the second of their oldest key. The statement returns the newest key of each company, then the second of each, and so
/// on, up to `limit`, which is more than there are companies. So only the companies with the most keys may have older
/// ones that were cut off.
fn cut_off(stored: &[UsedKey], limit: usize) -> Vec<(CompanyId, i64)> {
    if stored.len() < limit {
        return Vec::new();
    }
    let mut read: HashMap<CompanyId, (usize, i64)> = HashMap::new();
    for (company, _, at) in stored {
        let (count, oldest_s) = read.entry(*company).or_default();
        (*count, *oldest_s) = (*count + 1, at.timestamp());
    }
    let most = read.values().map(|(count, _)| *count).max().unwrap_or_default();
    // Of two companies with as many keys, the limit may have cut off the last key of one.
    read.retain(|_, (count, _)| *count + 1 >= most);
    read.into_iter().map(|(company, (_, oldest_s))| (company, oldest_s)).collect()
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
        // Swept before the first response is recorded, because the sweep also creates the partition of that response.
        // Without one, it would be stored in the default partition, from which expired rows have to be deleted.
        keys.sweep(db).await;
        let stored = idempotency_keys::recent(db, expiry_cutoff(), limit()).await?;
        keys.add_stored(&stored, KEYS_MAX);
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
            used.forget(*company);
        }
    }

    /// Loads a company's keys after it was dropped.
    ///
    /// # Errors
    /// When the database cannot answer; the next sweep retries.
    pub async fn load_company(&self, db: impl Database<'_>, company: CompanyId) -> hotline_persistence::Result<()> {
        let last_drop = self.0.used.lock().last_drop(company);
        self.load_companies(db, &[(company, last_drop)]).await
    }

    /// Loads the keys of companies that are placed here and were dropped, and whose loading failed or was not
    /// requested.
    pub async fn load_missing(&self, db: impl Database<'_>, ownership: &Ownership) {
        let unloaded = self.unloaded_here(ownership);
        self.load_in_chunks(&unloaded, move |companies| async move { self.load_companies(db, &companies).await }).await;
    }

    /// The dropped companies that are placed here. The others stay marked as unloaded: their keys would only take room
    /// from companies that are served here, and would be dropped again before the companies return.
    fn unloaded_here(&self, ownership: &Ownership) -> Vec<CompanyDrop> {
        let mut unloaded = self.0.used.lock().unloaded();
        unloaded.retain(|(company, _)| ownership.is_placed_here(*company));
        unloaded
    }

    /// Loads companies with `load`, many at once. If that fails for a chunk, and none of its companies could be loaded
    /// alone either, the database is probably unavailable: it is then not asked for the other chunks.
    async fn load_in_chunks<F>(&self, unloaded: &[CompanyDrop], load: impl Fn(Vec<CompanyDrop>) -> F)
    where
        F: Future<Output = hotline_persistence::Result<()>>,
    {
        for chunk in unloaded.chunks(LOADED_AT_ONCE) {
            let Err(error) = load(chunk.to_vec()).await else { continue };
            tracing::debug!(%error, companies = chunk.len(), "loading idempotency keys will be retried");
            // Not yet a sign of an outage: one company may have so many keys that reading those of all takes too long.
            let (mut has_loaded, mut failures) = (false, 0);
            for company in chunk.iter().filter(|_| chunk.len() > 1) {
                if load(vec![*company]).await.is_ok() {
                    has_loaded = true;
                    continue;
                }
                self.0.used.lock().record_failure(company.0);
                failures += 1;
                if failures == FAILURES_MAX {
                    break;
                }
            }
            if !has_loaded {
                return;
            }
        }
    }

    /// Loads the keys of companies, with the number of the last drop of each when loading started.
    async fn load_companies(
        &self,
        db: impl Database<'_>,
        companies: &[CompanyDrop],
    ) -> hotline_persistence::Result<()> {
        let ids: Vec<CompanyId> = companies.iter().map(|(company, _)| *company).collect();
        let stored = idempotency_keys::recent_of(db, &ids, expiry_cutoff(), limit()).await?;
        self.add_stored(&stored, KEYS_MAX);
        self.0.used.lock().mark_loaded(companies);
        Ok(())
    }

    /// Adds keys that were read from the table with this limit, the oldest first: they are the first to be dropped.
    fn add_stored(&self, stored: &[UsedKey], limit: usize) {
        for part in stored.rchunks(ADDED_AT_ONCE) {
            let mut used = self.0.used.lock();
            for (company, key, at) in part.iter().rev() {
                used.insert(*company, *key, at.timestamp());
            }
        }
        let cut_off = cut_off(stored, limit);
        let mut used = self.0.used.lock();
        for (company, oldest_s) in cut_off {
            used.keys_of(company).mark_missing_up_to(oldest_s);
        }
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
        self.0.used.lock().may_contain(company, key, expiry_cutoff().timestamp())
    }

    /// Caches a recorded response. Its key is already marked as used.
    pub(super) fn remember(&self, answer: AnswerRow) {
        self.0.recent.insert((answer.company_id, answer.key), Arc::new(answer));
    }

    /// Records that a key was used.
    fn mark_used(&self, company: CompanyId, key: Digest) {
        self.0.used.lock().insert(company, key, clock::now().timestamp());
    }

    /// Deletes expired entries, in memory and in the table, and loads missing keys, for as long as the process runs.
    pub async fn run_sweep(&self, db: impl Database<'_>, ownership: &Ownership) {
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        loop {
            ticks.tick().await;
            self.sweep(db).await;
            self.load_missing(db, ownership).await;
        }
    }

    /// Deletes expired entries, in memory and in the table.
    pub async fn sweep(&self, db: impl Database<'_>) {
        let before = expiry_cutoff();
        // Keys used within the second of the cutoff are kept, so that none is removed before its response has expired.
        self.0.used.lock().expire(before.timestamp());
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
            used: Mutex::new(UsedKeys::with_room(room)),
        }))
    }
}

#[cfg(test)]
mod tests;
