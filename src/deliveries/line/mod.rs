//! The deliveries of one webhook that are in memory, and what has to be written of those that were tried. Plain data: it
//! neither sends nor reads a clock.
//!
//! Events come out of the log in their order and go into lanes, one for each record they are of: of a lane one is tried at a
//! time. One that fails goes to the table with all that follow it in its lane, and comes back when its time has come. So
//! memory holds what was never tried, and what is being tried.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::webhooks::deliveries::{Attempt, DeliveryStatus, Due, Outcome, Standing};

use crate::webhooks::{Plan, Verdict};

/// Attempts of one endpoint under way at once: at the start, and at most. One that answers in 20 ms takes 1,600 a second.
const UNDER_WAY_FIRST: usize = 16;
const UNDER_WAY_MAX: usize = 32;

/// Events of one endpoint in memory, and their bytes before no more are read: what a hundred milliseconds need.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;

/// Outcomes that are not written yet at which nothing more is tried: the database is away, and whatever is not written is
/// sent again after a kill.
const UNWRITTEN_MAX: usize = 256;

/// How long an event is only in memory. Then it is noted in the table, so that one that hangs does not keep those behind
/// it from being noted as done.
const NOTED_AFTER: TimeDelta = TimeDelta::seconds(1);

/// An event as it is delivered.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) event: i64,
    pub(super) kind: String,
    /// The record it is of.
    pub(super) lane: String,
    pub(super) created_at: DateTime<Utc>,
    pub(super) json: Bytes,
}

#[derive(Debug)]
struct Held {
    letter: Letter,
    /// Attempts that failed before.
    tries: i32,
    /// Whether the table has it.
    is_known: bool,
    /// When it came into memory.
    since: DateTime<Utc>,
}

/// How a webhook's attempt is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing but what is written.
    None,
    /// The endpoint is gone, or has failed for too long.
    SwitchOff(Why),
}

/// Why an endpoint is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Gone,
    FailingSince(DateTime<Utc>),
}

/// The deliveries of one webhook.
#[derive(Debug)]
pub(super) struct Line {
    held: BTreeMap<i64, Held>,
    held_bytes: usize,
    /// The held events of each record.
    lanes: HashMap<String, BTreeSet<i64>>,
    /// The first of each lane that is not being tried.
    ready: BTreeSet<i64>,
    under_way: HashSet<i64>,
    under_way_max: usize,
    unwritten: Vec<Outcome>,
    /// Up to where the log was read.
    read_to: i64,
    /// Up to where that is written.
    written_to: i64,
    failing_since: Option<DateTime<Utc>>,
    written_failing_since: Option<DateTime<Utc>>,
    /// Whether the table may have deliveries that wait.
    may_wait: bool,
    /// Whether it is to be seen that nobody has had it begin somewhere else.
    is_asked: bool,
}

/// What is written with one statement.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) standing: Standing,
    pub(super) outcomes: Vec<Outcome>,
    /// Whether others may wait in the table for these.
    pub(super) frees: bool,
}

