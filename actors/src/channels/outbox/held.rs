//! One channel's outbox: the messages that tickets have put in, and how many of them are in memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hotline_persistence::journal::Seq;

use super::outgoing::Outgoing;

/// Messages read from the tables at once. Memory may exceed its limit by this many, some 32 MiB of the largest.
const READ_MAX: usize = 500;

/// The messages that wait for one channel's provider.
pub(crate) struct Outbox {
    state: Mutex<State>,
    count_max: usize,
    bytes_max: usize,
    signs: Signs,
}

/// The sender's published progress.
#[derive(Default)]
struct Signs {
    calls: AtomicUsize,
    unnoted: AtomicUsize,
    is_held: AtomicBool,
}

/// One outbox at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutboxState {
    /// Messages in memory.
    pub(super) count: usize,
    /// Of those, messages that the sender has not taken yet.
    pub(super) arrived: usize,
    /// Of those, messages in calls to the provider.
    pub(super) calls: usize,
    /// Of those, messages whose outcome is decided but not yet durable.
    pub(super) unnoted: usize,
    /// Whether the tables hold more.
    pub(super) is_behind: bool,
    /// Whether sending is held: the channel is not connected, or its token was refused.
    pub(super) is_held: bool,
}

/// A reading of the tables that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The maximum number of messages.
    pub(super) count: usize,
    /// The place up to which the tables must have all entries first.
    pub(super) seq: Seq,
}

#[derive(Default)]
struct State {
    /// Messages that the sender has not taken yet.
    arrived: VecDeque<Outgoing>,
    /// The sender has been notified and has not looked yet.
    is_told: bool,
    /// Messages in memory, here and with the sender, and their bytes.
    count: usize,
    bytes: usize,
    /// Whether the tables hold messages that are not in memory. New ones come after them, and so stay in the tables as
    /// well.
    is_behind: bool,
    /// The place in the log of the newest message left to the tables.
    left_to: Seq,
    is_reading: bool,
}

