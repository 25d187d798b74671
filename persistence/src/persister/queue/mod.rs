//! The queue of entries that are durable but not yet in PostgreSQL.

mod flushes;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::durable::Synced;
use crate::event_news::EventNews;
use crate::journal::Seq;
use crate::{Change, Error, Result};

pub use flushes::Flushes;

/// Maximum changes per transaction when there is a backlog. More would not be faster.
pub const BATCH_CHANGES_MAX: usize = 10_000;

/// Maximum changes per transaction while the persister keeps up: takes some tens of milliseconds, which is how long a
/// list requested meanwhile has to wait.
const SHORT_BATCH_CHANGES_MAX: usize = 2_000;

/// Changes retained in memory, about 200 MiB. With a journal, the rest is read back from disk later; without one,
/// further entries are refused.
const CHANGES_MAX: usize = 300_000;

/// How long a list waits for the persister. A batch takes some ten milliseconds, so five seconds mean that the database
/// has a problem, and an error is better for the caller.
const BARRIER_TIME_MAX: Duration = Duration::from_secs(5);

/// One durable decision that is to be written to the tables.
pub struct Entry {
    /// Its sequence in the log.
    pub seq: Seq,
    /// Its changes.
    pub changes: Vec<Change>,
    /// The waiter for the commit (durability `database`).
    pub(crate) done: Option<Synced>,
}

/// Called for every decision as soon as it is durable, in log order, on the thread that made it durable. It must not
/// block: every later answer waits for it.
pub type CommitListener = Box<dyn Fn(&[Change]) + Send + Sync>;

/// The queue between log and persister, with the watermarks both observe.
pub struct FlushQueue {
    waiting: Mutex<Waiting>,
    /// Maximum number of changes in memory.
    room: usize,
    /// Whether entries that do not fit can be read back from a journal.
    spills: bool,
    arrived: Notify,
    /// The highest entry that a list waits for.
    wanted: AtomicU64,
    synced: watch::Sender<Seq>,
    flushed: watch::Sender<Seq>,
    up: AtomicBool,
    closed: AtomicBool,
    /// Changes written since startup.
    written: AtomicU64,
    flushes: Flushes,
    witness: OnceLock<CommitListener>,
    /// Listeners for the events of what is written.
    news: OnceLock<Arc<EventNews>>,
}

#[derive(Default)]
struct Waiting {
    /// With the time each one arrived.
    entries: VecDeque<(Instant, Entry)>,
    changes: usize,
    /// The newest entry that arrived.
    seen: Seq,
    /// Entries after `read_to` are only on disk.
    spilled: bool,
    /// When the first of them arrived.
    spilled_since: Option<Instant>,
    read_to: Seq,
    oldest_since: Option<Instant>,
}

pub(super) enum Taken {
    Entries(Vec<Entry>),
    Spilled { from: Seq },
    Nothing,
}

impl FlushQueue {
    /// A queue for a log whose entries up to `flushed` are in the tables. `spills`: whether there is a journal to read
    /// back from.
    pub fn new(flushed: Seq, spills: bool) -> Self {
        Self::with_room(flushed, spills, CHANGES_MAX)
    }

    fn with_room(flushed: Seq, spills: bool, room: usize) -> Self {
        let waiting = Waiting { seen: flushed, read_to: flushed, ..Waiting::default() };
        Self {
            waiting: Mutex::new(waiting),
            room,
            spills,
            arrived: Notify::new(),
            wanted: AtomicU64::new(0),
            synced: watch::Sender::new(flushed),
            flushed: watch::Sender::new(flushed),
            up: AtomicBool::new(true),
            closed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            flushes: Flushes::new(),
            witness: OnceLock::new(),
            news: OnceLock::new(),
        }
    }

    pub(crate) fn set_witness(&self, witness: CommitListener) {
        // Only the first is stored; a store has one engine.
        let _ = self.witness.set(witness);
    }

    /// Entries of a company with listeners are written as soon as possible.
    pub(crate) fn set_news(&self, news: Arc<EventNews>) {
        let _ = self.news.set(news);
    }

    /// Makes an entry urgent if somebody listens for its events.
    fn hurry(&self, entry: &Entry) {
        if let Some(news) = self.news.get().filter(|news| news.listening() > 0)
            && entry.changes.first().is_some_and(|change| news.is_heard(change.company()))
        {
            self.wanted.fetch_max(entry.seq, Ordering::AcqRel);
        }
    }

