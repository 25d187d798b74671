//! The deliveries of one webhook that are in memory, and the outcomes that must be written. Plain data: it does no I/O
//! and reads no clock.
//!
//! Events come from the log in order and go into lanes, one per record; in each lane, one delivery is attempted at a
//! time. A failed delivery goes to the table together with all that follow it in its lane, and returns when it is due.
//! So memory contains only deliveries that were never attempted, and those being attempted.

mod writing;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use hotline_persistence::tables::webhooks::deliveries::{Attempt, DeliveryStatus, Due, Outcome};

pub(super) use self::writing::Writing;
use self::writing::outcome_of;
use crate::webhooks::{Plan, Verdict};

/// Concurrent attempts for one endpoint: initially, and at most. One that responds in 20 ms handles 1,600 a second.
const UNDER_WAY_FIRST: usize = 16;
const UNDER_WAY_MAX: usize = 32;

/// Events of one endpoint in memory, and their total size, above which no more are read: enough for a hundred
/// milliseconds.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;

/// Number of unwritten outcomes above which nothing more is attempted: the database is unavailable, and unwritten
/// deliveries are repeated if the process is killed.
const UNWRITTEN_MAX: usize = 256;

/// An event, serialized for delivery.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) event: i64,
    pub(super) kind: String,
    /// The record that the event is about.
    pub(super) lane: String,
    pub(super) created_at: DateTime<Utc>,
    pub(super) json: Bytes,
}

#[derive(Debug)]
struct Held {
    letter: Letter,
    /// Number of failed attempts.
    tries: i32,
    /// Whether it is in the table.
    is_known: bool,
    /// When it was added to memory.
    since: DateTime<Utc>,
}

/// What an attempt means for its webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing beyond the outcome itself.
    None,
    /// The endpoint no longer exists, or has failed for too long.
    SwitchOff(Why),
}

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Gone,
    FailingSince(DateTime<Utc>),
}

/// How long an endpoint has failed without a pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failing {
    pub(super) since: DateTime<Utc>,
    /// When it did last.
    pub(super) last: DateTime<Utc>,
}

/// The deliveries of one webhook.
#[derive(Debug)]
pub(super) struct Line {
    held: BTreeMap<i64, Held>,
    held_bytes: usize,
    /// The events in memory, by record.
    lanes: HashMap<String, BTreeSet<i64>>,
    /// The first event of each lane in which no attempt is running.
    ready: BTreeSet<i64>,
    under_way: HashSet<i64>,
    under_way_max: usize,
    unwritten: Vec<Outcome>,
    /// The position up to which the log was read.
    read_to: i64,
    /// The position that was written last.
    written_to: i64,
    failing: Option<Failing>,
    written_failing_since: Option<DateTime<Utc>>,
    /// Whether the table may contain waiting deliveries.
    may_wait: bool,
    /// Whether the table must be checked for a changed position.
    is_asked: bool,
}

impl Line {
    /// Continues from the written position.
    pub(super) fn new(told_to: i64, failing: Option<Failing>) -> Self {
        Self {
            held: BTreeMap::new(),
            held_bytes: 0,
            lanes: HashMap::new(),
            ready: BTreeSet::new(),
            under_way: HashSet::new(),
            under_way_max: UNDER_WAY_FIRST,
            unwritten: Vec::new(),
            read_to: told_to,
            written_to: told_to,
            failing,
            written_failing_since: failing.map(|failing| failing.since),
            may_wait: true,
            is_asked: false,
        }
    }

    /// How many more events may be read.
    pub(super) fn room(&self) -> usize {
        if self.held_bytes >= HELD_BYTES_MAX || self.unwritten.len() >= UNWRITTEN_MAX {
            return 0;
        }
        HELD_MAX.saturating_sub(self.held.len())
    }

    /// The position up to which the log was read; later events in the table are read again.
    pub(super) fn read_to(&self) -> i64 {
        self.read_to
    }

    /// The events in memory, and those with unwritten outcomes: their rows in the table are not due.
    pub(super) fn held(&self) -> Vec<i64> {
        let unwritten = self.unwritten.iter().map(|outcome| outcome.event_id);
        self.held.keys().copied().chain(unwritten).collect()
    }

