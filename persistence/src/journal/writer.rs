//! The writer thread: it collects queued records into a group, writes the group in one call, syncs once, and only then
//! releases the waiting items.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::Seq;
use super::error::{is_short_of_files, is_shortage};
use super::record::{FRAME_BYTES, GroupBuffer, HEADER_BYTES, Header, RECORD_PREFIX_BYTES, frame_bytes_max};
use super::segment::{self, SegmentFile};
use super::state::{Chore, Current, Entry, State, lock};

/// Retry interval when the disk is full or another resource is exhausted: short enough not to delay anybody, long
/// enough to cost nothing.
const DISK_FULL_RETRY: Duration = Duration::from_millis(200);
/// How long closing waits for outstanding reservations. A reservation lasts only for a decision, so only a leak reaches
/// this limit.
const PLACES_WAIT: Duration = Duration::from_secs(5);
const PLACES_POLL: Duration = Duration::from_millis(5);

/// Why the writer stopped before everything was written.
#[derive(Debug)]
pub(super) enum Failure {
    /// The state of the disk is unknown: the process must exit.
    Poisoned(io::Error),
    /// Closed while the disk was full; the number of unwritten records.
    Unwritten(usize),
}

pub(super) struct Writer<T, F> {
    state: Arc<State<T>>,
    file: File,
    backlog: VecDeque<Entry<T>>,
    /// Sequence of the first record in the backlog.
    next: Seq,
    group: GroupBuffer,
    items: Vec<(Seq, T)>,
    /// Initial checksum value of this segment's groups.
    seed: u32,
    on_synced: F,
}

enum Work {
    Group,
    Segment,
    End,
}

impl<T, F: FnMut(&mut Vec<(Seq, T)>)> Writer<T, F> {
    pub fn new(state: Arc<State<T>>, file: File, seed: u32, on_synced: F) -> Self {
        let next = state.synced.load(Ordering::Acquire) + 1;
        let (backlog, group, items) = (VecDeque::new(), GroupBuffer::default(), Vec::new());
        Self { state, file, backlog, next, group, items, seed, on_synced }
    }

    /// Runs until the journal is closed and the queue is empty.
    pub fn run(&mut self) -> Result<(), Failure> {
        loop {
            match self.wait_for_work() {
                Work::Group => self.write_group()?,
                Work::Segment => self.begin_segment_if_used()?,
                Work::End => return Ok(()),
            }
        }
    }