    /// Notifies the listener of a decision that became durable.
    pub(crate) fn on_durable(&self, changes: &[Change]) {
        if let Some(witness) = self.witness.get() {
            witness(changes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that can panic runs under the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues synced entries in log order.
    pub(crate) fn push(&self, entries: impl Iterator<Item = Entry>) {
        let now = Instant::now();
        let mut waiting = self.lock();
        let is_first = !waiting.has_work();
        for entry in entries {
            self.hurry(&entry);
            waiting.push(entry, now, self.spills.then_some(self.room));
        }
        self.announce(waiting, is_first);
    }

    /// Numbers and enqueues an entry of a log without a journal.
    pub(crate) fn push_numbered(&self, appended: &AtomicU64, changes: Vec<Change>, done: Option<Synced>) -> Seq {
        let mut waiting = self.lock();
        let seq = appended.fetch_add(1, Ordering::AcqRel) + 1;
        if done.is_none() {
            // It counts as durable at once; called under the lock to preserve the order.
            self.on_durable(&changes);
        }
        let entry = Entry { seq, changes, done };
        self.hurry(&entry);
        let is_first = !waiting.has_work();
        waiting.push(entry, Instant::now(), None);
        self.announce(waiting, is_first);
        seq
    }

    /// Reports what has arrived. The persister is woken for the first entry, and again once entries are urgent: while it
    /// gathers, each wake-up would be a system call of the thread that makes entries durable.
    fn announce(&self, waiting: MutexGuard<'_, Waiting>, is_first: bool) {
        let seen = waiting.seen;
        let wakes = is_first || waiting.is_urgent() || self.is_wanted();
        drop(waiting);
        self.synced.send_if_modified(|synced| {
            let newer = seen > *synced;
            *synced = seen.max(*synced);
            newer
        });
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// Whether a log without a journal accepts more decisions.
    pub(crate) fn has_room(&self, needs_database: bool) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Unavailable("the log is closing".to_owned()));
        }
        if needs_database && !self.is_up() {
            return Err(Error::Unavailable("the database is down".to_owned()));
        }
        if self.lock().changes >= self.room {
            return Err(Error::Unavailable("the database is too slow".to_owned()));
        }
        Ok(())
    }

    /// Waits for entries, then up to `gather` longer for more, unless they are urgent. Returns false when closed and
    /// empty.
    pub(super) async fn wait(&self, gather: Duration) -> bool {
        loop {
            let arrived = self.arrived.notified();
            let has_work = self.lock().has_work();
            if has_work {
                break;
            }
            if self.closed.load(Ordering::Acquire) {
                return false;
            }
            arrived.await;
        }
        let gathered = tokio::time::Instant::now() + gather;
        while !self.is_urgent() {
            let arrived = self.arrived.notified();
            if tokio::time::timeout_at(gathered, arrived).await.is_err() {
                break;
            }
        }
        true
    }

    fn is_urgent(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.is_wanted() || self.lock().is_urgent()
    }

    /// Whether somebody waits for an entry that is not in the tables.
    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > self.flushed()
    }

    /// The entries of the next transaction. If a caller waits, only those up to the one it waits for; otherwise a short
    /// batch, so that later callers wait briefly. A large batch is taken only when there is a backlog.
    pub(super) fn take(&self) -> Taken {
        let wanted = self.wanted.load(Ordering::Acquire);
        let mut waiting = self.lock();
        let Some(first) = waiting.entries.front().map(|(_, entry)| entry.seq) else {
            return if waiting.spilled { Taken::Spilled { from: waiting.read_to + 1 } } else { Taken::Nothing };
        };
        let (last, changes_max) = match waiting.changes {
            changes if changes > BATCH_CHANGES_MAX => (Seq::MAX, BATCH_CHANGES_MAX),
            _ if wanted >= first => (wanted, SHORT_BATCH_CHANGES_MAX),
            _ => (Seq::MAX, SHORT_BATCH_CHANGES_MAX),
        };
        let mut taken = Vec::new();
        let mut changes = 0;
        while changes < changes_max
            && let Some((_, entry)) = waiting.entries.pop_front_if(|(_, next)| next.seq <= last)
        {
            changes += entry.changes.len();
            taken.push(entry);
        }
        waiting.changes -= changes;
        Taken::Entries(taken)
    }

