//! One channel's outbox: the messages that wait for its provider, bounded in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hotline_persistence::journal::Seq;
use parking_lot::Mutex;

use super::outgoing::Outgoing;

/// Maximum messages read from the tables at once. After a read, memory may exceed `bytes_max` by this many: 32 MiB of
/// the largest.
const READ_MAX: usize = 500;

/// The messages that wait for one channel's provider.
pub(crate) struct Outbox {
    memory: Mutex<OutboxMemory>,
    count_max: usize,
    bytes_max: usize,
    progress: Progress,
}

/// The sender's published progress.
#[derive(Default)]
struct Progress {
    calls: AtomicUsize,
    unrecorded: AtomicUsize,
    is_blocked: AtomicBool,
}

/// One outbox at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutboxSnapshot {
    /// Messages in memory.
    pub(super) count: usize,
    /// Messages in memory that the sender has not taken yet.
    pub(super) arrivals: usize,
    /// Messages in memory that are in a call to the provider.
    pub(super) calls: usize,
    /// Messages in memory whose outcome is decided but not yet durable.
    pub(super) unrecorded: usize,
    /// Whether the tables have more messages.
    pub(super) has_backlog: bool,
    /// Whether sending is blocked: the channel is not connected, or its token was refused.
    pub(super) is_blocked: bool,
}

/// A read of the tables that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadRequest {
    /// The maximum number of messages.
    pub(super) limit: usize,
    /// The tables must have all entries of the log up to this position before they are read.
    pub(super) seq: Seq,
}

#[derive(Default)]
struct OutboxMemory {
    /// Messages that the sender has not taken yet.
    arrivals: VecDeque<Outgoing>,
    /// The sender was notified and has not taken the messages yet.
    is_notified: bool,
    /// Messages in memory, waiting here or taken by the sender, and their bytes.
    count: usize,
    bytes: usize,
    /// Whether the tables have messages that are not in memory. New messages follow those, so they stay in the tables
    /// too.
    has_backlog: bool,
    /// The position in the log of the newest message left to the tables.
    backlog_seq: Seq,
    is_reading: bool,
}

impl Outbox {
    pub(super) fn new(count_max: usize, bytes_max: usize, has_backlog: bool) -> Self {
        let memory = OutboxMemory { has_backlog, ..OutboxMemory::default() };
        let progress = Progress::default();
        Self { memory: Mutex::new(memory), count_max: count_max.max(1), bytes_max, progress }
    }

    /// Stores a message, or leaves it to the tables if memory is full or they have earlier ones. Returns whether the
    /// caller must notify the sender.
    pub(super) fn put(&self, outgoing: Outgoing) -> bool {
        let mut memory = self.memory.lock();
        let is_full = memory.count >= self.count_max || memory.bytes >= self.bytes_max;
        if memory.has_backlog || memory.is_reading || is_full {
            memory.has_backlog = true;
            memory.backlog_seq = memory.backlog_seq.max(outgoing.seq);
        } else {
            memory.count += 1;
            memory.bytes += outgoing.bytes;
            memory.arrivals.push_back(outgoing);
        }
        !std::mem::replace(&mut memory.is_notified, true)
    }

    /// Takes the messages put in since the last call.
    pub(super) fn take(&self) -> VecDeque<Outgoing> {
        let mut memory = self.memory.lock();
        memory.is_notified = false;
        std::mem::take(&mut memory.arrivals)
    }

    /// Stops counting a message that the sender has finished.
    pub(super) fn finish(&self, outgoing: &Outgoing) {
        let mut memory = self.memory.lock();
        memory.count = memory.count.saturating_sub(1);
        memory.bytes = memory.bytes.saturating_sub(outgoing.bytes);
    }

    /// Whether a read of the tables is under way.
    pub(super) fn is_reading(&self) -> bool {
        self.memory.lock().is_reading
    }

    /// The read to begin now, if one is due: once memory is half empty.
    pub(super) fn begin_read(&self) -> Option<ReadRequest> {
        let mut memory = self.memory.lock();
        let has_room = memory.count <= self.count_max / 2 && memory.bytes <= self.bytes_max / 2;
        if !memory.has_backlog || memory.is_reading || !has_room || !memory.arrivals.is_empty() {
            return None;
        }
        memory.is_reading = true;
        memory.has_backlog = false;
        Some(ReadRequest { limit: (self.count_max - memory.count).min(READ_MAX), seq: memory.backlog_seq })
    }

    /// Ends a read of up to `limit` entries. It found `count` (`None`: the tables could not be read); `sendable` are
    /// those of them that are now in memory.
    pub(super) fn end_read(&self, count: Option<usize>, sendable: &[Outgoing], limit: usize) {
        let mut memory = self.memory.lock();
        memory.is_reading = false;
        memory.has_backlog |= count.is_none_or(|count| count >= limit);
        memory.count += sendable.len();
        memory.bytes += sendable.iter().map(|outgoing| outgoing.bytes).sum::<usize>();
    }

    /// Clears memory; the tables have everything once they have the log's entries up to `seq`.
    pub(super) fn restart(&self, seq: Seq) {
        *self.memory.lock() = OutboxMemory { has_backlog: true, backlog_seq: seq, ..OutboxMemory::default() };
        self.publish_progress(0, 0, false);
    }