impl Outbox {
    pub(super) fn new(count_max: usize, bytes_max: usize, is_behind: bool) -> Self {
        let state = State { is_behind, ..State::default() };
        let signs = Signs::default();
        Self { state: Mutex::new(state), count_max: count_max.max(1), bytes_max, signs }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a message, or leaves it to the tables. True: the caller must notify the sender.
    pub(super) fn put(&self, outgoing: Outgoing) -> bool {
        let mut state = self.lock();
        let is_full = state.count >= self.count_max || state.bytes >= self.bytes_max;
        if state.is_behind || state.is_reading || is_full {
            state.is_behind = true;
            state.left_to = state.left_to.max(outgoing.seq);
        } else {
            state.count += 1;
            state.bytes += outgoing.bytes;
            state.arrived.push_back(outgoing);
        }
        !std::mem::replace(&mut state.is_told, true)
    }

    /// Takes the messages put in since the last call.
    pub(super) fn take(&self) -> VecDeque<Outgoing> {
        let mut state = self.lock();
        state.is_told = false;
        std::mem::take(&mut state.arrived)
    }

    /// The sender has finished a message.
    pub(super) fn finished(&self, outgoing: &Outgoing) {
        let mut state = self.lock();
        state.count = state.count.saturating_sub(1);
        state.bytes = state.bytes.saturating_sub(outgoing.bytes);
    }

    /// The reading to begin now, if one is due: once memory is half empty.
    pub(super) fn begin_reading(&self) -> Option<Reading> {
        let mut state = self.lock();
        let has_room = state.count <= self.count_max / 2 && state.bytes <= self.bytes_max / 2;
        if !state.is_behind || state.is_reading || !has_room || !state.arrived.is_empty() {
            return None;
        }
        state.is_reading = true;
        state.is_behind = false;
        Some(Reading { count: (self.count_max - state.count).min(READ_MAX), seq: state.left_to })
    }

    /// Ends a reading that requested `asked` messages, found `found`, and retained `kept`; none: the tables could not
    /// be read.
    pub(super) fn end_reading(&self, found: Option<usize>, kept: &[Outgoing], asked: usize) {
        let mut state = self.lock();
        state.is_reading = false;
        state.is_behind |= found.is_none_or(|found| found >= asked);
        state.count += kept.len();
        state.bytes += kept.iter().map(|outgoing| outgoing.bytes).sum::<usize>();
    }

    /// Clears memory; the tables have everything once they have the log's entries up to `seq`.
    pub(super) fn begin_anew(&self, seq: Seq) {
        *self.lock() = State { is_behind: true, left_to: seq, ..State::default() };
        self.show(0, 0, false);
    }

    /// Publishes the sender's progress.
    pub(super) fn show(&self, calls: usize, unnoted: usize, is_held: bool) {
        self.signs.calls.store(calls, Ordering::Relaxed);
        self.signs.unnoted.store(unnoted, Ordering::Relaxed);
        self.signs.is_held.store(is_held, Ordering::Relaxed);
    }

    pub(super) fn shown(&self) -> OutboxState {
        let state = self.lock();
        OutboxState {
            count: state.count,
            arrived: state.arrived.len(),
            calls: self.signs.calls.load(Ordering::Relaxed),
            unnoted: self.signs.unnoted.load(Ordering::Relaxed),
            is_behind: state.is_behind || state.is_reading,
            is_held: self.signs.is_held.load(Ordering::Relaxed),
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

    fn count(reading: Option<Reading>) -> Option<usize> {
        reading.map(|reading| reading.count)
    }

    fn ids(outgoing: impl IntoIterator<Item = Outgoing>) -> Vec<i64> {
        outgoing.into_iter().map(|outgoing| outgoing.id().0).collect()
    }

    #[test]
    fn what_does_not_fit_is_read_when_there_is_room_and_nothing_overtakes_it() {
        let outbox = Outbox::new(4, usize::MAX, false);
        (1..=6).for_each(|id| put(&outbox, outgoing(id, 1)));
        let taken = outbox.take();
        assert_eq!(ids(taken.clone()), [1, 2, 3, 4]);
        assert_eq!(count(outbox.begin_reading()), None, "memory is full");
        taken.iter().take(2).for_each(|done| outbox.finished(done));
        put(&outbox, outgoing(7, 1));
        assert!(outbox.take().is_empty(), "7 came after 5 and 6, which are in the tables");
        assert_eq!(count(outbox.begin_reading()), Some(2));
        assert_eq!(count(outbox.begin_reading()), None, "one at a time");
        put(&outbox, outgoing(8, 1));
        outbox.end_reading(Some(2), &[outgoing(5, 1), outgoing(6, 1)], 2);
        taken.iter().skip(2).for_each(|done| outbox.finished(done));
        assert_eq!(count(outbox.begin_reading()), Some(2), "7 and 8 are still there");
        outbox.end_reading(Some(1), &[outgoing(7, 1)], 2);
        // Fewer than requested, and none came meanwhile: memory has all messages.
        put(&outbox, outgoing(9, 1));
        assert_eq!(ids(outbox.take()), [9]);
    }

    #[test]
    fn a_failed_reading_is_repeated_and_bytes_count_as_well() {
        let outbox = Outbox::new(100, 2 * outgoing(1, 1).bytes, true);
        put(&outbox, outgoing(1, 1));
        assert!(outbox.take().is_empty(), "the tables come first");
        assert_eq!(count(outbox.begin_reading()), Some(100));
        outbox.end_reading(None, &[], 100);
        assert_eq!(count(outbox.begin_reading()), Some(100));
        let read = [outgoing(1, 1), outgoing(2, 1)];
        outbox.end_reading(Some(2), &read, 100);
        put(&outbox, outgoing(3, 1));
        assert!(outbox.take().is_empty(), "two fill the memory");
        assert_eq!(count(outbox.begin_reading()), None);
        outbox.finished(&read[0]);
        assert_eq!(count(outbox.begin_reading()), Some(99));
        outbox.begin_anew(7);
        assert_eq!(outbox.begin_reading(), Some(Reading { count: 100, seq: 7 }));
    }

    #[test]
    fn the_tables_are_read_once_they_have_what_was_left_to_them() {
        let outbox = Outbox::new(2, usize::MAX, false);
        let put = |id: i64, seq: Seq| put(&outbox, Outgoing { seq, ..outgoing(id, 1) });
        put(1, 11);
        assert_eq!(outbox.begin_reading(), None, "memory has it all");
        (2..=4).for_each(|id| put(id, 10 + id as Seq));
        let taken = outbox.take();
        assert_eq!(
            outbox.shown(),
            OutboxState { count: 2, arrived: 0, calls: 0, unnoted: 0, is_behind: true, is_held: false }
        );
        taken.iter().for_each(|done| outbox.finished(done));
        assert_eq!(outbox.begin_reading(), Some(Reading { count: 2, seq: 14 }));
    }

    #[test]
    fn the_sender_is_told_once_of_all_that_has_come_since_it_looked() {
        let outbox = Outbox::new(2, usize::MAX, false);
        assert!(outbox.put(outgoing(1, 1)));
        assert!(!outbox.put(outgoing(2, 1)) && !outbox.put(outgoing(3, 1)), "it knows");
        assert_eq!(outbox.shown().arrived, 2, "the third is left to the tables");
        assert_eq!(outbox.take().len(), 2);
        assert!(outbox.put(outgoing(4, 1)), "what is left to the tables is to be read as well");
    }
}
