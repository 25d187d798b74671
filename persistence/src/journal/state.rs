//! What handles, writer and helper thread share: the queue, the segments, and the arithmetic that decides whether there is
//! room before a place is given.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use super::confirmed::Confirmed;
use super::record::{FRAME_BYTES, HEADER_BYTES, Header, Id, RECORD_PREFIX_BYTES, frame_bytes_max};
use super::segment::{self, Dir, DirLock, SegmentFile, SegmentPath};
use super::{JournalError, Options, Refused, Seq};

/// What a place that was given but not yet used counts against the journal's size: larger than nearly every record,
/// small enough that thousands of places may be out at once.
const PLACE_BYTES: u64 = 64 << 10;

/// A segment nothing is written to any more.
#[derive(Debug)]
pub(super) struct Sealed {
    pub path: SegmentPath,
    pub first: Seq,
    pub last: Seq,
    pub bytes: u64,
    /// Behind this are zeros: what [`Header::stale_end`] would be in the file's next use.
    pub stale_end: u64,
}

/// The segment the writer writes to. `used` is where the next group begins.
#[derive(Debug)]
pub(super) struct Current {
    pub path: SegmentPath,
    pub first: Seq,
    pub bytes: u64,
    pub used: u64,
    /// See [`Header::stale_end`].
    pub stale_end: u64,
}

impl Current {
    pub fn new(path: PathBuf, first: Seq, bytes: u64, stale_end: u64) -> Self {
        Self { path: path.into(), first, bytes, used: HEADER_BYTES as u64, stale_end }
    }

    pub fn seal(self, last: Seq) -> Sealed {
        let Self { path, first, bytes, used, stale_end } = self;
        Sealed { path, first, last, bytes, stale_end: stale_end.max(used) }
    }
}

#[derive(Debug)]
pub(super) struct Segments {
    pub sealed: VecDeque<Sealed>,
    pub current: Current,
    pub watermark: Seq,
}

impl Segments {
    pub fn live_bytes(&self) -> u64 {
        self.sealed.iter().map(|segment| segment.bytes).sum::<u64>() + self.current.bytes
    }
}

pub(super) struct Entry<T> {
    pub record: Vec<u8>,
    pub item: T,
}

pub(super) struct Queue<T> {
    pub entries: VecDeque<Entry<T>>,
    /// The sequence of the next record appended.
    pub next: Seq,
    pub is_sleeping: bool,
    pub is_closed: bool,
    /// Begin a new segment although nothing is queued, so that the current one can be deleted.
    pub wants_segment: bool,
}

/// What the helper thread is asked to do.
pub(super) enum Chore {
    /// See to a spare, and to what is left of other chores.
    Prepare,
    /// Note how far the database has come.
    Confirm,
    /// Use the file of a released segment again, or unlink it.
    Release(Sealed),
    Stop,
}

const OPEN: u8 = 0;
const DISK_FULL: u8 = 1;
const CLOSED: u8 = 2;
const POISONED: u8 = 3;

/// One more place that is out, in [`State::counts`].
const ONE_PLACE: u64 = 1;
/// One more record that is queued, in [`State::counts`].
const ONE_RECORD: u64 = 1 << 32;

pub(super) struct State<T> {
    pub dir: Dir,
    pub options: Options,
    pub id: Id,
    /// Until it is closed.
    dir_lock: Mutex<Option<DirLock>>,
    pub queue: Mutex<Queue<T>>,
    pub wake: Condvar,
    pub segments: Mutex<Segments>,
    /// The last is taken first: its pages are the likeliest to be in memory.
    pub spares: Mutex<Vec<SegmentFile>>,
    /// For when no file may be opened.
    pub reserve: Mutex<Option<SegmentFile>>,
    confirmed: Mutex<Confirmed>,
    chores: mpsc::Sender<Chore>,
    /// Places that are out (low half) and records queued or being written (high half), so that a place is taken with
    /// one atomic operation.
    counts: AtomicU64,
    queued_bytes: AtomicUsize,
    /// Bytes that can be written without passing `max_bytes`.
    room: AtomicU64,
    phase: AtomicU8,
    pub appended: AtomicU64,
    pub synced: AtomicU64,
    pub syncs: AtomicU64,
    pub records: AtomicU64,
}

/// What a journal keeps from its opening to its end.
#[derive(Debug)]
pub(super) struct Kept {
    pub dir: Dir,
    pub options: Options,
    pub lock: DirLock,
    pub id: Id,
    pub confirmed: Confirmed,
}

