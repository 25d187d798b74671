//! What a company has scheduled, as far as it is held in memory: which message may leave next. Knows no clock and does no
//! I/O: whoever asks says what time it is.
//!
//! - All that is pending up to a point ([`Agenda::until`]) is held. What lies beyond is in the tables, and is loaded
//!   as time goes on. What does not fit is given up from the far end.
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

/// How far ahead everything is held at least: as long as an outage of the database should be survived.
pub(super) const AHEAD_MIN: TimeDelta = TimeDelta::hours(1);

/// How far ahead it is loaded: so a load is due every half hour.
pub(super) const AHEAD_MAX: TimeDelta = TimeDelta::minutes(90);

/// Scheduled messages a company holds: more than any provider takes within minutes. With short texts 10 MiB.
const HELD_MAX: usize = 20_000;

/// Bytes of their texts: of the longest there are, 512.
const HELD_BYTES_MAX: usize = 32 << 20;

/// What a row takes beside its text, about.
const ROW_BYTES: usize = 400;

/// After how long a message that has not left is late: what the contract allows.
const LATE_AFTER: TimeDelta = TimeDelta::seconds(5);

/// A contact on a channel.
type Lane = (ChannelId, ContactId);

/// What is held.
pub(super) struct Agenda {
    held: HashMap<ScheduleId, Held>,
    /// What may leave as soon as it is due.
    ready: BTreeSet<Due>,
    /// What could not leave for an outage, by when it is tried again.
    resting: BTreeSet<(Instant, ScheduleId)>,
    /// The conversations in which one is leaving or rests, or others stand behind.
    lanes: HashMap<Lane, Behind>,
    until: Due,
    /// Whether anything may be pending beyond.
    has_beyond: bool,
    bytes: usize,
    /// Reads of the tables that are under way.
    reads: usize,
    /// What was decided meanwhile.
    decided: Vec<ScheduleId>,
}

struct Held {
    row: Arc<ScheduleRow>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// Another one of its conversation goes first.
    Behind,
    Leaving,
    Resting(Instant),
    /// Sent, canceled or failed, and kept until nobody can have read it as it was before.
    Over,
}

#[derive(Default)]
struct Behind {
    /// Whether one is leaving or rests.
    is_taken: bool,
    others: BTreeSet<Due>,
}

/// How much waits, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Pending ones that are held.
    pub(super) held: usize,
    /// Those whose time has come.
    pub(super) due: usize,
    /// Those whose time came too long ago.
    pub(super) late: usize,
}

/// What is known of a scheduled message.
pub(super) enum Look {
    /// It is this, and nobody is about to change it.
    Settled(Arc<ScheduleRow>),
    /// It is on its way out.
    Leaving,
    /// The tables know.
    Unknown,
}

impl Default for Agenda {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            ready: BTreeSet::new(),
            resting: BTreeSet::new(),
            lanes: HashMap::new(),
            // No time is earlier that anybody can give, and PostgreSQL has one for it.
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

    /// Up to where all that is pending is held.
    pub(super) fn until(&self) -> Due {
        self.until
    }

    /// Whether nothing is pending, here or in the tables.
    pub(super) fn is_done(&self) -> bool {
        self.held.is_empty() && !self.has_beyond && self.reads == 0
    }

    /// Whether more should be loaded by now.
    pub(super) fn wants_more(&self, now: DateTime<Utc>) -> bool {
        let has_room = self.held.len() < HELD_MAX / 2 && self.bytes < HELD_BYTES_MAX / 2;
        self.has_beyond && has_room && self.until.0 < now + AHEAD_MIN
    }

    /// A read of the tables begins.
    pub(super) fn begin_read(&mut self) {
        self.reads += 1;
    }

    /// A read of the tables has ended, and what it found was taken.
    pub(super) fn end_read(&mut self) {
        self.reads = self.reads.saturating_sub(1);
        if self.reads > 0 {
            return;
        }
        for id in std::mem::take(&mut self.decided) {
            let Some(held) = self.held.get(&id) else { continue };
            let is_beyond = held.row.due() > self.until && matches!(held.state, State::Ready);
            if held.state == State::Over || is_beyond {
                self.has_beyond |= is_beyond;
                self.take_out(id);
            }
        }
    }

    /// What a read of one row found, unless more is known of it.
    pub(super) fn found(&mut self, row: ScheduleRow) {
        if !self.held.contains_key(&row.id) {
            self.put(Arc::new(row));
        }
    }

    /// What a read of all that is pending after `after` found: everything up to `until`, beyond which there may be more.
    pub(super) fn loaded(&mut self, after: Due, rows: Vec<ScheduleRow>, until: Due, has_beyond: bool) {
        // Something was given up meanwhile, which this read has not seen.
        if self.until != after {
            return;
        }
        (self.until, self.has_beyond) = (until, has_beyond);
        for row in rows {
            self.found(row);
        }
        self.make_room();
    }

    /// A message is now this, and nothing else is decided of it.
    pub(super) fn decided(&mut self, row: Arc<ScheduleRow>) {
        self.take_out(row.id);
        let is_pending = row.status == ScheduleStatus::Pending;
        if is_pending && row.due() > self.until {
            self.has_beyond = true;
            if self.reads == 0 {
                return;
            }
        }
        if is_pending || self.reads > 0 {
            self.put(row);
        }
        self.make_room();
    }

    /// What is gone.
    pub(super) fn gone(&mut self, id: ScheduleId) {
        self.take_out(id);
    }

    /// The next message that leaves: the oldest that is due, if none of its conversation is on its way.
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

    /// A message that was leaving could not; it is tried again then.
    pub(super) fn rest(&mut self, id: ScheduleId, until: Instant) {
        if let Some(held) = self.held.get_mut(&id).filter(|held| held.state == State::Leaving) {
            held.state = State::Resting(until);
            self.resting.insert((until, id));
        }
    }

    /// When the next one is due, and when the next one has rested.
    pub(super) fn next(&self) -> (Option<DateTime<Utc>>, Option<Instant>) {
        (self.ready.first().map(|(at, _)| *at), self.resting.first().map(|(at, _)| *at))
    }

    /// What is due before a time, the first `max` of it.
    pub(super) fn before(&self, time: DateTime<Utc>, max: usize) -> Vec<Arc<ScheduleRow>> {
        let soon = self.ready.iter().take_while(|(at, _)| *at <= time).take(max);
        soon.filter_map(|(_, id)| self.held.get(id)).map(|held| held.row.clone()).collect()
    }

    /// How much waits.
    pub(super) fn waiting(&self, now: DateTime<Utc>) -> Waiting {
        let mut waiting = Waiting::default();
        for held in self.held.values().filter(|held| held.state != State::Over) {
            waiting.held += 1;
            waiting.due += usize::from(held.row.send_at <= now);
            waiting.late += usize::from(held.row.send_at + LATE_AFTER < now);
        }
        waiting
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
        // The next one of the conversation.
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

    /// Gives up what is due last while there is too much.
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