    fn wait_for_work(&mut self) -> Work {
        let state = Arc::clone(&self.state);
        let mut closing: Option<Instant> = None;
        let mut queue = lock(&state.queue);
        loop {
            if self.backlog.is_empty() {
                std::mem::swap(&mut self.backlog, &mut queue.entries);
            } else {
                // Records queued during the last sync join those that did not fit the last group.
                self.backlog.append(&mut queue.entries);
            }
            if !self.backlog.is_empty() {
                return Work::Group;
            }
            if std::mem::take(&mut queue.wants_segment) && !queue.is_closed {
                return Work::Segment;
            }
            if !queue.is_closed {
                queue.is_sleeping = true;
                queue = state.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let since = *closing.get_or_insert_with(Instant::now);
            if state.places() == 0 || since.elapsed() > PLACES_WAIT {
                return Work::End;
            }
            let waited = state.wake.wait_timeout(queue, PLACES_POLL);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_group(&mut self) -> Result<(), Failure> {
        let first_bytes = self.backlog.front().map_or(0, |entry| RECORD_PREFIX_BYTES + entry.record.len());
        let mut rest = self.rest_of_segment();
        if ((FRAME_BYTES + first_bytes) as u64) > rest {
            let bytes = (HEADER_BYTES + FRAME_BYTES + first_bytes) as u64;
            self.begin_segment(bytes.max(self.state.options.segment_bytes))?;
            rest = self.rest_of_segment();
        }
        self.gather(usize::try_from(rest).unwrap_or(usize::MAX));
        match self.write_and_sync() {
            Ok(()) => {
                self.account();
                self.release();
                Ok(())
            }
            Err(error) => Err(Failure::Poisoned(error)),
        }
    }

    fn rest_of_segment(&self) -> u64 {
        let segments = lock(&self.state.segments);
        segments.current.bytes - segments.current.used
    }

    /// Encodes as many records as fit the group limit and the segment, at least one.
    fn gather(&mut self, rest: usize) {
        let bytes_max = rest.min(FRAME_BYTES.saturating_add(self.state.options.group_bytes_max));
        self.group.clear();
        while let Some(entry) = self.backlog.front() {
            let bytes = self.group.len() + RECORD_PREFIX_BYTES + entry.record.len();
            if self.group.records() > 0 && bytes > bytes_max {
                break;
            }
            let Some(entry) = self.backlog.pop_front() else { break };
            self.group.push(&entry.record);
            self.items.push((self.next, entry.item));
            self.next += 1;
        }
    }

    fn write_and_sync(&mut self) -> io::Result<()> {
        let first = self.next - u64::from(self.group.records());
        let offset = lock(&self.state.segments).current.used;
        crate::fail_point!("journal_before_write", |_| std::process::abort());
        self.file.write_all_at(self.group.seal(first, self.seed), offset)?;
        crate::fail_point!("journal_before_sync", |_| std::process::abort());
        crate::fail_point!("journal_sync", |_| Err(io::Error::other("injected sync error")));
        self.file.sync_data()?;
        crate::fail_point!("journal_after_sync", |_| std::process::abort());
        Ok(())
    }

    /// Moves the group's bytes from the queue's counters to the segment's.
    fn account(&self) {
        let state = &self.state;
        {
            let mut segments = lock(&state.segments);
            segments.current.used += self.group.len() as u64;
            // IMPORTANT: reduce the room before the queue's counters; otherwise a reservation in between would count
            // the same room twice.
            state.update_room(&segments);
        }
        state.settle(self.group.records(), self.group.len() - FRAME_BYTES);
        state.syncs.fetch_add(1, Ordering::Relaxed);
        state.records.fetch_add(u64::from(self.group.records()), Ordering::Relaxed);
    }

    fn release(&mut self) {
        self.state.synced.store(self.next - 1, Ordering::Release);
        (self.on_synced)(&mut self.items);
        self.items.clear();
    }

    /// Starts a new segment, unless the current one is still empty.
    fn begin_segment_if_used(&mut self) -> Result<(), Failure> {
        let is_used = lock(&self.state.segments).current.used > HEADER_BYTES as u64;
        if is_used { self.begin_segment(self.state.options.segment_bytes) } else { Ok(()) }
    }

    /// Continues in a new segment. If the disk is full or the system is out of open files or memory, it waits: nothing
    /// has been written yet, so the state is not in doubt.
    fn begin_segment(&mut self, bytes: u64) -> Result<(), Failure> {
        let state = Arc::clone(&self.state);
        let header = Header::new(frame_bytes_max(state.options.group_bytes_max), self.next, state.id);
        let SegmentFile { file, path, stale_end } = loop {
            match next_segment(&state, bytes, &header) {
                Ok(made) => break made,
                Err(error) if is_shortage(&error) => self.wait_for_disk(&error)?,
                Err(error) => return Err(Failure::Poisoned(error)),
            }
        };
        if state.set_disk_full(false) {
            tracing::info!("the next journal segment is made; changes are taken again");
        }
        self.file = file;
        self.seed = header.seed();
        let current = Current::new(path, self.next, bytes, stale_end);
        let mut segments = lock(&state.segments);
        let old = std::mem::replace(&mut segments.current, current);
        // An empty segment's name was reused for the new one.
        if old.first < self.next {
            segments.sealed.push_back(old.seal(self.next - 1));
        }
        state.remove_released(&mut segments);
        state.want_chore(Chore::Prepare);
        Ok(())
    }

    fn wait_for_disk(&self, error: &io::Error) -> Result<(), Failure> {
        if self.state.set_disk_full(true) {
            tracing::error!(%error, "the next journal segment cannot be made now; changes are refused until it can");
        }
        let queue = lock(&self.state.queue);
        if queue.is_closed {
            return Err(Failure::Unwritten(self.backlog.len() + queue.entries.len()));
        }
        drop(self.state.wake.wait_timeout_while(queue, DISK_FULL_RETRY, |queue| !queue.is_closed));
        Ok(())
    }

    /// Moves unreleased items into the queue, which lives as long as the journal: dropping an item could look like an
    /// answer to its waiter.
    pub fn strand(&mut self) {
        let mut queue = lock(&self.state.queue);
        let items = self.items.drain(..).map(|(_, item)| Entry { record: Vec::new(), item });
        let mut stranded: VecDeque<_> = items.collect();
        stranded.append(&mut self.backlog);
        stranded.append(&mut queue.entries);
        queue.entries = stranded;
    }
}

/// Takes a spare if the size fits; otherwise creates a file, from the reserve if no file can be opened.
fn next_segment<T>(state: &State<T>, bytes: u64, header: &Header) -> io::Result<SegmentFile> {
    if bytes == state.options.segment_bytes {
        let spare = lock(&state.spares).pop();
        if let Some(spare) = spare {
            return segment::adopt(&state.dir, spare, header);
        }
    }
    match segment::create_inline(&state.dir, bytes, header) {
        Err(error) if is_short_of_files(&error) => {
            // IMPORTANT: hold the lock until the reserve is renamed, so that the next reserve is not created from the
            // same file.
            let mut held = lock(&state.reserve);
            let Some(reserve) = held.take() else { return Err(error) };
            segment::use_reserve(&state.dir, reserve, bytes, header).map_err(|(reserve, error)| {
                *held = reserve;
                error
            })
        }
        made => made,
    }
}
