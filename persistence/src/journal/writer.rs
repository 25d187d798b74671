//! The writer thread: it collects queued records into a group, writes the group in one call, syncs once, and only then
//! acknowledges the records.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Seq;
use super::error::{is_short_of_files, is_shortage};
use super::record::{FRAME_BYTES, HEADER_BYTES, Header, longest_group_bytes};
use super::record_queue::{Group, RecordQueue};
use super::segment::{self, SegmentFile};
use super::state::{Chore, CurrentSegment, JournalState};

/// Retry interval when the disk is full or another resource is exhausted: short enough not to delay requests, long
/// enough to cost nothing.
const DISK_FULL_RETRY: Duration = Duration::from_millis(200);
/// How long closing waits for outstanding reservations. A reservation lasts only for a decision, so only a leak reaches
/// this limit.
const RESERVATIONS_WAIT: Duration = Duration::from_secs(5);
const RESERVATIONS_POLL: Duration = Duration::from_millis(5);

/// Why the writer stopped before everything was written.
#[derive(Debug)]
pub(super) enum Failure {
    /// The state of the disk is unknown: the process must exit.
    Poisoned(io::Error),
    /// Closed while the disk was full; the number of unwritten records.
    Unwritten(usize),
}

pub(super) struct JournalWriter<T, F> {
    state: Arc<JournalState<T>>,
    file: File,
    backlog: RecordQueue<T>,
    /// Sequence of the first record in the backlog.
    next: Seq,
    /// Items of the group that is being written.
    items: Vec<(Seq, T)>,
    /// Initial checksum value of this segment's groups.
    seed: u32,
    on_synced: F,
}

enum Work {
    /// Write a group of the backlog.
    WriteGroup,
    /// Begin a new segment, so that the current one can be released.
    BeginSegment,
    /// The journal is closed, and everything is written.
    Stop,
}

impl<T, F: FnMut(&mut Vec<(Seq, T)>)> JournalWriter<T, F> {
    pub fn new(state: Arc<JournalState<T>>, file: File, seed: u32, on_synced: F) -> Self {
        let next = state.synced.load(Ordering::Acquire) + 1;
        Self { state, file, backlog: RecordQueue::new(), next, items: Vec::new(), seed, on_synced }
    }

    /// Runs until the journal is closed and the queue is empty.
    pub fn run(&mut self) -> Result<(), Failure> {
        loop {
            match self.wait_for_work() {
                Work::WriteGroup => self.write_group()?,
                Work::BeginSegment => self.begin_segment_if_used()?,
                Work::Stop => return Ok(()),
            }
        }
    }

    fn wait_for_work(&mut self) -> Work {
        let state = Arc::clone(&self.state);
        let mut closing_since: Option<Instant> = None;
        let mut queue = state.queue.lock();
        loop {
            // Records queued during the last sync join those that did not fit the last group.
            self.backlog.join(&mut queue.records);
            if !self.backlog.is_empty() {
                return Work::WriteGroup;
            }
            if std::mem::take(&mut queue.needs_segment) && !queue.is_closed {
                return Work::BeginSegment;
            }
            if !queue.is_closed {
                queue.is_writer_sleeping = true;
                state.wake.wait(&mut queue);
                continue;
            }
            let closing_since = *closing_since.get_or_insert_with(Instant::now);
            if state.reservations() == 0 || closing_since.elapsed() > RESERVATIONS_WAIT {
                return Work::Stop;
            }
            state.wake.wait_for(&mut queue, RESERVATIONS_POLL);
        }
    }

    fn write_group(&mut self) -> Result<(), Failure> {
        let first_record_bytes = self.backlog.first_record_bytes();
        let mut bytes_left = self.bytes_left();
        if ((FRAME_BYTES + first_record_bytes) as u64) > bytes_left {
            let bytes = (HEADER_BYTES + FRAME_BYTES + first_record_bytes) as u64;
            self.begin_segment(bytes.max(self.state.options.segment_bytes))?;
            bytes_left = self.bytes_left();
        }
        // As many records as fit the group limit and the segment, at least one.
        let bytes_left = usize::try_from(bytes_left).unwrap_or(usize::MAX);
        let bytes_max = bytes_left.min(FRAME_BYTES.saturating_add(self.state.options.group_bytes_max));
        let group = self.backlog.take_group(self.next, bytes_max, &mut self.items);
        self.next += u64::from(group.records);
        match self.write_and_sync(&group) {
            Ok(()) => {
                self.count_written(&group);
                self.acknowledge_group();
                Ok(())
            }
            Err(error) => Err(Failure::Poisoned(error)),
        }
    }

    fn bytes_left(&self) -> u64 {
        let segments = self.state.segments.lock();
        segments.current.bytes - segments.current.used
    }