/// What the threads take over when they start.
pub(super) struct Begun {
    pub file: File,
    /// Of the first segment.
    pub seed: u32,
    pub chores: mpsc::Receiver<Chore>,
}

impl<T> State<T> {
    /// Makes the first segment of this run.
    pub fn begin(
        Kept { dir, options, lock, id, confirmed }: Kept,
        sealed: Vec<Sealed>,
        next: Seq,
        watermark: Seq,
    ) -> Result<(Self, Begun), JournalError> {
        let header = Header::new(frame_bytes_max(options.group_bytes_max), next, id);
        let bytes = options.segment_bytes;
        let SegmentFile { file, path, stale_end } =
            segment::create_inline(&dir, bytes, &header).map_err(JournalError::io("create a segment in", &dir))?;
        let reserve = segment::create_reserve(&dir).map_err(JournalError::io("create a file in", &dir))?;
        let current = Current::new(path, next, bytes, stale_end);
        let (chores, chores_taken) = mpsc::channel();
        let state = Self {
            dir,
            options,
            id,
            dir_lock: Mutex::new(Some(lock)),
            queue: Mutex::new(Queue {
                entries: VecDeque::new(),
                next,
                is_sleeping: false,
                is_closed: false,
                wants_segment: false,
            }),
            wake: Condvar::new(),
            segments: Mutex::new(Segments { sealed: sealed.into(), current, watermark }),
            spares: Mutex::new(Vec::new()),
            reserve: Mutex::new(Some(reserve)),
            confirmed: Mutex::new(confirmed),
            chores,
            counts: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
            room: AtomicU64::new(0),
            phase: AtomicU8::new(OPEN),
            appended: AtomicU64::new(next - 1),
            synced: AtomicU64::new(next - 1),
            syncs: AtomicU64::new(0),
            records: AtomicU64::new(0),
        };
        state.release(watermark);
        Ok((state, Begun { file, seed: header.seed(), chores: chores_taken }))
    }

    /// Counts a place, or says why there is none.
    pub fn take_place(&self) -> Result<(), Refused> {
        let counts = self.counts.fetch_add(ONE_PLACE, Ordering::AcqRel) + ONE_PLACE;
        let refused = match self.phase.load(Ordering::Acquire) {
            OPEN => self.find_room(counts),
            DISK_FULL => Err(Refused::JournalFull),
            CLOSED => Err(Refused::Closed),
            _ => Err(Refused::Poisoned),
        };
        refused.inspect_err(|_| self.give_back_place())
    }

    pub fn give_back_place(&self) {
        self.counts.fetch_sub(ONE_PLACE, Ordering::AcqRel);
    }

    /// Turns a place into a queued record. Called under the queue's lock, so that the writer never takes off what was
    /// not yet counted.
    pub fn use_place(&self, record_bytes: usize) {
        // IMPORTANT: bytes before the place is given up; whoever asks for room in between sees it counted twice, not never.
        self.queued_bytes.fetch_add(RECORD_PREFIX_BYTES + record_bytes, Ordering::AcqRel);
        self.counts.fetch_add(ONE_RECORD - ONE_PLACE, Ordering::AcqRel);
    }

    /// Takes written records off the queue's account.
    pub fn settle(&self, records: u32, body_bytes: usize) {
        self.counts.fetch_sub(u64::from(records) * ONE_RECORD, Ordering::AcqRel);
        self.queued_bytes.fetch_sub(body_bytes, Ordering::AcqRel);
    }

    /// Places that are out.
    pub fn places(&self) -> u64 {
        split(self.counts.load(Ordering::Acquire)).0
    }

    pub fn queued(&self) -> (u64, usize) {
        (split(self.counts.load(Ordering::Acquire)).1, self.queued_bytes.load(Ordering::Acquire))
    }

    fn find_room(&self, counts: u64) -> Result<(), Refused> {
        let (places, records) = split(counts);
        let bytes = self.queued_bytes.load(Ordering::Acquire);
        if places + records > self.options.queue_records_max as u64 || bytes >= self.options.queue_bytes_max {
            return Err(Refused::QueueFull);
        }
        // As if each record became a group of its own: what is accepted must fit however it is grouped.
        let needed = bytes as u64 + records * FRAME_BYTES as u64 + places * self.place_bytes();
        if needed > self.room.load(Ordering::Acquire) {
            self.want_segment_if_stuck();
            return Err(Refused::JournalFull);
        }
        Ok(())
    }

    /// Room a place stands for, and what may stay unused at a segment's end because the next record did not fit.
    fn place_bytes(&self) -> u64 {
        PLACE_BYTES.min(self.options.segment_bytes / 8)
    }

