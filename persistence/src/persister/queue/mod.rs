//! The queue of entries that are durable but not yet in PostgreSQL.

mod flushes;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};

use crate::durable::SyncSignal;
use crate::event_news::EventNews;
use crate::journal::Seq;
use crate::{Change, Error, Result};

pub use flushes::Flushes;

/// Maximum changes per transaction when there is a backlog. More would not be faster.
pub const BATCH_CHANGES_MAX: usize = 10_000;

/// Maximum changes per transaction while the persister keeps up. Such a transaction takes tens of milliseconds, which
/// is how long a list requested meanwhile has to wait.
const SHORT_BATCH_CHANGES_MAX: usize = 2_000;

/// Maximum changes in memory, about 200 MiB. With a journal, the rest is read back from disk later; without one,
/// further entries are refused.
const CHANGES_MAX: usize = 300_000;

/// How long a list request waits for the persister. A batch takes tens of milliseconds, so five seconds mean that the
/// database has a problem, and an error is better for the caller.
const BARRIER_TIME_MAX: Duration = Duration::from_secs(5);

/// One durable decision that is to be written to the tables.
pub struct Entry {
    /// Its sequence in the log.
    pub seq: Seq,
    /// Its changes.
    pub changes: Vec<Change>,
    /// Completed after the commit (durability `database`).
    pub(crate) signal: Option<SyncSignal>,
}

/// Called for every decision as soon as it is durable, in log order, on the thread that made it durable. It must not
/// block: every later answer waits for it.
pub type CommitListener = Box<dyn Fn(&[Change]) + Send + Sync>;

/// The queue between the log and the persister, with the watermarks that both observe.
pub struct FlushQueue {
    buffer: Mutex<Buffer>,
    /// Maximum number of changes in memory.
    capacity: usize,
    /// Whether entries that do not fit can be read back from a journal.
    can_spill: bool,
    arrivals: Notify,
    /// The newest urgent entry: a list request waits for it, or its events have a listener.
    barrier: AtomicU64,
    synced_seq: watch::Sender<Seq>,
    flushed_seq: watch::Sender<Seq>,
    is_available: AtomicBool,
    last_failure: Mutex<String>,
    is_closed: AtomicBool,
    /// Changes written since startup.
    changes_written: AtomicU64,
    flushes: Flushes,
    listener: OnceLock<CommitListener>,
    /// Listeners for the events of what is written.
    news: OnceLock<Arc<EventNews>>,
}

#[derive(Default)]
struct Buffer {
    /// Each with the time of its arrival.
    entries: VecDeque<(Instant, Entry)>,
    changes: usize,
    /// The newest entry that arrived.
    newest: Seq,
    /// Whether entries after `loaded_to` are only on disk.
    is_spilling: bool,
    /// When the first entry that is only on disk arrived.
    spilled_since: Option<Instant>,
    /// The newest entry that was read back. When spilling begins: the entry before the first spilled one.
    loaded_to: Seq,
    /// When the oldest entry that is not in the tables arrived. Stored, because a batch that is being written is no
    /// longer in `entries`.
    oldest_since: Option<Instant>,
}

pub(super) enum NextEntries {
    Entries(Vec<Entry>),
    Spilled { from: Seq },
    Nothing,
}

impl FlushQueue {
    /// A queue for a log whose entries up to `flushed` are in the tables. `can_spill`: whether there is a journal to
    /// read back from.
    pub fn new(flushed: Seq, can_spill: bool) -> Self {
        Self::with_capacity(flushed, can_spill, CHANGES_MAX)
    }

    fn with_capacity(flushed: Seq, can_spill: bool, capacity: usize) -> Self {
        let buffer = Buffer { newest: flushed, loaded_to: flushed, ..Buffer::default() };
        Self {
            buffer: Mutex::new(buffer),
            capacity,
            can_spill,
            arrivals: Notify::new(),
            barrier: AtomicU64::new(0),
            synced_seq: watch::Sender::new(flushed),
            flushed_seq: watch::Sender::new(flushed),
            is_available: AtomicBool::new(true),
            last_failure: Mutex::default(),
            is_closed: AtomicBool::new(false),
            changes_written: AtomicU64::new(0),
            flushes: Flushes::new(),
            listener: OnceLock::new(),
            news: OnceLock::new(),
        }
    }

    pub(crate) fn set_listener(&self, listener: CommitListener) {
        // Only the first is stored; a store has one engine.
        let _ = self.listener.set(listener);
    }

    /// Sets the listeners of events. Entries of companies with listeners are written as soon as possible.
    pub(crate) fn set_news(&self, news: Arc<EventNews>) {
        let _ = self.news.set(news);
    }

    /// Makes an entry urgent if its events have a listener.
    fn mark_if_urgent(&self, entry: &Entry) {
        if let Some(news) = self.news.get().filter(|news| news.listener_count() > 0)
            && entry.changes.first().is_some_and(|change| news.has_listener(change.company()))
        {
            self.barrier.fetch_max(entry.seq, Ordering::AcqRel);
        }
    }

