//! What a company has scheduled, as far as it is held in memory: which message may leave next. Knows no clock and does no
//! I/O: whoever asks says what time it is.
//!
//! - All that is pending up to a point ([`Agenda::until`]) is held, and what was made since and is due soon. What lies
//!   beyond is in the tables, and is loaded as time goes on. What does not fit is given up from the far end.
//! - Of one conversation one leaves at a time, the oldest first; the others stand behind it.
//! - While a read of the tables is under way nothing that was decided is dropped, and what is held counts more than
//!   what was read: a read may be older than a decision.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::schedules::{Due, ScheduleRow, ScheduleStatus};
use hotline_persistence::{ChannelId, ContactId, ScheduleId};

/// How far ahead messages are always in memory: the length of a database outage to survive.
pub(super) const AHEAD_MIN: TimeDelta = TimeDelta::hours(1);

/// How far ahead messages are loaded: so a load is due every half hour.
pub(super) const AHEAD_MAX: TimeDelta = TimeDelta::minutes(90);

/// Maximum scheduled messages of a company in memory: more than any provider accepts within minutes. With short texts
/// 10 MiB.
const HELD_MAX: usize = 20_000;

/// Maximum bytes of their texts: 512 of the longest.
const HELD_BYTES_MAX: usize = 32 << 20;

/// Approximate bytes of a row besides its text.
const ROW_BYTES: usize = 400;

/// When an unsent message counts as late: the limit of the API contract.
const LATE_AFTER: TimeDelta = TimeDelta::seconds(5);

/// A contact on a channel.
type Lane = (ChannelId, ContactId);

/// The scheduled messages in memory.
pub(super) struct Agenda {
    held: HashMap<ScheduleId, Held>,
    /// Messages that may be sent once they are due.
    ready: BTreeSet<Due>,
    /// Messages that could not be sent because of an outage, by the time of their retry.
    resting: BTreeSet<(Instant, ScheduleId)>,
    /// Conversations in which a message is being sent or waits for its retry, or others wait behind it.
    lanes: HashMap<Lane, Behind>,
    until: Due,
    /// Whether messages may be pending beyond `until`.
    has_beyond: bool,
    bytes: usize,
    /// The number of reads under way.
    reads: usize,
    /// Messages decided during these reads.
    decided: Vec<ScheduleId>,
}

struct Held {
    row: Arc<ScheduleRow>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// An earlier message of the conversation goes first.
    Behind,
    Leaving,
    Resting(Instant),
    /// Sent, canceled or failed; retained until no read under way can return the earlier state.
    Over,
}

#[derive(Default)]
struct Behind {
    /// Whether a message is being sent or waits for its retry.
    is_taken: bool,
    others: BTreeSet<Due>,
}

/// Counts of waiting messages, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Pending messages in memory.
    pub(super) held: usize,
    /// Messages that are due.
    pub(super) due: usize,
    /// Messages that are late.
    pub(super) late: usize,
}

/// The state of a scheduled message.
pub(super) enum Look {
    /// In memory, and not being sent.
    Settled(Arc<ScheduleRow>),
    /// Being sent.
    Leaving,
    /// Not in memory; look in the tables.
    Unknown,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            ready: BTreeSet::new(),
            resting: BTreeSet::new(),
            lanes: HashMap::new(),
            // The earliest time a caller can give, which PostgreSQL can represent.
            until: (DateTime::UNIX_EPOCH, ScheduleId::new(0)),
            has_beyond: true,
            bytes: 0,
            reads: 0,
            decided: Vec::new(),
        }
    }
}

impl Agenda {
    pub(super) fn look(&self, id: ScheduleId) -> Look {
        match self.held.get(&id) {
            Some(Held { state: State::Leaving, .. }) => Look::Leaving,
            Some(held) => Look::Settled(held.row.clone()),
            None => Look::Unknown,
        }
    }

    /// The point up to which all pending messages are in memory.
    pub(super) fn until(&self) -> Due {
        self.until
    }

    /// Whether nothing is pending, here or in the tables.
    pub(super) fn is_done(&self) -> bool {
        self.held.is_empty() && !self.has_beyond && self.reads == 0
    }

    /// Whether more should be loaded now.
    pub(super) fn wants_more(&self, now: DateTime<Utc>) -> bool {
        let has_room = self.held.len() < HELD_MAX / 2 && self.bytes < HELD_BYTES_MAX / 2;
        self.has_beyond && has_room && self.until.0 < now + AHEAD_MIN
    }

    /// A read of the tables begins.
    pub(super) fn begin_read(&mut self) {
        self.reads += 1;
    }

    /// A read of the tables has ended, and its result was added.
    pub(super) fn end_read(&mut self, now: DateTime<Utc>) {
        self.reads = self.reads.saturating_sub(1);
        if self.reads > 0 {
            return;
        }
        for id in std::mem::take(&mut self.decided) {
            let Some(held) = self.held.get(&id) else { continue };
            let is_beyond = self.is_beyond(&held.row, now) && matches!(held.state, State::Ready);
            if held.state == State::Over || is_beyond {
                self.has_beyond |= is_beyond;
                self.take_out(id);
            }
        }
    }

    /// Adds the result of reading one row, unless memory has a newer state.
    pub(super) fn found(&mut self, row: ScheduleRow) {
        if !self.held.contains_key(&row.id) {
            self.put(Arc::new(row));
        }
    }

    /// Adds the result of reading everything pending after `after` and up to `until`, beyond which there may be more.
    pub(super) fn loaded(&mut self, after: Due, rows: Vec<ScheduleRow>, until: Due, has_beyond: bool) {
        // Messages were evicted meanwhile, which this read does not include.
        if self.until != after {
            return;
        }
        (self.until, self.has_beyond) = (until, has_beyond);
        for row in rows {
            self.found(row);
        }
        self.make_room();
    }

