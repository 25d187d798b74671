//! Which idempotency keys were used recently. Most keys are new, which memory alone can prove: such keys need no
//! look-up in the database, and work while it is unavailable.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_actors::clock;
use hotline_actors::seen::{Membership, SeenSet};
use hotline_actors::ttl_cache::{TtlCache, WeightFn};
use hotline_persistence::limits::{KeyedPermit, KeyedPermits, PermitLimits};
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow, Digest, RETENTION, UsedKey};
use hotline_persistence::{CompanyId, Database, Ownership};
use parking_lot::Mutex;

/// Maximum number of remembered keys, 32 bytes plus map overhead each. Beyond it, the companies with the most keys lose
/// their oldest ones, and all their keys are looked up until the lost ones would have expired.
const KEYS_MAX: usize = 2_000_000;

/// Number of stored keys added under one lock. Requests wait for the lock: a tenth of a millisecond.
const ADDED_AT_ONCE: usize = 1_000;

/// One in this many keys is evicted at once. Requests wait for the eviction: less than a millisecond.
const EVICTION_DIVISOR: usize = 1_000;

/// Maximum bytes of cached responses, for retries right after a failure.
const RECENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Number of responses of the usual size that fit into [`RECENT_BYTES_MAX`].
const RECENT_EXPECTED: usize = 16 * 1024;

/// Companies whose keys are loaded with one statement: taking over another process brings thousands of companies. Few
/// enough that the keys of busy companies, tens of thousands each, are read within a statement's timeout.
const LOADED_AT_ONCE: usize = 32;

/// The companies of a failed chunk are loaded one by one. Once this many of them have failed as well, the rest of the
/// chunk is left to the next sweep.
const FAILURES_MAX: usize = 2;

/// Maximum number of requests that wait for another with the same key. Each has its body in memory: together they take
/// up to 64 MiB, or 1 GiB if they are imports.
const WAITING_MAX: usize = 64;

/// How often expired entries are deleted and missing keys are loaded.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Responses recorded before this time have expired.
pub(super) fn expiry_cutoff() -> DateTime<Utc> {
    clock::now() - RETENTION
}

/// [`KEYS_MAX`] as the limit of a statement.
fn statement_limit() -> i64 {
    i64::try_from(KEYS_MAX).unwrap_or(i64::MAX)
}

type RequestKey = (CompanyId, Digest);

/// A company whose keys are to be loaded, and the number of its last drop; `None` if it was not dropped.
type CompanyDrop = (CompanyId, Option<u64>);

type RecordWeight = fn(&RequestKey, &Arc<AnswerRow>) -> u64;

/// The keys of every company. Cheap to clone.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    /// One permit per key: the request that has it is being served, and its retries wait for it.
    permits: KeyedPermits<RequestKey>,
    /// Recently recorded responses.
    recent: TtlCache<RequestKey, Arc<AnswerRow>, WeightFn<RecordWeight>>,
    used: Mutex<UsedKeys>,
}

/// The unexpired keys by company: many keys of one company do not cause look-ups for another.
struct UsedKeys {
    /// The hashes of each company's keys, with the second of their use.
    companies: HashMap<CompanyId, SeenSet<u64, i64>>,
    /// The number of entries of all companies.
    entries: usize,
    /// The maximum of `entries`.
    entries_max: usize,
    /// Companies that were dropped and not loaded since: any of their keys may have been used.
    unloaded: HashMap<CompanyId, MissingKeys>,
    /// The number of drops of all companies, which is also the number of the last one.
    drops: u64,
}

/// The state of a company whose keys are not loaded.
struct MissingKeys {
    /// The number of the company's last drop.
    last_drop: u64,
    /// How often loading this company alone has failed since then.
    failures: u32,
}

impl UsedKeys {
    fn new(entries_max: usize) -> Self {
        Self { companies: HashMap::new(), entries: 0, entries_max, unloaded: HashMap::new(), drops: 0 }
    }

    fn insert(&mut self, company: CompanyId, key: Digest, at_s: i64) {
        let keys = self.keys_of(company);
        let count_before = keys.len();
        keys.insert(key.short_hash(), at_s);
        self.entries += keys.len() - count_before;
        if self.entries > self.entries_max {
            self.evict();
        }
    }

