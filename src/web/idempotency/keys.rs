//! Which keys were used lately. Most keys are new, and memory alone can say so: no look-up stands in their way, also
//! while the database is away.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_actors::clock;
use hotline_persistence::tables::idempotency_keys::{self, AnswerRow, KEPT};
use hotline_persistence::{CompanyId, PgPool};
use moka::sync::Cache;
use tokio::sync::OwnedMutexGuard;

/// Keys memory can tell from new ones, 16 bytes and the map's room each. Beyond, every key is looked up.
const KEYS_MAX: usize = 2_000_000;

/// Bytes of answers kept near, for retries right after a break.
const RECENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How often expired answers are forgotten, and how many at once.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SWEPT_MAX: i64 = 10_000;

/// Answers from before are forgotten.
pub(super) fn kept_since() -> DateTime<Utc> {
    clock::now() - KEPT
}

type Key = (CompanyId, String);

/// The keys of every company. Cheap to clone.
#[derive(Clone)]
pub struct Keys(Arc<Inner>);

struct Inner {
    /// Held by the request that is being served under a key; its twins wait.
    turns: DashMap<Key, Arc<tokio::sync::Mutex<()>>>,
    recent: Cache<Key, Arc<AnswerRow>>,
    used: Mutex<Used>,
}

/// Hashes of the keys used within the time, with the second of their use.
struct Used {
    since: HashMap<u64, i64>,
    /// How many fit.
    room: usize,
    /// Until then some keys are missing here.
    incomplete_until_s: i64,
}

/// The turn of one request under its key. It lasts until everyone who may still carry the request out is done: its
/// task, and the actor it has asked, whichever ends last.
pub(super) struct Turn {
    keys: Keys,
    key: Key,
    lock: Option<OwnedMutexGuard<()>>,
}

impl Turn {
    pub(super) fn company(&self) -> CompanyId {
        self.key.0
    }

    pub(super) fn key(&self) -> &str {
        &self.key.1
    }

    /// Remembers that a key of this company was used: the turn's own, or one beside it.
    pub(super) fn note_used(&self, key: &str) {
        self.keys.note_used(self.key.0, key);
    }

    /// Whether such a key may have been used; false is certain.
    pub(super) fn may_be_used(&self, key: &str) -> bool {
        self.keys.may_be_used(self.key.0, key)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.lock.take());
        // The map holds one reference; whoever waits holds another, and the entry then stays.
        self.keys.0.turns.remove_if(&self.key, |_, turn| Arc::strong_count(turn) == 1);
    }
}

impl Keys {
    /// The keys used within the time, from the table.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn load(db: &PgPool) -> hotline_persistence::Result<Self> {
        let keys = Self::default();
        // One more than fits: it tells that there are more.
        let limit = i64::try_from(KEYS_MAX + 1).unwrap_or(i64::MAX);
        for (company, key, at) in idempotency_keys::recent(db, kept_since(), limit).await? {
            keys.lock().insert(hash(company, &key), at.timestamp());
        }
        Ok(keys)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other request is served under the key.
    pub(super) async fn turn(&self, company: CompanyId, key: &str) -> Turn {
        let key = (company, key.to_owned());
        let turn = self.0.turns.entry(key.clone()).or_default().clone();
        let lock = turn.lock_owned().await;
        Turn { keys: self.clone(), key, lock: Some(lock) }
    }

    /// Requests under a key right now: those that are served, and those that wait for their turn.
    pub fn at_work(&self) -> usize {
        self.0.turns.iter().map(|turn| Arc::strong_count(turn.value()) - 1).sum()
    }

    /// An answer that was given a short while ago.
    pub(super) fn recent(&self, company: CompanyId, key: &str) -> Option<Arc<AnswerRow>> {
        self.0.recent.get(&(company, key.to_owned())).filter(|answer| answer.created_at > kept_since())
    }

    /// Whether the key may have been used; false is certain.
    pub(super) fn may_be_used(&self, company: CompanyId, key: &str) -> bool {
        let used = self.lock();
        used.incomplete_until_s > clock::now().timestamp() || used.since.contains_key(&hash(company, key))
    }

    /// Remembers an answer.
    pub(super) fn remember(&self, answer: AnswerRow) {
        self.note_used(answer.company_id, &answer.key);
        self.0.recent.insert((answer.company_id, answer.key.clone()), Arc::new(answer));
    }

    /// Remembers that a key was used.
    fn note_used(&self, company: CompanyId, key: &str) {
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
        // The second that is not over yet is kept: an answer must not outlive what is known of its key.
        self.lock().since.retain(|_, at_s| *at_s >= before.timestamp());
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
        Self::with_room(KEYS_MAX)
    }
}

impl Keys {
    fn with_room(room: usize) -> Self {
        let weigh = |key: &Key, answer: &Arc<AnswerRow>| {
            u32::try_from(2 * key.1.len() + answer.body.len() + size_of::<AnswerRow>()).unwrap_or(u32::MAX)
        };
        Self(Arc::new(Inner {
            turns: DashMap::new(),
            recent: Cache::builder().weigher(weigh).max_capacity(RECENT_BYTES_MAX).build(),
            used: Mutex::new(Used { since: HashMap::new(), room, incomplete_until_s: 0 }),
        }))
    }
}

impl Used {
    fn insert(&mut self, key: u64, at_s: i64) {
        // Of two keys that hash alike the later use counts.
        if let Some(known_s) = self.since.get_mut(&key) {
            *known_s = at_s.max(*known_s);
        } else if self.since.len() < self.room {
            self.since.insert(key, at_s);
        } else {
            self.incomplete_until_s = self.incomplete_until_s.max(at_s + KEPT.num_seconds() + 1);
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

    const A: CompanyId = CompanyId::new(1);
    const B: CompanyId = CompanyId::new(2);

    #[test]
    fn a_key_that_does_not_fit_makes_every_key_one_to_look_up() {
        let keys = Keys::with_room(2);
        assert!(!keys.may_be_used(A, "a"));
        keys.note_used(A, "a");
        assert!(keys.may_be_used(A, "a"));
        assert!(!keys.may_be_used(B, "a"), "another company's key is its own");
        keys.note_used(A, "b");
        keys.note_used(A, "b");
        assert!(!keys.may_be_used(B, "b"), "a key that is known needs no more room");
        keys.note_used(B, "c");
        assert!(keys.may_be_used(B, "b"), "nobody can be sure any more");
    }

    #[test]
    fn of_keys_that_hash_alike_the_later_use_counts() {
        let keys = Keys::with_room(1);
        keys.lock().insert(7, 200);
        keys.lock().insert(7, 100);
        assert_eq!(keys.lock().since[&7], 200);
    }

    #[actix_web::test]
    async fn a_turn_leaves_nothing_behind_and_is_one_at_a_time() {
        let keys = Keys::default();
        let first = keys.turn(A, "a").await;
        let other = keys.turn(B, "a").await;
        let mut second = Box::pin(keys.turn(A, "a"));
        let waits = futures_util::future::poll_immediate(&mut second).await;
        assert!(waits.is_none(), "two turns at once");
        drop(first);
        assert_eq!(keys.0.turns.len(), 2, "who waits has lost its place");
        drop(second.await);
        drop(other);
        assert!(keys.0.turns.is_empty());
        // Who gives up waiting leaves nothing behind either, once the one before is done.
        let first = keys.turn(A, "a").await;
        let mut second = Box::pin(keys.turn(A, "a"));
        assert!(futures_util::future::poll_immediate(&mut second).await.is_none());
        drop(second);
        drop(first);
        assert!(keys.0.turns.is_empty());
    }
}