    /// Deletes segments the database has everything of.
    pub fn release(&self, watermark: Seq) {
        let removed = {
            let mut segments = lock(&self.segments);
            segments.watermark = segments.watermark.max(watermark);
            self.remove_released(&mut segments)
        };
        self.want_chore(Chore::Confirm);
        if removed {
            self.want_chore(Chore::Prepare);
        }
        if self.room.load(Ordering::Acquire) < self.place_bytes() {
            self.want_segment_if_stuck();
        }
    }

    /// Notes how far the database has come, for the next start to compare.
    pub fn note_confirmed(&self) {
        let watermark = lock(&self.segments).watermark;
        if let Err(error) = lock(&self.confirmed).note(watermark) {
            tracing::warn!(%error, "cannot note how far the database has come");
        }
    }

    /// Notes it for good.
    pub fn settle_confirmed(&self) {
        self.note_confirmed();
        if let Err(error) = lock(&self.confirmed).sync() {
            tracing::warn!(%error, "cannot keep the note how far the database has come");
        }
    }

    /// Removes released segments from the list and hands them to the helper thread; brings the room up to date.
    pub fn remove_released(&self, segments: &mut Segments) -> bool {
        let mut removed = false;
        while segments.sealed.front().is_some_and(|oldest| oldest.last <= segments.watermark) {
            if let Some(oldest) = segments.sealed.pop_front() {
                self.want_chore(Chore::Release(oldest));
                removed = true;
            }
        }
        self.update_room(segments);
        removed
    }

    /// Every change of the segments ends with this.
    pub fn update_room(&self, segments: &Segments) {
        let live = segments.live_bytes();
        let wasted = self.place_bytes();
        let current = match live <= self.options.max_bytes {
            true => (segments.current.bytes - segments.current.used).saturating_sub(wasted),
            false => 0,
        };
        let more = self.options.max_bytes.saturating_sub(live) / self.options.segment_bytes;
        let room = current + more * (self.options.segment_bytes - HEADER_BYTES as u64 - wasted);
        self.room.store(room, Ordering::Release);
    }

    /// When the journal is full only because of the current segment, and the database has all of it, a new segment
    /// lets the current one go. Without this a full journal would stay full.
    fn want_segment_if_stuck(&self) {
        let is_flushed = {
            let segments = lock(&self.segments);
            let has_records = segments.current.used > HEADER_BYTES as u64;
            has_records && segments.watermark >= self.appended.load(Ordering::Acquire)
        };
        if is_flushed {
            let mut queue = lock(&self.queue);
            queue.wants_segment = true;
            self.wake_writer(&mut queue);
        }
    }

    /// Wakes the writer only when it sleeps; a wake-up costs a system call.
    pub fn wake_writer(&self, queue: &mut Queue<T>) {
        if std::mem::take(&mut queue.is_sleeping) {
            self.wake.notify_all();
        }
    }

    pub fn want_chore(&self, chore: Chore) {
        // The helper is only gone when the journal closes; the next open removes what is left.
        let _ = self.chores.send(chore);
    }

    /// Whether the journal and so many spares are within the limit.
    pub fn has_room_beside(&self, spares: usize) -> bool {
        let spares = (spares as u64).saturating_mul(self.options.segment_bytes);
        lock(&self.segments).live_bytes().saturating_add(spares) <= self.options.max_bytes
    }

    /// Whether it is news.
    pub fn set_disk_full(&self, is_full: bool) -> bool {
        let (from, to) = if is_full { (OPEN, DISK_FULL) } else { (DISK_FULL, OPEN) };
        // Closed and poisoned are stronger and stay.
        self.phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn set_closed(&self) {
        self.phase.fetch_max(CLOSED, Ordering::AcqRel);
        let mut queue = lock(&self.queue);
        queue.is_closed = true;
        queue.is_sleeping = false;
        // Also while it waits for the disk, when it does not count as asleep.
        self.wake.notify_all();
    }

    /// Lets the directory be opened again although handles are left. Nothing writes to it any more.
    pub fn unlock_dir(&self) {
        lock(&self.dir_lock).take();
    }

    pub fn set_poisoned(&self) {
        self.phase.store(POISONED, Ordering::Release);
    }
}

/// A lock whose holder panicked is taken over: each of them is held only around changes that leave it whole.
pub(super) fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Places and records.
fn split(counts: u64) -> (u64, u64) {
    (counts % ONE_RECORD, counts / ONE_RECORD)
}