    /// A message is now this, and nothing else is decided of it. One that is due soon is held although what is due before
    /// it may not be: the tables may be away until then.
    pub(super) fn decided(&mut self, row: Arc<ScheduleRow>, now: DateTime<Utc>) {
        self.take_out(row.id);
        let is_pending = row.status == ScheduleStatus::Pending;
        if is_pending && row.due() > self.until {
            self.has_beyond = true;
            if self.reads == 0 && self.is_beyond(&row, now) {
                return;
            }
        }
        if is_pending || self.reads > 0 {
            self.put(row);
        }
        self.make_room();
    }

    /// Removes a deleted message.
    pub(super) fn gone(&mut self, id: ScheduleId) {
        self.take_out(id);
    }

    /// Takes the next message to send: the oldest that is due, if no other of its conversation is being sent.
    pub(super) fn leave(&mut self, now: DateTime<Utc>, clock: Instant) -> Option<Arc<ScheduleRow>> {
        while let Some((_, id)) = self.resting.first().copied().filter(|(at, _)| *at <= clock) {
            self.resting.pop_first();
            if let Some(held) = self.held.get_mut(&id) {
                held.state = State::Ready;
                self.ready.insert(held.row.due());
                self.lanes.entry(lane(&held.row)).or_default().is_taken = false;
            }
        }
        while let Some(due) = self.ready.first().copied().filter(|(at, _)| *at <= now) {
            self.ready.pop_first();
            let Some(held) = self.held.get_mut(&due.1) else { continue };
            let lane = self.lanes.entry(lane(&held.row)).or_default();
            if !std::mem::replace(&mut lane.is_taken, true) {
                held.state = State::Leaving;
                return Some(held.row.clone());
            }
            held.state = State::Behind;
            lane.others.insert(due);
        }
        None
    }

    /// Schedules the retry of a message that could not be sent.
    pub(super) fn rest(&mut self, id: ScheduleId, until: Instant) {
        if let Some(held) = self.held.get_mut(&id).filter(|held| held.state == State::Leaving) {
            held.state = State::Resting(until);
            self.resting.insert((until, id));
        }
    }

    /// The times of the next due message and of the next retry.
    pub(super) fn next(&self) -> (Option<DateTime<Utc>>, Option<Instant>) {
        (self.ready.first().map(|(at, _)| *at), self.resting.first().map(|(at, _)| *at))
    }

    /// The first `max` messages that are due before a time.
    pub(super) fn before(&self, time: DateTime<Utc>, max: usize) -> Vec<Arc<ScheduleRow>> {
        let soon = self.ready.iter().take_while(|(at, _)| *at <= time).take(max);
        soon.filter_map(|(_, id)| self.held.get(id)).map(|held| held.row.clone()).collect()
    }

    /// Counts the waiting messages.
    pub(super) fn waiting(&self, now: DateTime<Utc>) -> Waiting {
        let mut waiting = Waiting::default();
        for held in self.held.values().filter(|held| held.state != State::Over) {
            waiting.held += 1;
            waiting.due += usize::from(held.row.send_at <= now);
            waiting.late += usize::from(held.row.send_at + LATE_AFTER < now);
        }
        waiting
    }

    /// Whether a message is left to the tables: what is due soon is not, however far all is held.
    fn is_beyond(&self, row: &ScheduleRow, now: DateTime<Utc>) -> bool {
        row.due() > self.until && row.send_at > now + AHEAD_MIN
    }

    fn put(&mut self, row: Arc<ScheduleRow>) {
        let is_pending = row.status == ScheduleStatus::Pending;
        if is_pending {
            self.ready.insert(row.due());
        }
        if self.reads > 0 {
            self.decided.push(row.id);
        }
        self.bytes += bytes(&row);
        let state = if is_pending { State::Ready } else { State::Over };
        self.held.insert(row.id, Held { row, state });
    }

    fn take_out(&mut self, id: ScheduleId) {
        let Some(held) = self.held.remove(&id) else { return };
        self.bytes = self.bytes.saturating_sub(bytes(&held.row));
        let (due, lane) = (held.row.due(), lane(&held.row));
        match held.state {
            State::Ready => drop(self.ready.remove(&due)),
            State::Resting(until) => drop(self.resting.remove(&(until, id))),
            State::Behind | State::Leaving | State::Over => {}
        }
        let Some(behind) = self.lanes.get_mut(&lane) else { return };
        match held.state {
            State::Leaving | State::Resting(_) => behind.is_taken = false,
            State::Behind => drop(behind.others.remove(&due)),
            State::Ready | State::Over => {}
        }
        if behind.is_taken {
            return;
        }
        // The next message of the conversation becomes ready.
        if let Some(next) = behind.others.pop_first()
            && let Some(held) = self.held.get_mut(&next.1)
        {
            held.state = State::Ready;
            self.ready.insert(next);
        }
        if behind.others.is_empty() {
            self.lanes.remove(&lane);
        }
    }

    /// Evicts the messages that are due last, while there are too many.
    fn make_room(&mut self) {
        while (self.held.len() > HELD_MAX || self.bytes > HELD_BYTES_MAX) && self.ready.len() > 1 {
            let Some((at, id)) = self.ready.last().copied() else { return };
            self.take_out(id);
            self.until = self.until.min((at, ScheduleId::new(id.0 - 1)));
            self.has_beyond = true;
        }
    }
}

fn lane(row: &ScheduleRow) -> Lane {
    (row.channel_id, row.contact_id)
}

fn bytes(row: &ScheduleRow) -> usize {
    row.body.len() + ROW_BYTES
}
