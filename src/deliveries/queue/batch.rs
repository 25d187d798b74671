//! Prepares the writes of a queue: spills old events to the table, takes a batch, and restores it if its write fails.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use hotline_persistence::tables::webhooks::deliveries::{Attempt, DeliveryOutcome, DeliveryStatus, WebhookProgress};

use super::{DeliveryQueue, OutgoingEvent};

/// How long an event may be in memory only. Then it is saved in the table, so that a hanging delivery does not prevent
/// the position from advancing.
const SPILL_AFTER: TimeDelta = TimeDelta::seconds(1);

/// The content of one write.
#[derive(Debug)]
pub(in crate::deliveries) struct WriteBatch {
    pub(in crate::deliveries) progress: WebhookProgress,
    pub(in crate::deliveries) outcomes: Vec<DeliveryOutcome>,
    /// Whether other deliveries may have been waiting in the table for these.
    pub(in crate::deliveries) may_unblock: bool,
}

impl DeliveryQueue {
    /// Whether a batch must be written: it has outcomes, a new position or a new failure period, or a check is
    /// requested.
    pub(in crate::deliveries) fn has_batch(&self) -> bool {
        let has_moved =
            self.delivered_through() > self.written_to || self.failing_since() != self.written_failing_since;
        !self.unwritten.is_empty() || has_moved || self.must_check
    }

    /// The position up to which every event is in the table or done, once `unwritten` is written.
    fn delivered_through(&self) -> i64 {
        let first_unsaved = self.events.values().find(|queued| !queued.is_in_table);
        first_unsaved.map_or(self.read_to, |queued| queued.event.id - 1)
    }

    /// Saves events that have been in memory for too long. Returns when the next one must be saved.
    pub(in crate::deliveries) fn spill_old(&mut self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.spill_after(SPILL_AFTER, now)
    }

    /// Saves all events in memory, so that the position moves past those that were delivered.
    pub(in crate::deliveries) fn spill_all(&mut self, now: DateTime<Utc>) {
        // With the minimum, every event is due, whatever the clock says.
        self.spill_after(TimeDelta::MIN, now);
    }

    fn spill_after(&mut self, after: TimeDelta, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut next: Option<DateTime<Utc>> = None;
        for (id, queued) in &mut self.events {
            if queued.is_in_table {
                continue;
            }
            let due = queued.added_at.checked_add_signed(after).unwrap_or(DateTime::<Utc>::MIN_UTC);
            if due > now {
                next = Some(next.map_or(due, |next| next.min(due)));
                continue;
            }
            // After a kill, the first event of a lane is attempted at once, and the others wait for it.
            let is_first = self.lanes.get(&queued.event.lane).and_then(BTreeSet::first) == Some(id);
            let at = is_first.then_some(now);
            self.unwritten.push(outcome_of(&queued.event, DeliveryStatus::Pending, queued.tries, None, at));
            queued.is_in_table = true;
        }
        next
    }

    /// Takes the content of the next write. It counts as written unless it is returned ([`DeliveryQueue::restore`]).
    pub(in crate::deliveries) fn take_batch(&mut self) -> WriteBatch {
        let progress = WebhookProgress {
            expected_delivered_through: self.written_to,
            delivered_through: self.delivered_through(),
            expected_failing_since: self.written_failing_since,
            failing_since: self.failing_since(),
        };
        let mut outcomes: Vec<DeliveryOutcome> = Vec::new();
        // An event may occur twice: spilled as pending, and then finished. A statement can write each row only once,
        // and the last outcome counts.
        let mut indexes: HashMap<i64, usize> = HashMap::new();
        for outcome in self.unwritten.drain(..) {
            match indexes.get(&outcome.event_id) {
                Some(index) => outcomes[*index] = outcome,
                None => {
                    indexes.insert(outcome.event_id, outcomes.len());
                    outcomes.push(outcome);
                }
            }
        }
        self.written_to = progress.delivered_through;
        self.written_failing_since = progress.failing_since;
        self.must_check = false;
        self.may_have_waiting |= outcomes.iter().any(|outcome| outcome.status == DeliveryStatus::Pending);
        WriteBatch { progress, outcomes, may_unblock: self.may_have_waiting }
    }

    /// Adds the content of a failed write to the next one, before the outcomes that were added since.
    pub(in crate::deliveries) fn restore(&mut self, batch: WriteBatch) {
        let WriteBatch { progress, mut outcomes, may_unblock: _ } = batch;
        self.written_to = progress.expected_delivered_through;
        self.written_failing_since = progress.expected_failing_since;
        self.must_check = true;
        outcomes.append(&mut self.unwritten);
        self.unwritten = outcomes;
    }
}

/// The outcome of a delivery, as it is written.
pub(super) fn outcome_of(
    event: &OutgoingEvent,
    status: DeliveryStatus,
    tries: i32,
    attempt: Option<Attempt>,
    next_attempt_at: Option<DateTime<Utc>>,
) -> DeliveryOutcome {
    DeliveryOutcome {
        event_id: event.id,
        kind: event.kind.clone(),
        lane: event.lane.clone(),
        status,
        tries,
        attempt,
        next_attempt_at,
        created_at: event.created_at,
    }
}
