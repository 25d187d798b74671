//! What a company has scheduled, as far as it is held in memory: which message may leave next. Knows no clock and does no
//! I/O: whoever asks says what time it is.
//!
//! - All that is pending up to a point ([`Agenda::until`]) is held. What lies beyond is in the tables, and is loaded
//!   as time goes on. What does not fit is given up from the far end.
//! - Of one conversation one leaves at a time, the oldest first; the others stand behind it.
//! - While a read of the tables is under way nothing that was decided is dropped, and what is held counts more than
//!   what was read: a read may be older than a decision.

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hotline_persistence::CompanyId;

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn row(id: i64, second: i64, contact: i64) -> ScheduleRow {
        ScheduleRow {
            company_id: CompanyId::new(1),
            id: ScheduleId::new(id),
            contact_id: ContactId::new(contact),
            channel_id: ChannelId::new(1),
            body: "hello".to_owned(),
            queue_id: None,
            send_at: at(second),
            status: ScheduleStatus::Pending,
            message_id: None,
            error: None,
            user_id: None,
            integration_id: None,
            created_at: at(0),
            updated_at: at(0),
        }
    }

    fn over(row: ScheduleRow) -> Arc<ScheduleRow> {
        Arc::new(ScheduleRow { status: ScheduleStatus::Canceled, ..row })
    }

    /// Everything is held, and nothing lies beyond.
    fn whole(rows: Vec<ScheduleRow>) -> Agenda {
        let mut agenda = Agenda::default();
        agenda.begin_read();
        agenda.loaded(agenda.until(), rows, (at(1_000_000), ScheduleId::new(i64::MAX)), false);
        agenda.end_read();
        agenda
    }

    /// What leaves at a time, each settled before the next.
    fn left(agenda: &mut Agenda, second: i64) -> Vec<i64> {
        let mut left = Vec::new();
        while let Some(row) = agenda.leave(at(second), Instant::now()) {
            left.push(row.id.0);
            agenda.decided(over(ScheduleRow::clone(&row)));
        }
        left
    }

    #[test]
    fn what_is_due_leaves_once_the_oldest_first_whatever_the_clock_does() {
        let mut agenda = whole(vec![row(3, 10, 3), row(1, 20, 1), row(2, 10, 2), row(4, 30, 4)]);
        assert_eq!(left(&mut agenda, 9), [0; 0]);
        assert_eq!(left(&mut agenda, 10), [2, 3]);
        // Set back by an hour, and on by a week.
        assert_eq!(left(&mut agenda, -3590), [0; 0]);
        assert_eq!(left(&mut agenda, 700_000), [1, 4]);
        assert_eq!(left(&mut agenda, 700_000), [0; 0]);
        assert!(agenda.is_done() && agenda.lanes.is_empty() && agenda.bytes == 0);
    }

    #[test]
    fn of_a_conversation_one_leaves_at_a_time_and_others_do_not_wait_for_it() {
        let mut agenda = whole(vec![row(1, 1, 7), row(2, 2, 7), row(3, 3, 7), row(4, 4, 8)]);
        let (now, clock) = (at(9), Instant::now());
        let first = agenda.leave(now, clock).expect("the oldest");
        assert_eq!(first.id.0, 1);
        assert_eq!(agenda.leave(now, clock).expect("another conversation").id.0, 4);
        assert!(agenda.leave(now, clock).is_none());
        assert!(matches!(agenda.look(first.id), Look::Leaving));
        // It rests; those behind it stay there, and one of them is canceled.
        let rested = clock + Duration::from_secs(1);
        agenda.rest(first.id, rested);
        assert!(matches!(agenda.look(first.id), Look::Settled(_)));
        assert!(agenda.leave(now, clock).is_none());
        agenda.decided(over(row(2, 2, 7)));
        assert_eq!(agenda.next(), (None, Some(rested)));
        assert_eq!(agenda.leave(now, rested).expect("it has rested").id.0, 1);
        agenda.decided(over(row(1, 1, 7)));
        assert_eq!(agenda.leave(now, rested).expect("the next").id.0, 3);
        // One that rests and is canceled holds nobody up.
        agenda.rest(ScheduleId::new(3), rested);
        agenda.decided(Arc::new(row(5, 5, 7)));
        agenda.decided(over(row(3, 3, 7)));
        assert_eq!(agenda.leave(now, rested).expect("the last").id.0, 5);
        assert_eq!(agenda.waiting(at(9)), Waiting { held: 2, due: 2, late: 0 });
        assert_eq!(agenda.waiting(at(10)), Waiting { held: 2, due: 2, late: 1 });
    }

    #[test]
    fn what_was_decided_counts_more_than_a_read_that_began_before() {
        let mut agenda = Agenda::default();
        agenda.begin_read();
        let after = agenda.until();
        // Canceled, changed and made while the read is under way; it has seen none of it.
        agenda.decided(over(row(1, 1, 1)));
        agenda.decided(Arc::new(row(2, 5, 2)));
        agenda.decided(Arc::new(row(3, 3, 3)));
        agenda.decided(Arc::new(row(9, 99, 9)));
        agenda.loaded(after, vec![row(1, 1, 1), row(2, 2, 2)], (at(50), ScheduleId::new(i64::MAX)), false);
        agenda.end_read();
        assert!(agenda.has_beyond, "the last is beyond, and to be loaded");
        assert!(matches!(agenda.look(ScheduleId::new(9)), Look::Unknown));
        assert!(matches!(agenda.look(ScheduleId::new(1)), Look::Unknown), "nobody can take it for pending any more");
        assert_eq!(left(&mut agenda, 100), [3, 2]);
    }

    #[test]
    fn what_is_far_ahead_is_loaded_as_time_goes_on() {
        let mut agenda = Agenda::default();
        assert!(agenda.wants_more(at(0)));
        agenda.begin_read();
        agenda.loaded(agenda.until(), vec![row(1, 10, 1)], (at(5400), ScheduleId::new(i64::MAX)), true);
        agenda.end_read();
        assert!(!agenda.wants_more(at(1800)) && agenda.wants_more(at(1801)));
        // Made beyond, it is not held; within, it is.
        agenda.decided(Arc::new(row(2, 6000, 2)));
        agenda.decided(Arc::new(row(3, 5000, 3)));
        assert!(matches!(agenda.look(ScheduleId::new(2)), Look::Unknown));
        assert_eq!(left(&mut agenda, 10_000), [1, 3]);
        assert!(!agenda.is_done());
    }

    #[test]
    fn what_does_not_fit_is_given_up_from_the_far_end_and_found_again() {
        let count = i64::try_from(HELD_MAX).expect("few") + 10;
        let mut agenda = whole((1..=count).map(|id| row(id, id, id)).collect());
        assert_eq!((agenda.held.len(), agenda.until().1.0), (HELD_MAX, count - 10));
        assert!(agenda.has_beyond && !agenda.wants_more(at(count)), "there is no room");
        // A nearer one takes the place of a farther one; a read that began before does not count.
        let before = agenda.until();
        agenda.begin_read();
        agenda.decided(Arc::new(row(count + 1, 0, count + 1)));
        agenda.loaded(before, vec![row(count, count, count)], (at(count), ScheduleId::new(count)), false);
        agenda.end_read();
        assert_eq!(agenda.until().1.0, count - 11);
        assert!(agenda.has_beyond);
        assert_eq!(left(&mut agenda, count).len(), HELD_MAX);
        assert!(agenda.wants_more(at(count)));
        let mut agenda = whole(Vec::new());
        let long = ScheduleRow { body: "x".repeat(65_536), ..row(1, 1, 1) };
        for id in 1..=600 {
            agenda.decided(Arc::new(ScheduleRow { id: ScheduleId::new(id), send_at: at(id), ..long.clone() }));
        }
        assert!(agenda.bytes <= HELD_BYTES_MAX && agenda.held.len() > 500 && agenda.has_beyond);
    }
}