    /// Publishes the sender's progress.
    pub(super) fn publish_progress(&self, calls: usize, unrecorded: usize, is_blocked: bool) {
        self.progress.calls.store(calls, Ordering::Relaxed);
        self.progress.unrecorded.store(unrecorded, Ordering::Relaxed);
        self.progress.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> OutboxSnapshot {
        let memory = self.memory.lock();
        OutboxSnapshot {
            count: memory.count,
            arrivals: memory.arrivals.len(),
            calls: self.progress.calls.load(Ordering::Relaxed),
            unrecorded: self.progress.unrecorded.load(Ordering::Relaxed),
            has_backlog: memory.has_backlog || memory.is_reading,
            is_blocked: self.progress.is_blocked.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outgoing::tests::outgoing;
    use super::*;

    fn put(outbox: &Outbox, outgoing: Outgoing) {
        let _ = outbox.put(outgoing);
    }

    fn limit(request: Option<ReadRequest>) -> Option<usize> {
        request.map(|request| request.limit)
    }

    fn ids(outgoing: impl IntoIterator<Item = Outgoing>) -> Vec<i64> {
        outgoing.into_iter().map(|outgoing| outgoing.id().0).collect()
    }

    #[test]
    fn messages_beyond_the_limit_are_read_in_order_when_there_is_room() {
        let outbox = Outbox::new(4, usize::MAX, false);
        (1..=6).for_each(|id| put(&outbox, outgoing(id, 1)));
        let messages = outbox.take();
        assert_eq!(ids(messages.clone()), [1, 2, 3, 4]);
        assert_eq!(limit(outbox.begin_read()), None, "memory is full");
        messages.iter().take(2).for_each(|message| outbox.finish(message));
        put(&outbox, outgoing(7, 1));
        assert!(outbox.take().is_empty(), "7 came after 5 and 6, which are in the tables");
        assert_eq!(limit(outbox.begin_read()), Some(2));
        assert_eq!(limit(outbox.begin_read()), None, "only one read at a time");
        put(&outbox, outgoing(8, 1));
        outbox.end_read(Some(2), &[outgoing(5, 1), outgoing(6, 1)], 2);
        messages.iter().skip(2).for_each(|message| outbox.finish(message));
        assert_eq!(limit(outbox.begin_read()), Some(2), "the tables still have 7 and 8");
        outbox.end_read(Some(1), &[outgoing(7, 1)], 2);
        // Fewer than requested, as if 8 had been deleted, and none was put in meanwhile: the tables have no more.
        put(&outbox, outgoing(9, 1));
        assert_eq!(ids(outbox.take()), [9]);
    }

    #[test]
    fn a_failed_read_is_repeated_and_bytes_are_limited_too() {
        let outbox = Outbox::new(100, 2 * outgoing(1, 1).bytes, true);
        put(&outbox, outgoing(1, 1));
        assert!(outbox.take().is_empty(), "messages in the tables are sent first");
        assert_eq!(limit(outbox.begin_read()), Some(100));
        outbox.end_read(None, &[], 100);
        assert_eq!(limit(outbox.begin_read()), Some(100));
        let read = [outgoing(1, 1), outgoing(2, 1)];
        outbox.end_read(Some(2), &read, 100);
        put(&outbox, outgoing(3, 1));
        assert!(outbox.take().is_empty(), "two fill the memory");
        assert_eq!(limit(outbox.begin_read()), None);
        outbox.finish(&read[0]);
        assert_eq!(limit(outbox.begin_read()), Some(99));
        outbox.restart(7);
        assert_eq!(outbox.begin_read(), Some(ReadRequest { limit: 100, seq: 7 }));
    }

    #[test]
    fn a_read_requires_that_the_tables_have_the_backlog() {
        let outbox = Outbox::new(2, usize::MAX, false);
        let put = |id: i64, seq: Seq| put(&outbox, Outgoing { seq, ..outgoing(id, 1) });
        put(1, 11);
        assert_eq!(outbox.begin_read(), None, "memory has all messages");
        (2..=4).for_each(|id| put(id, 10 + id as Seq));
        let messages = outbox.take();
        assert_eq!(
            outbox.snapshot(),
            OutboxSnapshot { count: 2, arrivals: 0, calls: 0, unrecorded: 0, has_backlog: true, is_blocked: false }
        );
        messages.iter().for_each(|message| outbox.finish(message));
        assert_eq!(outbox.begin_read(), Some(ReadRequest { limit: 2, seq: 14 }));
    }

    #[test]
    fn the_sender_is_notified_once_until_it_takes_the_messages() {
        let outbox = Outbox::new(2, usize::MAX, false);
        assert!(outbox.put(outgoing(1, 1)));
        assert!(!outbox.put(outgoing(2, 1)) && !outbox.put(outgoing(3, 1)), "it is notified already");
        assert_eq!(outbox.snapshot().arrivals, 2, "the third is left to the tables");
        assert_eq!(outbox.take().len(), 2);
        assert!(outbox.put(outgoing(4, 1)), "the sender must also read the message left to the tables");
    }
}
