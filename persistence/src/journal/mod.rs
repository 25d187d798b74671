//! The journal: every acknowledged change is on local disk.
//!
//! Records are appended to a bounded queue. One thread writes the queued records as a group, syncs once, and then
//! acknowledges all of them. Records are numbered, logged and acknowledged in the order of `append`. The journal must
//! never acknowledge a record that is not synced, never reorder records, and never repair damage: it truncates a torn
//! tail and refuses to open on any other inconsistency. A segment is released once the database has all its records.
//!
//! [`record`] describes the on-disk format.

mod confirmed_file;
mod copy;
mod error;
mod maintenance;
mod reader;
pub mod record;
mod record_queue;
mod recover;
mod segment;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

pub use copy::{Contents, confirm_copy, copy, examine};
pub use error::{JournalError, Refused, TooLarge};
pub use reader::Records;
pub use recover::{Inspection, RecoveredJournal, TornTail, inspect, lock, open, open_locked};
pub use segment::{DirLock, exists};

use state::{Chore, JournalState, ThreadContext};
use writer::{Failure, JournalWriter};

/// Position of a record in the log. The first record is 1.
pub type Seq = u64;

/// Maximum size of a record: far above any change, yet small enough to buffer a group of one record in memory.
pub const RECORD_BYTES_MAX: usize = 16 << 20;

/// The smallest segment size that leaves space for a header and a record.
const SEGMENT_BYTES_MIN: u64 = 512;

/// Limits of a journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of a segment file in bytes; default 64 MiB. Large enough that files are rarely created and deleted, small
    /// enough that disk space is freed soon after the database catches up. A record larger than this gets its own
    /// segment.
    pub segment_bytes: u64,
    /// Maximum total size of all segment files in bytes, spares included; default 4 GiB, enough for hours without the
    /// database. Reservations are refused before the limit is exceeded; only records much larger than usual, reserved
    /// before the limit was reached, may exceed it by their own size. At least two segments.
    pub max_bytes: u64,
    /// Encoded bytes of queued records; default 64 MiB. Bounds memory when the disk is slow.
    pub queue_bytes_max: usize,
    /// Queued records plus outstanding reservations; default 65 536. Bounds how long a record waits.
    pub queue_records_max: usize,
    /// Maximum bytes written per sync, unless one record has more; default 4 MiB. Writing a larger group would take
    /// longer than the syncs that it saves.
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

/// Counters for logs and metrics. Each is exact, but they are not read atomically together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records accepted but not yet synced.
    pub queued_records: u64,
    /// Encoded bytes of these records.
    pub queued_bytes: usize,
    /// Size of all live segment files.
    pub live_bytes: u64,
    /// The limit of `live_bytes`.
    pub max_bytes: u64,
    /// Number of segment files.
    pub segments: usize,
    /// Syncs since startup, one per group.
    pub syncs: u64,
    /// Records synced since startup.
    pub records: u64,
}

/// Handle to a journal that is open for writing; cheap to clone. `T` is the item attached to a record: the `on_synced`
/// of [`RecoveredJournal::start`] receives it once the record is durable.
///
/// When the last handle is dropped, the journal closes in the background; [`Journal::close`] waits for that.
pub struct Journal<T> {
    handle: Arc<Handle<T>>,
}

struct Handle<T> {
    state: Arc<JournalState<T>>,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    writer: JoinHandle<Result<(), JournalError>>,
    helper: JoinHandle<()>,
}