    /// The creation time of the oldest event in memory.
    pub(super) fn oldest(&self) -> Option<DateTime<Utc>> {
        self.held.first_key_value().map(|(_, held)| held.letter.created_at)
    }

    /// Adds the next events of the log, which was read up to `read_to`. Events of lanes that are `busy` in the table
    /// wait there.
    pub(super) fn take(&mut self, letters: Vec<Letter>, read_to: i64, busy: &HashSet<String>, now: DateTime<Utc>) {
        for letter in letters {
            let waits = self
                .unwritten
                .iter()
                .any(|outcome| outcome.lane == letter.lane && outcome.status == DeliveryStatus::Pending);
            let waits = waits || busy.contains(&letter.lane);
            if waits && !self.has_unknown(&letter.lane) {
                self.unwritten.push(outcome_of(&letter, DeliveryStatus::Pending, 0, None, None));
            } else {
                self.hold(Held { letter, tries: 0, is_known: false, since: now });
            }
        }
        self.read_to = self.read_to.max(read_to);
    }

    /// Whether a lane has an event in memory that is not in the table: then the events after it are in memory too.
    fn has_unknown(&self, lane: &str) -> bool {
        let held = self.lanes.get(lane).into_iter().flatten();
        held.into_iter().any(|event| self.held.get(event).is_some_and(|held| !held.is_known))
    }

    /// Adds a delivery that is due again.
    pub(super) fn take_due(&mut self, due: &Due, letter: Letter, now: DateTime<Utc>) {
        if !self.held.contains_key(&due.event_id) {
            self.hold(Held { letter, tries: due.tries, is_known: true, since: now });
        }
    }

    /// The event of a due delivery is no longer in the log.
    pub(super) fn give_up(&mut self, due: Due, reason: &str, now: DateTime<Utc>) {
        let attempt = not_made(reason, now);
        self.unwritten.push(Outcome {
            event_id: due.event_id,
            kind: due.kind,
            lane: due.lane,
            status: DeliveryStatus::Failed,
            tries: due.tries,
            attempt: Some(attempt),
            next_attempt_at: None,
            created_at: due.created_at,
        });
        self.may_wait = true;
    }

    fn hold(&mut self, held: Held) {
        let event = held.letter.event;
        let lane = self.lanes.entry(held.letter.lane.clone()).or_default();
        lane.insert(event);
        // One attempt at a time per lane. A delivery that returns comes before those that wait.
        let is_idle = lane.iter().all(|other| !self.under_way.contains(other));
        if is_idle && lane.first() == Some(&event) {
            if let Some(next) = lane.iter().nth(1) {
                self.ready.remove(next);
            }
            self.ready.insert(event);
        }
        self.held_bytes += held.letter.json.len();
        self.held.insert(event, held);
    }

    fn release(&mut self, event: i64) -> Option<Held> {
        let held = self.held.remove(&event)?;
        self.held_bytes = self.held_bytes.saturating_sub(held.letter.json.len());
        self.ready.remove(&event);
        if let Some(lane) = self.lanes.get_mut(&held.letter.lane) {
            lane.remove(&event);
            if lane.is_empty() {
                self.lanes.remove(&held.letter.lane);
            }
        }
        Some(held)
    }

    /// Whether an attempt could be started now.
    pub(super) fn has_next(&self) -> bool {
        !self.ready.is_empty() && self.under_way.len() < self.under_way_max && self.unwritten.len() < UNWRITTEN_MAX
    }

    /// The next delivery to attempt, the oldest first.
    pub(super) fn next(&mut self) -> Option<Letter> {
        if !self.has_next() {
            return None;
        }
        let event = self.ready.pop_first()?;
        let letter = self.held.get(&event)?.letter.clone();
        self.under_way.insert(event);
        Some(letter)
    }