    /// Notifies the listener of a decision that became durable.
    pub(crate) fn on_durable(&self, changes: &[Change]) {
        if let Some(listener) = self.listener.get() {
            listener(changes);
        }
    }

    /// Enqueues synced entries in log order.
    pub(crate) fn push(&self, entries: impl Iterator<Item = Entry>) {
        let now = Instant::now();
        let mut buffer = self.buffer.lock();
        let is_first = !buffer.has_work();
        for entry in entries {
            self.mark_if_urgent(&entry);
            buffer.push(entry, now, self.can_spill.then_some(self.capacity));
        }
        self.notify(buffer, is_first);
    }

    /// Numbers and enqueues an entry of a log without a journal.
    pub(crate) fn push_numbered(&self, appended: &AtomicU64, changes: Vec<Change>, signal: SyncSignal) -> Seq {
        let mut buffer = self.buffer.lock();
        let seq = appended.fetch_add(1, Ordering::AcqRel) + 1;
        let entry = Entry { seq, changes, signal: Some(signal) };
        self.mark_if_urgent(&entry);
        let is_first = !buffer.has_work();
        buffer.push(entry, Instant::now(), None);
        self.notify(buffer, is_first);
        seq
    }

    /// Notifies waiters of new entries. Wakes the persister for the first entry, and again once entries are urgent. It
    /// is not woken for each entry it gathers: a wake-up is a system call of the thread that makes entries durable.
    fn notify(&self, buffer: MutexGuard<'_, Buffer>, is_first: bool) {
        let newest = buffer.newest;
        let must_wake = is_first || buffer.is_urgent() || self.has_barrier();
        drop(buffer);
        self.synced_seq.send_if_modified(|synced| {
            let is_newer = newest > *synced;
            *synced = newest.max(*synced);
            is_newer
        });
        if must_wake {
            self.arrivals.notify_one();
        }
    }

