//! The journal: what was answered is on disk.
//!
//! Records are appended to a bounded queue; one thread writes what is queued as a group, syncs once, and then releases
//! all of it. Order of `append` = sequence = order in the log = order of release. It must never release what is not
//! synced, never lose a place in the order, and never repair damage: a torn tail is cut, anything else refuses to open.
//!
//! The bytes on disk are described in [`record`].

mod chores;
mod confirmed;
mod error;
mod reader;
pub mod record;
mod recover;
mod segment;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

pub use error::{JournalError, Refused, TooLarge};
pub use reader::Records;
pub use recover::{Known, Recovered, TornTail, look, open};

use chores::do_chores;
use state::{Begun, Chore, Entry, State, lock};
use writer::{Failure, Writer};

/// Position of a record in the log. The first record is 1.
pub type Seq = u64;

/// The largest record: far above any change, and small enough that a group of one record is held in memory.
pub const RECORD_BYTES_MAX: usize = 16 << 20;

/// The smallest segment that still holds a header and a record.
const SEGMENT_BYTES_MIN: u64 = 512;

/// Limits of a journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of a segment file in bytes; default 64 MiB. Large, so that making and deleting files is rare; small, so
    /// that space comes back soon after the database caught up. A record larger than this gets a segment of its own.
    pub segment_bytes: u64,
    /// Size of all segment files together in bytes, spares included; default 4 GiB, hours of changes without the database. Places
    /// are refused before it is passed; only records much larger than usual, whose places were given before, may pass
    /// it by their own size. At least two segments.
    pub max_bytes: u64,
    /// Encoded records waiting for the writer, in bytes; default 64 MiB. Bounds memory when the disk is slow.
    pub queue_bytes_max: usize,
    /// Records waiting for the writer, places included; default 65 536. Bounds how long the last one waits.
    pub queue_records_max: usize,
    /// Bytes of records written with one sync; default 4 MiB. More makes a sync slower than it saves syncs.
    pub group_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            max_bytes: 4 << 30,
            queue_bytes_max: 64 << 20,
            queue_records_max: 65_536,
            group_bytes_max: 4 << 20,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), JournalError> {
        let reason = if self.segment_bytes < SEGMENT_BYTES_MIN {
            "segment_bytes is too small to hold a record"
        } else if self.max_bytes / 2 < self.segment_bytes {
            "max_bytes is less than two segments, so a full journal could never make room"
        } else if self.queue_records_max == 0 || self.queue_records_max >= 1 << 31 || self.queue_bytes_max == 0 {
            "the queue holds nothing, or more records than can be counted"
        } else if self.group_bytes_max > 1 << 30 {
            "group_bytes_max is above 1 GiB"
        } else {
            return Ok(());
        };
        Err(JournalError::Options { reason })
    }
}

/// Figures for logs and metrics, each correct at its own moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records accepted and not yet synced.
    pub queued_records: u64,
    /// Their encoded bytes.
    pub queued_bytes: usize,
    /// Size of all live segment files.
    pub live_bytes: u64,
    /// What it may grow to.
    pub max_bytes: u64,
    /// How many segment files there are.
    pub segments: usize,
    /// Syncs since the start, one for each group.
    pub syncs: u64,
    /// Records synced since the start.
    pub records: u64,
}

/// Handle to a journal that is being written; cheap to clone. `T` is what waits for a record: it is handed to
/// `on_synced` once the record is durable.
///
/// When the last handle is dropped the journal closes itself in the background; [`Journal::close`] waits for it.
pub struct Journal<T> {
    handle: Arc<Handle<T>>,
}

struct Handle<T> {
    state: Arc<State<T>>,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    writer: JoinHandle<Result<(), JournalError>>,
    helper: JoinHandle<()>,
}