    fn write_and_sync(&mut self, group: &Group) -> io::Result<()> {
        let offset = self.state.segments.lock().current.used;
        crate::fail_point!("journal_before_write", |_| std::process::abort());
        self.file.write_all_at(self.backlog.seal(group, self.seed), offset)?;
        crate::fail_point!("journal_before_sync", |_| std::process::abort());
        crate::fail_point!("journal_sync", |_| Err(io::Error::other("injected sync error")));
        self.file.sync_data()?;
        crate::fail_point!("journal_after_sync", |_| std::process::abort());
        Ok(())
    }

    /// Moves the group's bytes from the queue's counters to the segment's.
    fn count_written(&self, group: &Group) {
        let state = &self.state;
        {
            let mut segments = state.segments.lock();
            segments.current.used += group.len() as u64;
            // IMPORTANT: reduce the free bytes before the queue's counters; otherwise a reservation in between would
            // not count these bytes at all.
            state.update_free_bytes(&segments);
        }
        state.subtract_written(group.records, group.len() - FRAME_BYTES);
        state.syncs.fetch_add(1, Ordering::Relaxed);
        state.records.fetch_add(u64::from(group.records), Ordering::Relaxed);
    }

    fn acknowledge_group(&mut self) {
        self.state.synced.store(self.next - 1, Ordering::Release);
        (self.on_synced)(&mut self.items);
        self.items.clear();
    }

    /// Starts a new segment, unless the current one is still empty.
    fn begin_segment_if_used(&mut self) -> Result<(), Failure> {
        let is_used = self.state.segments.lock().current.used > HEADER_BYTES as u64;
        if is_used { self.begin_segment(self.state.options.segment_bytes) } else { Ok(()) }
    }

    /// Continues in a new segment. If the disk is full or the system is out of open files or memory, it waits: nothing
    /// has been written yet, so the state is not in doubt.
    fn begin_segment(&mut self, bytes: u64) -> Result<(), Failure> {
        let state = Arc::clone(&self.state);
        let header = Header::new(longest_group_bytes(state.options.group_bytes_max), self.next, state.id);
        let SegmentFile { file, path, stale_end } = loop {
            match next_segment(&state, bytes, &header) {
                Ok(segment) => break segment,
                Err(error) if is_shortage(&error) => self.wait_for_disk(&error)?,
                Err(error) => return Err(Failure::Poisoned(error)),
            }
        };
        if state.set_disk_full(false) {
            tracing::info!("journal segment created; accepting changes again");
        }
        self.file = file;
        self.seed = header.seed();
        let current = CurrentSegment::new(path, self.next, bytes, stale_end);
        let mut segments = state.segments.lock();
        let old = std::mem::replace(&mut segments.current, current);
        // An empty segment's name was reused for the new one.
        if old.first < self.next {
            segments.sealed.push_back(old.seal(self.next - 1));
        }
        state.remove_released(&mut segments);
        state.schedule(Chore::Prepare);
        Ok(())
    }

    fn wait_for_disk(&self, error: &io::Error) -> Result<(), Failure> {
        if self.state.set_disk_full(true) {
            tracing::error!(%error, "could not create the next journal segment; changes are refused until this succeeds: check free disk space");
        }
        let mut queue = self.state.queue.lock();
        if queue.is_closed {
            return Err(Failure::Unwritten(self.backlog.len() + queue.records.len()));
        }
        self.state.wake.wait_while_for(&mut queue, |queue| !queue.is_closed, DISK_FULL_RETRY);
        Ok(())
    }

    /// Moves the items of unacknowledged records to the journal's state, which keeps them.
    pub fn abandon_items(&mut self) {
        let backlog = std::mem::replace(&mut self.backlog, RecordQueue::new());
        let items = self.items.drain(..).map(|(_, item)| item);
        self.state.queue.lock().abandoned_items.extend(items.chain(backlog.into_items()));
    }
}

/// Takes a spare if the size fits; otherwise creates a file, from the reserve if no file can be opened.
fn next_segment<T>(state: &JournalState<T>, bytes: u64, header: &Header) -> io::Result<SegmentFile> {
    if bytes == state.options.segment_bytes {
        let spare = state.spares.lock().pop();
        if let Some(spare) = spare {
            return segment::adopt(&state.dir, spare, header);
        }
    }
    match segment::create_inline(&state.dir, bytes, header) {
        Err(error) if is_short_of_files(&error) => {
            // IMPORTANT: hold the lock until the reserve is renamed, so that the next reserve is not created from the
            // same file.
            let mut slot = state.reserve_file.lock();
            let Some(reserve) = slot.take() else { return Err(error) };
            segment::use_reserve(&state.dir, reserve, bytes, header).map_err(|(reserve, error)| {
                *slot = reserve;
                error
            })
        }
        result => result,
    }
}