    fn keys_of(&mut self, company: CompanyId) -> &mut SeenSet<u64, i64> {
        self.companies.entry(company).or_insert_with(|| SeenSet::with_entries_max(usize::MAX))
    }

    /// Drops the oldest keys of the companies with the most keys, down to the same count.
    fn evict(&mut self) {
        let remaining = self.entries_max - self.entries_max.div_ceil(EVICTION_DIVISOR);
        let count_max = count_max_per_company(self.companies.values().map(SeenSet::len), remaining);
        for keys in self.companies.values_mut() {
            keys.evict_beyond(count_max);
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
        self.unloaded.insert(company, MissingKeys { last_drop: self.drops, failures: 0 });
    }

    fn last_drop(&self, company: CompanyId) -> Option<u64> {
        self.unloaded.get(&company).map(|unloaded| unloaded.last_drop)
    }

    /// The companies that were dropped and not loaded since. Those with the most failures come last: a company whose
    /// keys take too long to read must not keep others from being loaded.
    fn unloaded(&self) -> Vec<CompanyDrop> {
        let mut unloaded: Vec<_> = self.unloaded.iter().collect();
        unloaded.sort_unstable_by_key(|(_, unloaded)| unloaded.failures);
        unloaded.into_iter().map(|(company, unloaded)| (*company, Some(unloaded.last_drop))).collect()
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

/// The maximum count of each company that leaves at most `remaining` in total, where only the largest counts are
/// reduced.
fn count_max_per_company(counts: impl Iterator<Item = usize>, mut remaining: usize) -> usize {
    let mut counts: Vec<usize> = counts.collect();
    counts.sort_unstable();
    for (index, count) in counts.iter().enumerate() {
        let share = remaining / (counts.len() - index);
        if *count > share {
            return share;
        }
        remaining -= count;
    }
    usize::MAX
}

/// The companies that may have older keys, which the statement did not return because of its limit; each with the time
/// of its oldest returned key, in seconds. The statement returns the newest key of each company, then the second newest
/// of each, and so on, up to `limit`, which is more than there are companies. So only the companies with the most
/// returned keys may have older ones.
fn truncated_companies(stored: &[UsedKey], limit: usize) -> Vec<(CompanyId, i64)> {
    if stored.len() < limit {
        return Vec::new();
    }
    let mut returned: HashMap<CompanyId, (usize, i64)> = HashMap::new();
    for (company, _, at) in stored {
        let (count, oldest_s) = returned.entry(*company).or_default();
        (*count, *oldest_s) = (*count + 1, at.timestamp());
    }
    let count_max = returned.values().map(|(count, _)| *count).max().unwrap_or_default();
    // The limit may be reached between two companies with equally many keys: one then lacks its last key.
    returned.retain(|_, (count, _)| *count + 1 >= count_max);
    returned.into_iter().map(|(company, (_, oldest_s))| (company, oldest_s)).collect()
}

/// The lock of one request on its key. It is released when nothing can execute the request any more: neither its task,
/// nor the actor that has received the task's command.
pub(super) struct KeyLock {
    keys: Keys,
    permit: KeyedPermit<RequestKey>,
}

impl KeyLock {
    pub(super) fn company(&self) -> CompanyId {
        self.permit.key().0
    }

    pub(super) fn key(&self) -> Digest {
        self.permit.key().1
    }

    /// Records that a key of this company was used: the request's own, or the key of a step.
    pub(super) fn mark_used(&self, key: Digest) {
        self.keys.mark_used(self.company(), key);
    }

    /// Whether the key may have been used; `false` is certain.
    pub(super) fn may_have_been_used(&self, key: Digest) -> bool {
        self.keys.may_have_been_used(self.company(), key)
    }
}

impl Keys {
    /// Loads the unexpired keys from the table.
    pub async fn load(db: impl Database<'_>) -> hotline_persistence::Result<Self> {
        let keys = Self::default();
        // Swept before the first response is recorded, because the sweep also creates the partition of that response.
        // Without one, it would be stored in the default partition, from which expired rows have to be deleted.
        keys.sweep(db).await;
        let stored = idempotency_keys::recent(db, expiry_cutoff(), statement_limit()).await?;
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
        // Permits exist only while a request is served or waits.
        let Inner { permits: _, recent, used: _ } = &*self.0;
        // One pass over the responses for all companies.
        recent.remove_where(|(company, _)| companies.contains(company));
        let mut used = self.0.used.lock();
        for company in companies {
            used.forget(*company);
        }
    }

    /// Loads the keys of a company that was dropped before.
    ///
    /// # Errors
    /// When the database cannot answer; the next sweep retries.
    pub async fn load_company(&self, db: impl Database<'_>, company: CompanyId) -> hotline_persistence::Result<()> {
        let last_drop = self.0.used.lock().last_drop(company);
        self.load_companies(db, &[(company, last_drop)]).await
    }

    /// Loads the keys of dropped companies that are placed here: those whose keys could not be loaded, and those for
    /// which [`Keys::load_company`] was not called.
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

    /// Loads companies with `load`, in chunks. If a chunk fails and none of its companies can be loaded alone either,
    /// the database is probably unavailable, and the other chunks are not tried.
    async fn load_in_chunks<F>(&self, unloaded: &[CompanyDrop], load: impl Fn(Vec<CompanyDrop>) -> F)
    where
        F: Future<Output = hotline_persistence::Result<()>>,
    {
        for chunk in unloaded.chunks(LOADED_AT_ONCE) {
            let Err(error) = load(chunk.to_vec()).await else { continue };
            tracing::debug!(%error, companies = chunk.len(), "loading idempotency keys will be retried");
            // This is not yet a sign of an outage: one company of the chunk may have too many keys to read in time.
            let (mut has_loaded, mut failures) = (false, 0);
            for company_drop in chunk.iter().filter(|_| chunk.len() > 1) {
                if load(vec![*company_drop]).await.is_ok() {
                    has_loaded = true;
                    continue;
                }
                self.0.used.lock().record_failure(company_drop.0);
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

    /// Loads the keys of companies; the drop numbers are those from before the loading.
    async fn load_companies(
        &self,
        db: impl Database<'_>,
        companies: &[CompanyDrop],
    ) -> hotline_persistence::Result<()> {
        let ids: Vec<CompanyId> = companies.iter().map(|(company, _)| *company).collect();
        let stored = idempotency_keys::recent_of(db, &ids, expiry_cutoff(), statement_limit()).await?;
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
        let truncated_companies = truncated_companies(stored, limit);
        let mut used = self.0.used.lock();
        for (company, oldest_s) in truncated_companies {
            used.keys_of(company).mark_missing_up_to(oldest_s);
        }
    }

    /// Waits until no other request holds the key, and locks it.
    ///
    /// # Errors
    /// [`hotline_persistence::Error::Unavailable`] when too many requests wait for the key already.
    pub(super) async fn lock_key(&self, company: CompanyId, key: Digest) -> hotline_persistence::Result<KeyLock> {
        let permit = self.0.permits.acquire((company, key)).await?;
        Ok(KeyLock { keys: self.clone(), permit })
    }

    /// The number of requests with a key that are being served or wait for their key.
    pub fn in_use(&self) -> usize {
        self.0.permits.caller_count()
    }

    /// A response that was recorded recently; `None` if the cache has none that is valid.
    pub(super) fn recent(&self, company: CompanyId, key: Digest) -> Option<Arc<AnswerRow>> {
        self.0.recent.get(&(company, key)).filter(|record| record.created_at > expiry_cutoff())
    }

    /// Whether the key may have been used; `false` is certain.
    pub(super) fn may_have_been_used(&self, company: CompanyId, key: Digest) -> bool {
        self.0.used.lock().may_contain(company, key, expiry_cutoff().timestamp())
    }

    /// Caches a recorded response. Its key is already marked as used.
    pub(super) fn remember(&self, record: AnswerRow) {
        self.0.recent.insert((record.company_id, record.key), Arc::new(record));
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
        Self::with_entries_max(KEYS_MAX)
    }
}

impl Keys {
    fn with_entries_max(entries_max: usize) -> Self {
        let weigh: RecordWeight = |_, record| (record.body.len() + size_of::<AnswerRow>()) as u64;
        // However long the first attempt takes, its retries wait for its response.
        let limits = PermitLimits::of_key(1).wait(WAITING_MAX, Duration::MAX);
        Self(Arc::new(Inner {
            permits: KeyedPermits::new(limits),
            recent: TtlCache::weighted(RECENT_EXPECTED, RECENT_BYTES_MAX, Duration::MAX, weigh),
            used: Mutex::new(UsedKeys::new(entries_max)),
        }))
    }
}

#[cfg(test)]
mod tests;
