//! What is written of a line, and what returns when the write fails.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::webhooks::deliveries::{Attempt, DeliveryStatus, Outcome, Standing};

use super::{Letter, Line};

/// How long an event may be in memory only. Then it is noted in the table, so that a hanging delivery does not prevent
/// the position from advancing.
const NOTED_AFTER: TimeDelta = TimeDelta::seconds(1);

/// The content of one write.
#[derive(Debug)]
pub(in crate::deliveries) struct Writing {
    pub(in crate::deliveries) standing: Standing,
    pub(in crate::deliveries) outcomes: Vec<Outcome>,
    /// Whether other deliveries may have been waiting in the table for these.
    pub(in crate::deliveries) frees: bool,
}

impl Line {
    /// Whether something must be written: outcomes, or a new position.
    pub(in crate::deliveries) fn is_unwritten(&self) -> bool {
        let has_moved = self.told_to() > self.written_to || self.failing_since() != self.written_failing_since;
        !self.unwritten.is_empty() || has_moved || self.is_asked
    }

    /// The position up to which every event is in the table or done, once `unwritten` is written.
    fn told_to(&self) -> i64 {
        let first_unknown = self.held.values().find(|held| !held.is_known);
        first_unknown.map_or(self.read_to, |held| held.letter.event - 1)
    }

    /// Notes events that have been in memory for too long. Returns when the next one must be noted.
    pub(in crate::deliveries) fn note(&mut self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.note_after(NOTED_AFTER, now)
    }

    /// Notes all events in memory, so that the position moves past those that were delivered.
    pub(in crate::deliveries) fn note_all(&mut self, now: DateTime<Utc>) {
        // Whatever the clock says of when they came.
        self.note_after(TimeDelta::MIN, now);
    }

    fn note_after(&mut self, after: TimeDelta, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut next: Option<DateTime<Utc>> = None;
        for (event, held) in &mut self.held {
            if held.is_known {
                continue;
            }
            let due = held.since.checked_add_signed(after).unwrap_or(DateTime::<Utc>::MIN_UTC);
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            // After a kill, the first event of a lane is attempted at once, and the others wait for it.
            let is_first = self.lanes.get(&held.letter.lane).and_then(BTreeSet::first) == Some(event);
            let at = is_first.then_some(now);
            self.unwritten.push(outcome_of(&held.letter, DeliveryStatus::Pending, held.tries, None, at));
            held.is_known = true;
        }
        next
    }

    /// Takes the content of the next write. It counts as written unless it is returned ([`Line::not_written`]).
    pub(in crate::deliveries) fn writing(&mut self) -> Writing {
        let standing = Standing { from: self.written_to, told_to: self.told_to(), failing_since: self.failing_since() };
        let mut outcomes: Vec<Outcome> = Vec::new();
        // An event may occur twice: noted, and done. A statement can write each row only once, and the last outcome
        // counts.
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

    /// The write failed: its content is added to what has accumulated since.
    pub(in crate::deliveries) fn not_written(&mut self, writing: Writing) {
        let Writing { standing, mut outcomes, frees: _ } = writing;
        self.written_to = standing.from;
        self.is_asked = true;
        outcomes.append(&mut self.unwritten);
        self.unwritten = outcomes;
    }
}

/// The outcome of a delivery, as it is written.
pub(super) fn outcome_of(
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