impl<T: Send + 'static> Journal<T> {
    fn spawn(
        state: JournalState<T>,
        context: ThreadContext,
        on_synced: impl FnMut(&mut Vec<(Seq, T)>) + Send + 'static,
        on_poisoned: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Result<Self, JournalError> {
        let state = Arc::new(state);
        let helper_state = Arc::clone(&state);
        let helper = spawn_thread("journal-files", move || maintenance::run(&helper_state, &context.chores))?;
        state.schedule(Chore::Prepare);
        let mut writer = JournalWriter::new(Arc::clone(&state), context.file, context.seed, on_synced);
        let writer_state = Arc::clone(&state);
        let writer = spawn_thread("journal-writer", move || {
            let result = catch_unwind(AssertUnwindSafe(|| writer.run()))
                .unwrap_or_else(|_| Err(Failure::Poisoned(io::Error::other("the journal's writer panicked"))));
            let result = result.map_err(|failure| match failure {
                Failure::Unwritten(records) => JournalError::Unwritten { records },
                Failure::Poisoned(error) => {
                    writer_state.set_poisoned();
                    tracing::error!(%error, "journal write failed after changes were applied; no further changes are accepted");
                    on_poisoned(&error);
                    JournalError::Poisoned
                }
            });
            writer.abandon_items();
            writer_state.schedule(Chore::Stop);
            result
        })?;
        let threads = Mutex::new(Some(Threads { writer, helper }));
        Ok(Self { handle: Arc::new(Handle { state, threads }) })
    }

    /// Reserves room in the queue before a command decides. Dropping the reservation frees the room.
    pub fn reserve(&self) -> Result<JournalReservation<T>, Refused> {
        self.handle.state.reserve()?;
        Ok(JournalReservation { state: Some(Arc::clone(&self.handle.state)) })
    }

    /// All records up to this sequence are on disk.
    pub fn synced(&self) -> Seq {
        self.handle.state.synced.load(Ordering::Acquire)
    }

    /// The last sequence assigned.
    pub fn appended(&self) -> Seq {
        self.handle.state.appended.load(Ordering::Acquire)
    }

    /// Releases the segments that hold only records up to `watermark`, all of which are in the database. Returns at
    /// once; a helper thread unlinks the files or keeps a few for reuse. The current segment stays.
    pub fn release(&self, watermark: Seq) {
        self.handle.state.release(watermark);
    }

    /// The records from `from` up to the last one synced now. A segment that is released during the read is not
    /// recycled, but once its file is removed it can no longer be opened.
    pub fn read_from(&self, from: Seq) -> Result<Records, JournalError> {
        let state = &self.handle.state;
        // IMPORTANT: read `synced` before the segment list, so that every record up to it is in a listed segment.
        let last = self.synced();
        let sources = {
            let segments = state.segments.lock();
            let sealed = segments.sealed.iter().map(|segment| (segment.first, segment.path.clone()));
            sealed.chain([(segments.current.first, segments.current.path.clone())]).collect()
        };
        Records::new(sources, from, last, state.id)
    }

    /// Syncs the confirmed watermark to disk. Call it after the last release.
    pub fn sync_confirmed(&self) {
        self.handle.state.sync_confirmed();
    }

    /// Current fill level and counters.
    pub fn stats(&self) -> Stats {
        let state = &self.handle.state;
        let (queued_records, queued_bytes) = state.queued();
        let (live_bytes, segments) = {
            let segments = state.segments.lock();
            (segments.live_bytes(), segments.sealed.len() + 1)
        };
        let syncs = state.syncs.load(Ordering::Relaxed);
        let records = state.records.load(Ordering::Relaxed);
        Stats { queued_records, queued_bytes, live_bytes, max_bytes: state.options.max_bytes, segments, syncs, records }
    }

    /// Accepts no more records, writes and syncs the queued ones, joins the threads and unlocks the directory.
    /// Outstanding reservations may still be used for a moment. Do not call it from `on_synced`: that runs on the
    /// thread this waits for.
    pub fn close(&self) -> Result<(), JournalError> {
        self.handle.state.set_closed();
        let Some(threads) = self.handle.threads.lock().take() else { return Ok(()) };
        let result = threads.writer.join().unwrap_or(Err(JournalError::Poisoned));
        self.handle.state.schedule(Chore::Stop);
        if threads.helper.join().is_err() {
            tracing::error!("journal maintenance thread panicked");
        }
        self.handle.state.unlock_dir();
        result
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

/// Reserved room in the queue: a record appended with it will be written, unless the disk fails.
#[must_use = "dropping a reservation returns it"]
pub struct JournalReservation<T> {
    /// `None` once the reservation was used.
    state: Option<Arc<JournalState<T>>>,
}

impl<T> JournalReservation<T> {
    /// Assigns the next sequence to the record and queues it; call order is log order. A record above
    /// [`RECORD_BYTES_MAX`] is a caller's bug: the item is returned and nothing is queued.
    pub fn append(mut self, record: &[u8], item: T) -> Result<Seq, TooLarge<T>> {
        if record.len() > RECORD_BYTES_MAX {
            return Err(TooLarge { item, bytes: record.len() });
        }
        let Some(state) = self.state.take() else { return Err(TooLarge { item, bytes: record.len() }) };
        let mut queue = state.queue.lock();
        let seq = queue.next;
        queue.next += 1;
        state.appended.store(seq, Ordering::Release);
        state.use_reservation(record.len());
        queue.records.push(record, item);
        state.wake_writer(queue);
        Ok(seq)
    }
}

impl<T> fmt::Debug for JournalReservation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalReservation").finish_non_exhaustive()
    }
}

impl<T> Drop for JournalReservation<T> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            state.return_reservation();
        }
    }
}

fn spawn_thread<R: Send + 'static>(
    name: &'static str,
    run: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, JournalError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(JournalError::io("start a thread for", name.as_ref()))
}