    /// Marks entries up to `seq` as read back from the journal. Once they include the newest entry, the queue buffers
    /// in memory again.
    pub(super) fn read_back(&self, seq: Seq) {
        let mut waiting = self.lock();
        waiting.read_to = seq.max(waiting.read_to);
        if waiting.read_to >= waiting.seen {
            waiting.spilled = false;
        }
    }

    /// Records a commit and its duration.
    pub(super) fn flushed_to(&self, seq: Seq, changes: usize, took: Duration) {
        let changes = changes as u64;
        self.written.fetch_add(changes, Ordering::Relaxed);
        self.flushes.changes.add(changes);
        self.flushes.duration_ns.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        let mut waiting = self.lock();
        waiting.oldest_since = waiting.oldest();
        drop(waiting);
        self.flushed.send_replace(seq);
    }

    /// Counts a failed attempt.
    pub(super) fn flush_failed(&self) {
        self.flushes.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Metrics of the flushes.
    pub fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// Sets whether the database accepts changes; returns the previous value.
    pub(crate) fn set_up(&self, up: bool) -> bool {
        self.up.swap(up, Ordering::AcqRel)
    }

    /// Whether the last write to the database succeeded.
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// The newest entry in the tables.
    pub fn flushed(&self) -> Seq {
        *self.flushed.borrow()
    }

    /// Changes written since startup.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How long the oldest unwritten entry has been waiting.
    pub fn lag(&self) -> Duration {
        self.lock().oldest_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub(crate) async fn wait_synced(&self, seq: Seq) -> Result<()> {
        let mut synced = self.synced.subscribe();
        let reached = synced.wait_for(|reached| *reached >= seq);
        match tokio::time::timeout(BARRIER_TIME_MAX, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::Unavailable("the journal did not catch up in time".to_owned())),
        }
    }

    pub(crate) async fn wait_flushed(&self, seq: Seq) -> Result<()> {
        if self.flushed() >= seq {
            return Ok(());
        }
        if !self.is_up() {
            return Err(Error::Unavailable("the database is down".to_owned()));
        }
        self.wait_committed(seq).await
    }

    pub(crate) async fn wait_committed(&self, seq: Seq) -> Result<()> {
        self.wanted.fetch_max(seq, Ordering::AcqRel);
        self.arrived.notify_one();
        let mut flushed = self.flushed.subscribe();
        let reached = flushed.wait_for(|reached| *reached >= seq);
        match tokio::time::timeout(BARRIER_TIME_MAX, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::Unavailable("the database did not catch up in time".to_owned())),
        }
    }

    /// Lets the persister write the queued entries and end.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.arrived.notify_one();
    }
}

impl Waiting {
    fn has_work(&self) -> bool {
        self.spilled || !self.entries.is_empty()
    }

    /// Whether there is no point in gathering more.
    fn is_urgent(&self) -> bool {
        self.spilled
            || self.changes >= SHORT_BATCH_CHANGES_MAX
            || self.entries.front().is_some_and(|(_, entry)| entry.done.is_some())
    }

    /// Arrival time of the oldest waiting entry. For entries on disk only the first one's time is known; all of them
    /// count as that old until all are read back.
    fn oldest(&self) -> Option<Instant> {
        let spilled = if self.spilled { self.spilled_since } else { None };
        self.entries.front().map(|(since, _)| *since).into_iter().chain(spilled).min()
    }

    /// Enqueues an entry that arrived at `now`, unless it is also on disk and there is no `room` in memory.
    fn push(&mut self, entry: Entry, now: Instant, room: Option<usize>) {
        self.seen = entry.seq;
        if entry.seq <= self.read_to {
            return; // Read back from the journal before it came by here.
        }
        if self.spilled || room.is_some_and(|room| self.changes >= room) {
            if !self.spilled {
                self.spilled = true;
                self.spilled_since = Some(now);
                self.read_to = entry.seq - 1;
            }
            return;
        }
        self.oldest_since.get_or_insert(now);
        self.changes += entry.changes.len();
        self.entries.push_back((now, entry));
    }
}