    /// Checks that a log without a journal accepts another decision.
    pub(crate) fn check_room(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Unavailable("the log is closing".to_owned()));
        }
        if !self.is_up() {
            return Err(Error::Unavailable("the database is down".to_owned()));
        }
        if self.buffer.lock().changes >= self.capacity {
            return Err(Error::Unavailable("the database is too slow".to_owned()));
        }
        Ok(())
    }

    /// Waits for entries, then up to `gather` longer for more, unless they are urgent. Returns false when closed and
    /// empty.
    pub(super) async fn wait(&self, gather: Duration) -> bool {
        loop {
            let arrived = self.arrivals.notified();
            let has_work = self.buffer.lock().has_work();
            if has_work {
                break;
            }
            if self.is_closed.load(Ordering::Acquire) {
                return false;
            }
            arrived.await;
        }
        let deadline = tokio::time::Instant::now() + gather;
        while !self.is_urgent() {
            let arrived = self.arrivals.notified();
            if tokio::time::timeout_at(deadline, arrived).await.is_err() {
                break;
            }
        }
        true
    }

    fn is_urgent(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) || self.has_barrier() || self.buffer.lock().is_urgent()
    }

    /// Whether an urgent entry is not yet in the tables.
    fn has_barrier(&self) -> bool {
        self.barrier.load(Ordering::Acquire) > self.flushed()
    }

    /// The entries of the next transaction: those up to the newest urgent one, otherwise a short batch, so that later
    /// callers wait briefly. A large batch is taken only when there is a backlog.
    pub(super) fn take_entries(&self) -> NextEntries {
        let barrier = self.barrier.load(Ordering::Acquire);
        let mut buffer = self.buffer.lock();
        let Some(first) = buffer.entries.front().map(|(_, entry)| entry.seq) else {
            return if buffer.is_spilling {
                NextEntries::Spilled { from: buffer.loaded_to + 1 }
            } else {
                NextEntries::Nothing
            };
        };
        let (last, changes_max) = match buffer.changes {
            changes if changes > BATCH_CHANGES_MAX => (Seq::MAX, BATCH_CHANGES_MAX),
            _ if barrier >= first => (barrier, SHORT_BATCH_CHANGES_MAX),
            _ => (Seq::MAX, SHORT_BATCH_CHANGES_MAX),
        };
        let mut entries = Vec::new();
        let mut changes = 0;
        while changes < changes_max
            && let Some((_, entry)) = buffer.entries.pop_front_if(|(_, next)| next.seq <= last)
        {
            changes += entry.changes.len();
            entries.push(entry);
        }
        buffer.changes -= changes;
        NextEntries::Entries(entries)
    }

    /// Marks entries up to `seq` as read back from the journal. Once they include the newest entry, the queue buffers
    /// in memory again.
    pub(super) fn mark_read_back(&self, seq: Seq) {
        let mut buffer = self.buffer.lock();
        buffer.loaded_to = seq.max(buffer.loaded_to);
        if buffer.loaded_to >= buffer.newest {
            buffer.is_spilling = false;
        }
    }

    /// Records a commit and its duration.
    pub(super) fn record_flush(&self, seq: Seq, changes: usize, duration: Duration) {
        let changes = changes as u64;
        self.changes_written.fetch_add(changes, Ordering::Relaxed);
        self.flushes.changes.add(changes);
        self.flushes.duration_ns.add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        let mut buffer = self.buffer.lock();
        buffer.oldest_since = buffer.oldest_arrival();
        drop(buffer);
        self.flushed_seq.send_replace(seq);
    }

    /// Counts a failed attempt, and keeps its reason.
    pub(super) fn record_failure(&self, reason: String) {
        self.flushes.failed.fetch_add(1, Ordering::Relaxed);
        *self.last_failure.lock() = reason;
    }

    /// The reason of the last failed attempt; empty if none has failed.
    pub fn last_failure(&self) -> String {
        self.last_failure.lock().clone()
    }

    /// Metrics of the flushes.
    pub fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// Sets whether the database accepts changes; returns the previous value.
    pub(crate) fn set_available(&self, is_available: bool) -> bool {
        self.is_available.swap(is_available, Ordering::AcqRel)
    }

    /// Whether the last write to the database succeeded.
    pub fn is_up(&self) -> bool {
        self.is_available.load(Ordering::Acquire)
    }

    /// The newest entry in the tables.
    pub fn flushed(&self) -> Seq {
        *self.flushed_seq.borrow()
    }

    /// Changes written since startup.
    pub fn changes_written(&self) -> u64 {
        self.changes_written.load(Ordering::Relaxed)
    }

    /// How long the oldest unwritten entry has been waiting.
    pub fn lag(&self) -> Duration {
        self.buffer.lock().oldest_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Waits until the entries up to `seq` are synced.
    pub(crate) async fn wait_synced(&self, seq: Seq) -> Result<()> {
        let mut synced = self.synced_seq.subscribe();
        let reached = synced.wait_for(|reached| *reached >= seq);
        match tokio::time::timeout(BARRIER_TIME_MAX, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::Unavailable("the journal did not catch up in time".to_owned())),
        }
    }

    /// Waits until the tables have the entries up to `seq`. Fails at once while the database is down.
    pub(crate) async fn wait_flushed(&self, seq: Seq) -> Result<()> {
        if self.flushed() >= seq {
            return Ok(());
        }
        if !self.is_up() {
            return Err(Error::Unavailable("the database is down".to_owned()));
        }
        self.wait_flushed_despite_outage(seq).await
    }

    /// Waits until the tables have the entries up to `seq`, even while the database seems down.
    pub(crate) async fn wait_flushed_despite_outage(&self, seq: Seq) -> Result<()> {
        self.barrier.fetch_max(seq, Ordering::AcqRel);
        self.arrivals.notify_one();
        let mut flushed = self.flushed_seq.subscribe();
        let reached = flushed.wait_for(|reached| *reached >= seq);
        match tokio::time::timeout(BARRIER_TIME_MAX, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Error::Unavailable("the database did not catch up in time".to_owned())),
        }
    }

    /// Lets the persister write the queued entries, then end.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.arrivals.notify_one();
    }
}

impl Buffer {
    fn has_work(&self) -> bool {
        self.is_spilling || !self.entries.is_empty()
    }

    /// Whether there is no point in gathering more.
    fn is_urgent(&self) -> bool {
        self.is_spilling
            || self.changes >= SHORT_BATCH_CHANGES_MAX
            || self.entries.front().is_some_and(|(_, entry)| entry.signal.is_some())
    }

    /// Arrival time of the oldest waiting entry. Of the entries that are only on disk, the first one's time is
    /// known; all of them count as that old until all are read back.
    fn oldest_arrival(&self) -> Option<Instant> {
        let spilled_since = if self.is_spilling { self.spilled_since } else { None };
        self.entries.front().map(|(since, _)| *since).into_iter().chain(spilled_since).min()
    }

    /// Enqueues an entry that arrived at `now`, unless memory is full. `capacity`: the maximum changes in memory;
    /// `None` for entries that are not on disk, which are always enqueued.
    fn push(&mut self, entry: Entry, now: Instant, capacity: Option<usize>) {
        self.newest = entry.seq;
        if entry.seq <= self.loaded_to {
            return; // It was read back from the journal before it was enqueued.
        }
        if self.is_spilling || capacity.is_some_and(|capacity| self.changes >= capacity) {
            if !self.is_spilling {
                self.is_spilling = true;
                self.spilled_since = Some(now);
                self.loaded_to = entry.seq - 1;
            }
            return;
        }
        self.oldest_since.get_or_insert(now);
        self.changes += entry.changes.len();
        self.entries.push_back((now, entry));
    }
}