    /// Records the outcome of an attempt: returns the consequence for the webhook, and when the delivery is retried, if
    /// it is.
    pub(super) fn ended(
        &mut self,
        event: i64,
        verdict: Verdict,
        attempt: Attempt,
        plan: &Plan,
        now: DateTime<Utc>,
    ) -> (DeliveryStatus, Consequence) {
        self.under_way.remove(&event);
        let Some(Held { letter, tries, .. }) = self.release(event) else {
            return (DeliveryStatus::Failed, Consequence::None);
        };
        if verdict == Verdict::Taken {
            self.failing = None;
            self.under_way_max = (self.under_way_max + 1).min(UNDER_WAY_MAX);
            self.unwritten.push(outcome_of(&letter, DeliveryStatus::Delivered, tries, Some(attempt), None));
            self.go_on(&letter.lane);
            return (DeliveryStatus::Delivered, Consequence::None);
        }
        // An endpoint that fails gets fewer concurrent attempts, down to one.
        self.under_way_max = (self.under_way_max / 2).max(1);
        let since = self.fail(plan, now);
        let consequence = match verdict {
            Verdict::Gone => Consequence::SwitchOff(Why::Gone),
            _ if plan.is_given_up(since, now) => Consequence::SwitchOff(Why::FailingSince(since)),
            _ => Consequence::None,
        };
        let next = plan.next(tries + 1, now);
        let status = if next.is_some() { DeliveryStatus::Pending } else { DeliveryStatus::Failed };
        self.unwritten.push(outcome_of(&letter, status, tries + 1, Some(attempt), next));
        match status {
            DeliveryStatus::Pending => self.leave(&letter.lane),
            _ => self.go_on(&letter.lane),
        }
        (status, consequence)
    }

    /// An event that its webhook may not be told of has failed for good, without an attempt: it says nothing of the endpoint.
    pub(super) fn withheld(&mut self, event: i64, reason: &str, now: DateTime<Utc>) {
        self.under_way.remove(&event);
        let Some(Held { letter, tries, .. }) = self.release(event) else { return };
        let attempt = not_made(reason, now);
        self.unwritten.push(outcome_of(&letter, DeliveryStatus::Failed, tries, Some(attempt), None));
        self.go_on(&letter.lane);
    }

    /// Notes that the endpoint fails, and answers since when it has. After a pause it begins to: nobody has asked it meanwhile.
    fn fail(&mut self, plan: &Plan, now: DateTime<Utc>) -> DateTime<Utc> {
        let before = self.failing.filter(|failing| plan.is_going_on(failing.last, now));
        let since = before.map_or(now, |failing| failing.since);
        self.failing = Some(Failing { since, last: now });
        since
    }

    /// The endpoint does not fail any more, or is another one.
    pub(super) fn forgive(&mut self) {
        self.failing = None;
    }

    fn failing_since(&self) -> Option<DateTime<Utc>> {
        self.failing.map(|failing| failing.since)
    }

    /// Makes the first delivery of a lane ready.
    fn go_on(&mut self, lane: &str) {
        if let Some(first) = self.lanes.get(lane).and_then(BTreeSet::first) {
            self.ready.insert(*first);
        }
    }

    /// Moves all deliveries of a lane to the table.
    fn leave(&mut self, lane: &str) {
        let events: Vec<i64> = self.lanes.get(lane).into_iter().flatten().copied().collect();
        for event in events {
            if let Some(Held { letter, tries, .. }) = self.release(event) {
                self.unwritten.push(outcome_of(&letter, DeliveryStatus::Pending, tries, None, None));
            }
        }
    }

    /// The tables were changed: waiting deliveries may be due, or the position may have changed.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
        self.may_wait = true;
    }

    /// Whether the tables must be checked.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Requests another look at the waiting deliveries.
    pub(super) fn look_again(&mut self) {
        self.is_asked = true;
    }

    /// Whether the table may contain waiting deliveries.
    pub(super) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// After the last write, the table contained no waiting deliveries of the events read so far.
    pub(super) fn none_waits(&mut self) {
        self.may_wait = self.unwritten.iter().any(|outcome| outcome.status == DeliveryStatus::Pending);
    }

    /// The number of unwritten outcomes.
    pub(super) fn unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Whether nothing is in memory: neither events nor unwritten outcomes.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.unwritten.is_empty()
    }
}

/// What is shown of a delivery that failed without an attempt.
fn not_made(reason: &str, now: DateTime<Utc>) -> Attempt {
    Attempt {
        at: now.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        status: None,
        error: Some(reason.to_owned()),
        duration_ms: 0,
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests;
