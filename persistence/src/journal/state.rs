//! State shared by handles, writer and helper thread: the queue, the segments, and the accounting that decides whether
//! a reservation fits.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::confirmed_file::ConfirmedFile;
use super::record::{FRAME_BYTES, HEADER_BYTES, Header, JournalId, RECORD_PREFIX_BYTES, longest_group_bytes};
use super::record_queue::RecordQueue;
use super::segment::{self, Dir, DirLock, SegmentFile, SegmentPath};
use super::{JournalError, Options, Refused, Seq};

/// Bytes an outstanding reservation counts against the journal's size limit: larger than nearly every record, small
/// enough to allow thousands of them.
const RESERVATION_BYTES: u64 = 64 << 10;

/// A segment that is no longer written to.
#[derive(Debug)]
pub(super) struct SealedSegment {
    pub path: SegmentPath,
    pub first: Seq,
    pub last: Seq,
    pub bytes: u64,
    /// Only zeros follow this offset. It becomes the [`Header::stale_end`] of the file's next use.
    pub stale_end: u64,
}

/// The segment being written. `used` is the offset of the next group.
#[derive(Debug)]
pub(super) struct CurrentSegment {
    pub path: SegmentPath,
    pub first: Seq,
    pub bytes: u64,
    pub used: u64,
    /// See [`Header::stale_end`].
    pub stale_end: u64,
}

impl CurrentSegment {
    pub fn new(path: PathBuf, first: Seq, bytes: u64, stale_end: u64) -> Self {
        Self { path: path.into(), first, bytes, used: HEADER_BYTES as u64, stale_end }
    }

    pub fn seal(self, last: Seq) -> SealedSegment {
        let Self { path, first, bytes, used, stale_end } = self;
        SealedSegment { path, first, last, bytes, stale_end: stale_end.max(used) }
    }
}

#[derive(Debug)]
pub(super) struct Segments {
    pub sealed: VecDeque<SealedSegment>,
    pub current: CurrentSegment,
    pub watermark: Seq,
}

impl Segments {
    pub fn live_bytes(&self) -> u64 {
        self.sealed.iter().map(|segment| segment.bytes).sum::<u64>() + self.current.bytes
    }
}

pub(super) struct WriteQueue<T> {
    pub records: RecordQueue<T>,
    /// Items whose records were not acknowledged when the writer stopped. They are kept until the journal is dropped:
    /// the caller that waits for an item could take its drop for a response.
    pub abandoned_items: Vec<T>,
    /// Sequence that the next appended record gets.
    pub next: Seq,
    pub is_writer_sleeping: bool,
    pub is_closed: bool,
    /// Start a new segment although nothing is queued, so that the current one can be released.
    pub needs_segment: bool,
}

impl<T> WriteQueue<T> {
    /// An empty queue, whose first record gets the sequence `next`.
    fn new(next: Seq) -> Self {
        Self {
            records: RecordQueue::new(),
            abandoned_items: Vec::new(),
            next,
            is_writer_sleeping: false,
            is_closed: false,
            needs_segment: false,
        }
    }
}

/// A task for the helper thread.
pub(super) enum Chore {
    /// Prepare a spare and the reserve file, and retry failed chores.
    Prepare,
    /// Persist the confirmed watermark.
    Confirm,
    /// Recycle the file of a released segment, or unlink it.
    Release(SealedSegment),
    Stop,
}

const OPEN: u8 = 0;
const DISK_FULL: u8 = 1;
const CLOSED: u8 = 2;
const POISONED: u8 = 3;

/// One outstanding reservation in [`JournalState::counts`].
const ONE_RESERVATION: u64 = 1;
/// One queued record in [`JournalState::counts`].
const ONE_RECORD: u64 = 1 << 32;

pub(super) struct JournalState<T> {
    pub dir: Dir,
    pub options: Options,
    pub id: JournalId,
    /// `None` once the journal is closed.
    dir_lock: Mutex<Option<DirLock>>,
    pub queue: Mutex<WriteQueue<T>>,
    pub wake: Condvar,
    pub segments: Mutex<Segments>,
    /// Last in, first out: the pages of the newest are the likeliest to be cached.
    pub spares: Mutex<Vec<SegmentFile>>,
    /// Used when no file can be opened.
    pub reserve_file: Mutex<Option<SegmentFile>>,
    confirmed_file: Mutex<ConfirmedFile>,
    chores: mpsc::Sender<Chore>,
    /// Outstanding reservations (low half) and records queued or being written (high half) in one word, so that
    /// reserving takes one atomic operation.
    counts: AtomicU64,
    queued_bytes: AtomicUsize,
    /// Bytes that can still be written without exceeding `max_bytes`.
    free_bytes: AtomicU64,
    phase: AtomicU8,
    /// The last sequence assigned.
    pub appended: AtomicU64,
    /// The last sequence on disk.
    pub synced: AtomicU64,
    /// Number of syncs in this run.
    pub syncs: AtomicU64,
    /// Number of records synced in this run.
    pub records: AtomicU64,
}