impl Line {
    /// Goes on from what is written.
    pub(super) fn new(told_to: i64, failing_since: Option<DateTime<Utc>>) -> Self {
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
            failing_since,
            written_failing_since: failing_since,
            may_wait: true,
            is_asked: false,
        }
    }

    /// How many more events there is room for.
    pub(super) fn room(&self) -> usize {
        if self.held_bytes >= HELD_BYTES_MAX || self.unwritten.len() >= UNWRITTEN_MAX {
            return 0;
        }
        HELD_MAX.saturating_sub(self.held.len())
    }

    /// Up to where the log was read: what the table has beyond is read anew.
    pub(super) fn read_to(&self) -> i64 {
        self.read_to
    }

    /// The events in memory, and those of which something is to be written: what the table has of them is not due.
    pub(super) fn held(&self) -> Vec<i64> {
        let unwritten = self.unwritten.iter().map(|outcome| outcome.event_id);
        self.held.keys().copied().chain(unwritten).collect()
    }

    /// Since when the oldest of them waits.
    pub(super) fn oldest(&self) -> Option<DateTime<Utc>> {
        self.held.first_key_value().map(|(_, held)| held.letter.created_at)
    }

    /// Takes the next events of the log, which was read up to `read_to`. Those of a lane that is `busy` in the table wait
    /// there.
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

    /// Whether an event of a lane is in memory that the table does not have: then those behind it are in memory as well.
    fn has_unknown(&self, lane: &str) -> bool {
        let held = self.lanes.get(lane).into_iter().flatten();
        held.into_iter().any(|event| self.held.get(event).is_some_and(|held| !held.is_known))
    }

    /// Takes one that is due again.
    pub(super) fn take_due(&mut self, due: &Due, letter: Letter, now: DateTime<Utc>) {
        if !self.held.contains_key(&due.event_id) {
            self.hold(Held { letter, tries: due.tries, is_known: true, since: now });
        }
    }

    /// One that is due is no longer in the log.
    pub(super) fn give_up(&mut self, due: Due, reason: &str, now: DateTime<Utc>) {
        let attempt = Attempt {
            at: now.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            status: None,
            error: Some(reason.to_owned()),
            duration_ms: 0,
        };
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
        // Of a lane one is tried at a time. One that comes back goes before those that wait.
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

    /// Whether something could be tried now.
    pub(super) fn has_next(&self) -> bool {
        !self.ready.is_empty() && self.under_way.len() < self.under_way_max && self.unwritten.len() < UNWRITTEN_MAX
    }

    /// The next to be tried, the oldest first.
    pub(super) fn next(&mut self) -> Option<Letter> {
        if !self.has_next() {
            return None;
        }
        let event = self.ready.pop_first()?;
        let letter = self.held.get(&event)?.letter.clone();
        self.under_way.insert(event);
        Some(letter)
    }

    /// An attempt has ended: what follows for the webhook, and when the delivery is tried again, if it is.
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
            self.failing_since = None;
            self.under_way_max = (self.under_way_max + 1).min(UNDER_WAY_MAX);
            self.unwritten.push(outcome_of(&letter, DeliveryStatus::Delivered, tries, Some(attempt), None));
            self.go_on(&letter.lane);
            return (DeliveryStatus::Delivered, Consequence::None);
        }
        // Whoever does not answer is asked by fewer: down to one at a time.
        self.under_way_max = (self.under_way_max / 2).max(1);
        let since = *self.failing_since.get_or_insert(now);
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

    /// The next of a lane is tried.
    fn go_on(&mut self, lane: &str) {
        if let Some(first) = self.lanes.get(lane).and_then(BTreeSet::first) {
            self.ready.insert(*first);
        }
    }

    /// All of a lane wait in the table.
    fn leave(&mut self, lane: &str) {
        let events: Vec<i64> = self.lanes.get(lane).into_iter().flatten().copied().collect();
        for event in events {
            if let Some(Held { letter, tries, .. }) = self.release(event) {
                self.unwritten.push(outcome_of(&letter, DeliveryStatus::Pending, tries, None, None));
            }
        }
    }

    /// Whether there is anything to write: outcomes, or that the webhook has come further.
    pub(super) fn is_unwritten(&self) -> bool {
        let has_moved = self.told_to() > self.written_to || self.failing_since != self.written_failing_since;
        !self.unwritten.is_empty() || has_moved || self.is_asked
    }

    /// Somebody has written to the tables: what waits there may be due, or it is to begin somewhere else.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
        self.may_wait = true;
    }

    /// Whether somebody has.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// What waits in the table is to be looked at again.
    pub(super) fn look_again(&mut self) {
        self.is_asked = true;
    }

    /// Whether the table may have deliveries that wait.
    pub(super) fn may_wait(&self) -> bool {
        self.may_wait
    }

    /// The table has none that wait, of all that was read, as of what was last written.
    pub(super) fn none_waits(&mut self) {
        self.may_wait = self.unwritten.iter().any(|outcome| outcome.status == DeliveryStatus::Pending);
    }

    /// How many outcomes are to be written.
    pub(super) fn unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Up to where every event is in the table or done, once `unwritten` is written.
    fn told_to(&self) -> i64 {
        let first_unknown = self.held.values().find(|held| !held.is_known);
        first_unknown.map_or(self.read_to, |held| held.letter.event - 1)
    }

    /// Notes those in the table that have been in memory only for a while. When that is due, of those that have not.
    pub(super) fn note(&mut self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut next: Option<DateTime<Utc>> = None;
        for (event, held) in &mut self.held {
            if held.is_known {
                continue;
            }
            let due = held.since + NOTED_AFTER;
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            // After a kill the first of a lane is tried at once, and the others wait for it.
            let is_first = self.lanes.get(&held.letter.lane).and_then(BTreeSet::first) == Some(event);
            let at = is_first.then_some(now);
            self.unwritten.push(outcome_of(&held.letter, DeliveryStatus::Pending, held.tries, None, at));
            held.is_known = true;
        }
        next
    }

    /// What is to be written now. It counts as written unless it is brought back ([`Line::not_written`]).
    pub(super) fn writing(&mut self) -> Writing {
        let standing = Standing { from: self.written_to, told_to: self.told_to(), failing_since: self.failing_since };
        let mut outcomes: Vec<Outcome> = Vec::new();
        // An event may be there twice: noted, and done. One statement writes a row once, and the last word counts.
        let mut places: HashMap<i64, usize> = HashMap::new();
        for outcome in self.unwritten.drain(..) {
            match places.get(&outcome.event_id) {
                Some(place) => outcomes[*place] = outcome,
                None => {
                    places.insert(outcome.event_id, outcomes.len());
                    outcomes.push(outcome);
                }
            }
        }
        self.written_to = standing.told_to;
        self.written_failing_since = standing.failing_since;
        self.is_asked = false;
        self.may_wait |= outcomes.iter().any(|outcome| outcome.status == DeliveryStatus::Pending);
        Writing { standing, outcomes, frees: self.may_wait }
    }

    /// It could not be written, and is to be written again with what has come since.
    pub(super) fn not_written(&mut self, writing: Writing) {
        let Writing { standing, mut outcomes, frees: _ } = writing;
        self.written_to = standing.from;
        self.is_asked = true;
        outcomes.append(&mut self.unwritten);
        self.unwritten = outcomes;
    }
}

fn outcome_of(
    letter: &Letter,
    status: DeliveryStatus,
    tries: i32,
    attempt: Option<Attempt>,
    next_attempt_at: Option<DateTime<Utc>>,
) -> Outcome {
    Outcome {
        event_id: letter.event,
        kind: letter.kind.clone(),
        lane: letter.lane.clone(),
        status,
        tries,
        attempt,
        next_attempt_at,
        created_at: letter.created_at,
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests;