impl<T: Send + 'static> Journal<T> {
    fn spawn(
        state: State<T>,
        begun: Begun,
        on_synced: impl FnMut(&mut Vec<(Seq, T)>) + Send + 'static,
        on_poisoned: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Result<Self, JournalError> {
        let state = Arc::new(state);
        let for_helper = Arc::clone(&state);
        let helper = spawn("journal-files", move || do_chores(&for_helper, &begun.chores))?;
        state.want_chore(Chore::Prepare);
        let mut writer = Writer::new(Arc::clone(&state), begun.file, begun.seed, on_synced);
        let for_writer = Arc::clone(&state);
        let writer = spawn("journal-writer", move || {
            let result = catch_unwind(AssertUnwindSafe(|| writer.run()))
                .unwrap_or_else(|_| Err(Failure::Poisoned(io::Error::other("the journal's writer panicked"))));
            let result = result.map_err(|failure| match failure {
                Failure::Unwritten(records) => JournalError::Unwritten { records },
                Failure::Poisoned(error) => {
                    for_writer.set_poisoned();
                    tracing::error!(%error, "journal is poisoned: memory is ahead of the disk");
                    on_poisoned(&error);
                    JournalError::Poisoned
                }
            });
            writer.strand();
            for_writer.want_chore(Chore::Stop);
            result
        })?;
        let threads = Mutex::new(Some(Threads { writer, helper }));
        Ok(Self { handle: Arc::new(Handle { state, threads }) })
    }

    /// Takes a place in the queue, before anything is decided. Dropping the place gives it back.
    pub fn reserve(&self) -> Result<Reservation<T>, Refused> {
        self.handle.state.take_place()?;
        Ok(Reservation { state: Some(Arc::clone(&self.handle.state)) })
    }

    /// All records up to this sequence are on disk.
    pub fn synced(&self) -> Seq {
        self.handle.state.synced.load(Ordering::Acquire)
    }

    /// The last sequence given out.
    pub fn appended(&self) -> Seq {
        self.handle.state.appended.load(Ordering::Acquire)
    }

    /// Gives up the segments that hold only records up to `watermark`, all of which are in the database. Returns at
    /// once; a helper thread unlinks the files, or keeps a few to use them again. The segment being written stays.
    pub fn release(&self, watermark: Seq) {
        self.handle.state.release(watermark);
    }

    /// The records from `from` up to what is synced now. Records above the watermark stay while they are read.
    pub fn read_from(&self, from: Seq) -> Result<Records, JournalError> {
        let state = &self.handle.state;
        // IMPORTANT: before the list, so that each record up to it is in a segment of the list.
        let last = self.synced();
        let sources = {
            let segments = lock(&state.segments);
            let sealed = segments.sealed.iter().map(|segment| (segment.first, segment.path.clone()));
            sealed.chain([(segments.current.first, segments.current.path.clone())]).collect()
        };
        Records::new(sources, from, last, state.id)
    }

    /// Notes for good how far the database has come. To be called once nothing is released any more.
    pub fn settle(&self) {
        self.handle.state.settle_confirmed();
    }

    /// How full it is and what it did.
    pub fn stats(&self) -> Stats {
        let state = &self.handle.state;
        let (queued_records, queued_bytes) = state.queued();
        let (live_bytes, segments) = {
            let segments = lock(&state.segments);
            (segments.live_bytes(), segments.sealed.len() + 1)
        };
        let syncs = state.syncs.load(Ordering::Relaxed);
        let records = state.records.load(Ordering::Relaxed);
        Stats { queued_records, queued_bytes, live_bytes, max_bytes: state.options.max_bytes, segments, syncs, records }
    }

    /// Accepts nothing more, writes and syncs what is queued, ends the threads and unlocks the directory. Places that are out may still be
    /// used for a moment. Not to be called from `on_synced`, which runs on the thread waited for.
    pub fn close(&self) -> Result<(), JournalError> {
        self.handle.state.set_closed();
        let Some(threads) = lock(&self.handle.threads).take() else { return Ok(()) };
        let written = threads.writer.join().unwrap_or(Err(JournalError::Poisoned));
        self.handle.state.want_chore(Chore::Stop);
        if threads.helper.join().is_err() {
            tracing::error!("the journal's helper thread panicked");
        }
        self.handle.state.unlock_dir();
        written
    }
}

impl<T> Clone for Journal<T> {
    fn clone(&self) -> Self {
        Self { handle: Arc::clone(&self.handle) }
    }
}

impl<T> fmt::Debug for Journal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("dir", &&*self.handle.state.dir).finish_non_exhaustive()
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.state.set_closed();
    }
}

/// A place in the queue: what is appended with it will be written, unless the disk fails.
#[must_use = "a place that is dropped is given back"]
pub struct Reservation<T> {
    /// None once the place was used.
    state: Option<Arc<State<T>>>,
}

impl<T> Reservation<T> {
    /// Gives the record the next sequence and queues it; the order of calls is the order in the log. A record above
    /// [`RECORD_BYTES_MAX`] is a mistake of the caller: the item comes back and nothing is queued.
    pub fn append(mut self, record: Vec<u8>, item: T) -> Result<Seq, TooLarge<T>> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(TooLarge { item, bytes: record.len() });
        }
        let Some(state) = self.state.take() else { return Err(TooLarge { item, bytes: record.len() }) };
        let mut queue = lock(&state.queue);
        let seq = queue.next;
        queue.next += 1;
        state.appended.store(seq, Ordering::Release);
        state.use_place(record.len());
        queue.entries.push_back(Entry { record, item });
        state.wake_writer(&mut queue);
        drop(queue);
        Ok(seq)
    }
}

impl<T> fmt::Debug for Reservation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl<T> Drop for Reservation<T> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            state.give_back_place();
        }
    }
}

fn spawn<R: Send + 'static>(
    name: &'static str,
    run: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, JournalError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(JournalError::io("start a thread for", name.as_ref()))
}