/// What a journal holds from opening to closing.
#[derive(Debug)]
pub(super) struct JournalResources {
    pub dir: Dir,
    pub options: Options,
    pub lock: DirLock,
    pub id: JournalId,
    pub confirmed_file: ConfirmedFile,
}

/// What the writer and the helper thread receive when they start.
pub(super) struct ThreadContext {
    /// The first segment.
    pub file: File,
    /// Checksum seed of the first segment's groups.
    pub seed: u32,
    pub chores: mpsc::Receiver<Chore>,
}

impl<T> JournalState<T> {
    /// Creates the first segment of this run.
    pub fn begin(
        JournalResources { dir, options, lock, id, confirmed_file }: JournalResources,
        sealed: Vec<SealedSegment>,
        next: Seq,
        watermark: Seq,
    ) -> Result<(Self, ThreadContext), JournalError> {
        let header = Header::new(longest_group_bytes(options.group_bytes_max), next, id);
        let bytes = options.segment_bytes;
        let SegmentFile { file, path, stale_end } =
            segment::create_inline(&dir, bytes, &header).map_err(JournalError::io("create a segment in", &dir))?;
        let reserve_file = segment::create_reserve(&dir).map_err(JournalError::io("create a file in", &dir))?;
        let current = CurrentSegment::new(path, next, bytes, stale_end);
        let (chores, chores_receiver) = mpsc::channel();
        let state = Self {
            dir,
            options,
            id,
            dir_lock: Mutex::new(Some(lock)),
            queue: Mutex::new(WriteQueue::new(next)),
            wake: Condvar::new(),
            segments: Mutex::new(Segments { sealed: sealed.into(), current, watermark }),
            spares: Mutex::new(Vec::new()),
            reserve_file: Mutex::new(Some(reserve_file)),
            confirmed_file: Mutex::new(confirmed_file),
            chores,
            counts: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            free_bytes: AtomicU64::new(0),
            phase: AtomicU8::new(OPEN),
            appended: AtomicU64::new(next - 1),
            synced: AtomicU64::new(next - 1),
            syncs: AtomicU64::new(0),
            records: AtomicU64::new(0),
        };
        state.release(watermark);
        Ok((state, ThreadContext { file, seed: header.seed(), chores: chores_receiver }))
    }

    /// Counts a reservation, or returns why it is refused.
    pub fn reserve(&self) -> Result<(), Refused> {
        let counts = self.counts.fetch_add(ONE_RESERVATION, Ordering::AcqRel) + ONE_RESERVATION;
        let result = match self.phase.load(Ordering::Acquire) {
            OPEN => self.check_capacity(counts),
            DISK_FULL => Err(Refused::JournalFull),
            CLOSED => Err(Refused::Closed),
            _ => Err(Refused::Poisoned),
        };
        result.inspect_err(|_| self.return_reservation())
    }

    pub fn return_reservation(&self) {
        self.counts.fetch_sub(ONE_RESERVATION, Ordering::AcqRel);
    }

    /// Turns a reservation into a queued record. Called under the queue's lock, so that the writer never subtracts a
    /// record that was not yet added.
    pub fn use_reservation(&self, record_bytes: usize) {
        // IMPORTANT: add the bytes before the reservation is dropped. A concurrent check then counts the record twice
        // rather than not at all.
        self.queued_bytes.fetch_add(RECORD_PREFIX_BYTES + record_bytes, Ordering::AcqRel);
        self.counts.fetch_add(ONE_RECORD - ONE_RESERVATION, Ordering::AcqRel);
    }

    /// Subtracts written records from the queue's counters.
    pub fn subtract_written(&self, records: u32, body_bytes: usize) {
        self.counts.fetch_sub(u64::from(records) * ONE_RECORD, Ordering::AcqRel);
        self.queued_bytes.fetch_sub(body_bytes, Ordering::AcqRel);
    }

    /// Number of outstanding reservations.
    pub fn reservations(&self) -> u64 {
        split_counts(self.counts.load(Ordering::Acquire)).0
    }

    /// Number of queued records, and their bytes.
    pub fn queued(&self) -> (u64, usize) {
        (split_counts(self.counts.load(Ordering::Acquire)).1, self.queued_bytes.load(Ordering::Acquire))
    }

    fn check_capacity(&self, counts: u64) -> Result<(), Refused> {
        let (reservations, records) = split_counts(counts);
        let bytes = self.queued_bytes.load(Ordering::Acquire);
        if reservations + records > self.options.queue_records_max as u64 || bytes >= self.options.queue_bytes_max {
            return Err(Refused::QueueFull);
        }
        // Assume a group per record: accepted records must fit however they are grouped.
        let needed = bytes as u64 + records * FRAME_BYTES as u64 + reservations * self.reservation_bytes();
        if needed > self.free_bytes.load(Ordering::Acquire) {
            self.request_segment_if_stuck();
            return Err(Refused::JournalFull);
        }
        Ok(())
    }

