//! Which keys were used lately. Most keys are new, and memory alone can say so: no look-up stands in their way, also
//! while the database is away.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use dashmap::DashMap;
use hotline_actors::clock;
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow};
use hotline_persistence::{CompanyId, PgPool};
use moka::sync::Cache;
use tokio::sync::OwnedMutexGuard;

/// How long an answer is kept.
const KEPT_HOURS: i64 = 24;

/// Keys memory can tell from new ones, 16 bytes and the map's room each. Beyond, every key is looked up.
const KEYS_MAX: usize = 2_000_000;

/// Bytes of answers kept near, for retries right after a break.
const RECENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How often expired answers are forgotten, and how many at once.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SWEPT_MAX: i64 = 10_000;

/// Answers from before are forgotten.
pub(super) fn kept_since() -> DateTime<Utc> {
    clock::now() - TimeDelta::hours(KEPT_HOURS)
}

type Key = (CompanyId, String);

/// The keys of every company.
pub struct Keys {
    /// Held by the request that is being served under a key; its twins wait.
    turns: DashMap<Key, Arc<tokio::sync::Mutex<()>>>,
    recent: Cache<Key, Arc<AnswerRow>>,
    used: Mutex<Used>,
}

/// Hashes of the keys used within the time, with the second of their use.
#[derive(Default)]
struct Used {
    since: HashMap<u64, i64>,
    /// Until then some keys are missing here.
    incomplete_until_s: i64,
}

/// The turn of one request under its key.
pub(super) struct Turn<'a> {
    keys: &'a Keys,
    key: Key,
    lock: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        drop(self.lock.take());
        // The map holds one reference; whoever waits holds another, and the entry then stays.
        self.keys.turns.remove_if(&self.key, |_, turn| Arc::strong_count(turn) == 1);
    }
}

impl Keys {
    /// The keys used within the time, from the table.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn load(db: &PgPool) -> hotline_persistence::Result<Self> {
        let keys = Self::default();
        let limit = i64::try_from(KEYS_MAX).unwrap_or(i64::MAX);
        let known = idempotency_keys::recent(db, kept_since(), limit).await?;
        for (company, key, at) in known {
            keys.lock().insert(hash(company, &key), at.timestamp());
        }
        Ok(keys)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other request is served under the key.
    pub(super) async fn turn(&self, company: CompanyId, key: &str) -> Turn<'_> {
        let key = (company, key.to_owned());
        let turn = self.turns.entry(key.clone()).or_default().clone();
        let lock = turn.lock_owned().await;
        Turn { keys: self, key, lock: Some(lock) }
    }

    /// An answer that was given a short while ago.
    pub(super) fn recent(&self, company: CompanyId, key: &str) -> Option<Arc<AnswerRow>> {
        self.recent.get(&(company, key.to_owned())).filter(|answer| answer.created_at > kept_since())
    }

    /// Whether the key may have been used; false is certain.
    pub(super) fn may_be_used(&self, company: CompanyId, key: &str) -> bool {
        let used = self.lock();
        used.incomplete_until_s > clock::now().timestamp() || used.since.contains_key(&hash(company, key))
    }

    /// Remembers an answer.
    pub(super) fn remember(&self, answer: AnswerRow) {
        self.note_used(answer.company_id, &answer.key);
        self.recent.insert((answer.company_id, answer.key.clone()), Arc::new(answer));
    }

    /// Remembers that a key was used.
    pub(super) fn note_used(&self, company: CompanyId, key: &str) {
        self.lock().insert(hash(company, key), clock::now().timestamp());
    }

    /// Forgets what has expired, here and in the table, for as long as the process lives.
    pub async fn keep_swept(&self, db: &PgPool) {
        let mut clock = tokio::time::interval(SWEEP_EVERY);
        loop {
            clock.tick().await;
            self.sweep(db).await;
        }
    }

    /// Forgets what has expired, here and in the table.
    pub async fn sweep(&self, db: &PgPool) {
        let before = kept_since();
        self.lock().since.retain(|_, at_s| *at_s > before.timestamp());
        loop {
            match idempotency_keys::sweep(db, before, SWEPT_MAX).await {
                Ok(swept) if swept == SWEPT_MAX.unsigned_abs() => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::debug!(%error, "expired idempotency keys are not swept now");
                    break;
                }
            }
        }
    }
}

impl Default for Keys {
    fn default() -> Self {
        let weigh = |key: &Key, answer: &Arc<AnswerRow>| {
            u32::try_from(key.1.len() + answer.body.len() + size_of::<AnswerRow>()).unwrap_or(u32::MAX)
        };
        Self {
            turns: DashMap::new(),
            recent: Cache::builder().weigher(weigh).max_capacity(RECENT_BYTES_MAX).build(),
            used: Mutex::default(),
        }
    }
}

impl Used {
    fn insert(&mut self, key: u64, at_s: i64) {
        if self.since.len() < KEYS_MAX {
            self.since.insert(key, at_s);
        } else {
            self.incomplete_until_s = at_s + KEPT_HOURS * 3600;
        }
    }
}

fn hash(company: CompanyId, key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (company, key).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_does_not_fit_makes_every_key_one_to_look_up() {
        let keys = Keys::default();
        assert!(!keys.may_be_used(CompanyId(1), "a"));
        keys.note_used(CompanyId(1), "a");
        assert!(keys.may_be_used(CompanyId(1), "a"));
        assert!(!keys.may_be_used(CompanyId(2), "a"), "another company's key is its own");
        keys.lock().since.extend((0..KEYS_MAX as u64).map(|key| (key, i64::MAX)));
        assert!(!keys.may_be_used(CompanyId(2), "b"));
        keys.note_used(CompanyId(2), "c");
        assert!(keys.may_be_used(CompanyId(2), "b"), "nobody can be sure any more");
    }
}
