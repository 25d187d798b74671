//! What is durable and not yet in PostgreSQL.

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

/// Changes written in one transaction of what has piled up. Larger ones gain nothing.
pub const BATCH_CHANGES_MAX: usize = 10_000;

/// Changes written in one transaction while the persister keeps up: some tens of milliseconds, which a list that is asked for
/// meanwhile waits before its own turn.
const SHORT_BATCH_CHANGES_MAX: usize = 2_000;

/// Changes kept in memory for the persister, about 200 MiB of them. With a journal the rest is read back from
/// disk when its turn comes; without one there is no room for more.
const CHANGES_MAX: usize = 300_000;

/// How long a list waits for the persister. A batch takes some ten milliseconds; a second means the database
/// is not well, and a caller is better told so.
const BARRIER_TIME_MAX: Duration = Duration::from_secs(5);

/// One durable decision on its way to the tables.
pub struct Entry {
    /// Its number in the log.
    pub seq: Seq,
    /// What it changed.
    pub changes: Vec<Change>,
    /// Who waits for the commit (durability `database`).
    pub(crate) done: Option<Synced>,
}

/// Is told of every decision the moment it is durable, in the order of the log, by the thread that made it so: it
/// must not wait, and what it does keeps everybody who is answered next.
pub type CommitListener = Box<dyn Fn(&[Change]) + Send + Sync>;

/// The queue between the log and the persister, with the marks both sides watch.
pub struct FlushQueue {
    waiting: Mutex<Waiting>,
    /// Changes kept in memory at most.
    room: usize,
    /// Whether what does not fit can be read back from a journal.
    spills: bool,
    arrived: Notify,
    /// The highest entry some list waits for.
    wanted: AtomicU64,
    synced: watch::Sender<Seq>,
    flushed: watch::Sender<Seq>,
    up: AtomicBool,
    closed: AtomicBool,
    /// Changes written since the start.
    written: AtomicU64,
    flushes: Flushes,
    witness: OnceLock<CommitListener>,
    /// Who waits for events of what is written.
    news: OnceLock<Arc<EventNews>>,
}

#[derive(Default)]
struct Waiting {
    /// With the moment each came by.
    entries: VecDeque<(Instant, Entry)>,
    changes: usize,
    /// The newest entry that came by.
    seen: Seq,
    /// Entries after `read_to` are on disk only.
    spilled: bool,
    /// When the first of them came by.
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
    /// A queue behind a log whose entries up to `flushed` are in the tables. `spills`: there is a journal to
    /// read back from.
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
        // The first one stays; there is one engine for a store.
        let _ = self.witness.set(witness);
    }

    /// What comes in of a company that somebody listens to is written as soon as it can be.
    pub(crate) fn set_news(&self, news: Arc<EventNews>) {
        let _ = self.news.set(news);
    }

    /// Has an entry written soon if somebody waits for its events.
    fn hurry(&self, entry: &Entry) {
        if let Some(news) = self.news.get().filter(|news| news.listening() > 0)
            && entry.changes.first().is_some_and(|change| news.is_heard(change.company()))
        {
            self.wanted.fetch_max(entry.seq, Ordering::AcqRel);
        }
    }

    /// Tells of a decision that has become durable.
    pub(crate) fn on_durable(&self, changes: &[Change]) {
        if let Some(witness) = self.witness.get() {
            witness(changes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that can panic runs under the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes synced entries, in order.
    pub(crate) fn push(&self, entries: impl Iterator<Item = Entry>) {
        let now = Instant::now();
        let mut waiting = self.lock();
        for entry in entries {
            self.hurry(&entry);
            waiting.push(entry, now, self.spills.then_some(self.room));
        }
        let seen = waiting.seen;
        drop(waiting);
        self.announce(seen);
    }

    /// Numbers and takes one entry of a log without a journal.
    pub(crate) fn push_numbered(&self, appended: &AtomicU64, changes: Vec<Change>, done: Option<Synced>) -> Seq {
        let mut waiting = self.lock();
        let seq = appended.fetch_add(1, Ordering::AcqRel) + 1;
        if done.is_none() {
            // Durable at once; under the lock, for the order.
            self.on_durable(&changes);
        }
        let entry = Entry { seq, changes, done };
        self.hurry(&entry);
        waiting.push(entry, Instant::now(), None);
        drop(waiting);
        self.announce(seq);
        seq
    }

    fn announce(&self, seen: Seq) {
        self.synced.send_if_modified(|synced| {
            let newer = seen > *synced;
            *synced = seen.max(*synced);
            newer
        });
        self.arrived.notify_one();
    }

    /// Whether a log without a journal may decide more.
    pub(crate) fn has_room(&self, needs_database: bool) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Unavailable("the log is closing".to_owned()));
        }
        if needs_database && !self.is_up() {
            return Err(Error::Unavailable("the database is down".to_owned()));
        }
        if self.lock().changes >= self.room {
            return Err(Error::Unavailable("the database does not keep up".to_owned()));
        }
        Ok(())
    }

    /// Waits for something to write, and a moment longer for company, unless it should not wait. False: closed and empty.
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
        if self.closed.load(Ordering::Acquire) || self.wanted.load(Ordering::Acquire) > self.flushed() {
            return true;
        }
        let waiting = self.lock();
        waiting.spilled
            || waiting.changes >= SHORT_BATCH_CHANGES_MAX
            || waiting.entries.front().is_some_and(|(_, entry)| entry.done.is_some())
    }

    /// The next entries for one transaction: what somebody waits for and no more; else so many that who comes meanwhile
    /// waits shortly, and more only of what could not be written for a while.
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

    /// Entries up to `seq` were read back from the journal. Once that is all that came by, memory serves again.
    pub(super) fn read_back(&self, seq: Seq) {
        let mut waiting = self.lock();
        waiting.read_to = seq.max(waiting.read_to);
        if waiting.read_to >= waiting.seen {
            waiting.spilled = false;
        }
    }

    /// Notes what was committed, and how long it took.
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

    /// Notes a try that failed.
    pub(super) fn flush_failed(&self) {
        self.flushes.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// What was flushed, and how.
    pub fn flushes(&self) -> &Flushes {
        &self.flushes
    }

    /// Notes whether the database takes changes; answers what was noted before.
    pub(crate) fn set_up(&self, up: bool) -> bool {
        self.up.swap(up, Ordering::AcqRel)
    }

    /// Whether the database took the last batch.
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// The newest entry in the tables.
    pub fn flushed(&self) -> Seq {
        *self.flushed.borrow()
    }

    /// Changes written since the start.
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
            _ => Err(Error::Unavailable("the journal does not catch up".to_owned())),
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
            _ => Err(Error::Unavailable("the database does not catch up".to_owned())),
        }
    }

    /// Lets the persister finish what is queued and end.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.arrived.notify_one();
    }
}

impl Waiting {
    fn has_work(&self) -> bool {
        self.spilled || !self.entries.is_empty()
    }

    /// When the oldest entry that waits came by. Of those on disk only the first is known; until all of them are read
    /// back they count as being as old.
    fn oldest(&self) -> Option<Instant> {
        let spilled = if self.spilled { self.spilled_since } else { None };
        self.entries.front().map(|(since, _)| *since).into_iter().chain(spilled).min()
    }

    /// Takes an entry that came by `now`, unless it is on disk as well and there is no `room` for it.
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