    /// Bytes counted per reservation. Also the space assumed to be wasted at a segment's end, because the next record
    /// does not fit.
    fn reservation_bytes(&self) -> u64 {
        RESERVATION_BYTES.min(self.options.segment_bytes / 8)
    }

    /// Releases the segments whose records are all in the database.
    pub fn release(&self, watermark: Seq) {
        let removed = {
            let mut segments = self.segments.lock();
            segments.watermark = segments.watermark.max(watermark);
            self.remove_released(&mut segments)
        };
        self.schedule(Chore::Confirm);
        if removed {
            self.schedule(Chore::Prepare);
        }
        if self.free_bytes.load(Ordering::Acquire) < self.reservation_bytes() {
            self.request_segment_if_stuck();
        }
    }

    /// Persists the confirmed watermark. The next start compares it with the database's.
    pub fn write_confirmed(&self) {
        let watermark = self.segments.lock().watermark;
        if let Err(error) = self.confirmed_file.lock().record(watermark) {
            tracing::warn!(%error, "could not save the database's watermark");
        }
    }

    /// Persists the confirmed watermark, and syncs its file.
    pub fn sync_confirmed(&self) {
        self.write_confirmed();
        if let Err(error) = self.confirmed_file.lock().sync() {
            tracing::warn!(%error, "could not sync the file with the database's watermark");
        }
    }

    /// Moves released segments from the list to the helper thread, and updates the free bytes. Returns whether there
    /// were any.
    pub fn remove_released(&self, segments: &mut Segments) -> bool {
        let mut removed = false;
        while segments.sealed.front().is_some_and(|oldest| oldest.last <= segments.watermark) {
            if let Some(oldest) = segments.sealed.pop_front() {
                self.schedule(Chore::Release(oldest));
                removed = true;
            }
        }
        self.update_free_bytes(segments);
        removed
    }

    /// Call it after every change to the segments.
    pub fn update_free_bytes(&self, segments: &Segments) {
        let live = segments.live_bytes();
        let wasted = self.reservation_bytes();
        let in_current = match live <= self.options.max_bytes {
            true => (segments.current.bytes - segments.current.used).saturating_sub(wasted),
            false => 0,
        };
        let further_segments = self.options.max_bytes.saturating_sub(live) / self.options.segment_bytes;
        let free_bytes = in_current + further_segments * (self.options.segment_bytes - HEADER_BYTES as u64 - wasted);
        self.free_bytes.store(free_bytes, Ordering::Release);
    }

    /// When only the current segment fills the journal and the database has all its records, starting a new segment
    /// lets the current one be released. Otherwise a full journal would stay full.
    fn request_segment_if_stuck(&self) {
        let is_flushed = {
            let segments = self.segments.lock();
            let has_records = segments.current.used > HEADER_BYTES as u64;
            has_records && segments.watermark >= self.appended.load(Ordering::Acquire)
        };
        if is_flushed {
            let mut queue = self.queue.lock();
            queue.needs_segment = true;
            self.wake_writer(queue);
        }
    }

    /// Unlocks the queue, and notifies the writer if it sleeps; a wake-up costs a system call.
    pub fn wake_writer(&self, mut queue: MutexGuard<'_, WriteQueue<T>>) {
        let is_sleeping = std::mem::take(&mut queue.is_writer_sleeping);
        // Unlock first: a thread woken under the lock may be handed the lock, and every caller would then wait until
        // that thread gets a processor.
        drop(queue);
        if is_sleeping {
            self.wake.notify_all();
        }
    }

    pub fn schedule(&self, chore: Chore) {
        // The helper only exits when the journal closes; the next open removes leftovers.
        let _ = self.chores.send(chore);
    }

    /// Whether the journal plus this many spares stay within the limit.
    pub fn fits_with_spares(&self, spares: usize) -> bool {
        let spares = (spares as u64).saturating_mul(self.options.segment_bytes);
        self.segments.lock().live_bytes().saturating_add(spares) <= self.options.max_bytes
    }

    /// Sets or clears the disk-full phase. Returns whether that changed the phase.
    pub fn set_disk_full(&self, is_full: bool) -> bool {
        let (from, to) = if is_full { (OPEN, DISK_FULL) } else { (DISK_FULL, OPEN) };
        // The closed and poisoned phases take precedence.
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn set_closed(&self) {
        self.phase.fetch_max(CLOSED, Ordering::AcqRel);
        let mut queue = self.queue.lock();
        queue.is_closed = true;
        queue.is_writer_sleeping = false;
        // Also wakes a writer that waits for disk space, which does not count as sleeping.
        self.wake.notify_all();
    }

    /// Allows reopening the directory although handles remain. Nothing writes to it from then on.
    pub fn unlock_dir(&self) {
        self.dir_lock.lock().take();
    }

    pub fn set_poisoned(&self) {
        self.phase.store(POISONED, Ordering::Release);
    }
}

/// The number of reservations, and of records.
fn split_counts(counts: u64) -> (u64, u64) {
    (counts % ONE_RECORD, counts / ONE_RECORD)
}
