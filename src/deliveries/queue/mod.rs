//! The deliveries of one webhook that are in memory, and the outcomes that must be written. Plain data: it does no I/O
//! and reads no clock.
//!
//! Events come from the log in order and go into lanes, one per record; in each lane, one delivery is attempted at a
//! time. A failed delivery goes to the table together with all that follow it in its lane, and returns when it is due.
//! So memory contains only deliveries that were never attempted, and those being attempted.

mod batch;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use hotline_persistence::tables::webhooks::deliveries::{Attempt, DeliveryOutcome, DeliveryStatus, DueDelivery};

pub(super) use self::batch::WriteBatch;
use self::batch::outcome_of;
use crate::webhooks::{RetryPolicy, Verdict};

/// Concurrent attempts for one endpoint: initially, and at most. One that responds in 20 ms handles 1,600 a second.
const UNDER_WAY_INITIAL: usize = 16;
const UNDER_WAY_MAX: usize = 32;

/// Events of one endpoint in memory, and their total size, above which no more are read: enough for a hundred
/// milliseconds of deliveries.
const EVENTS_MAX: usize = 256;
const BYTES_MAX: usize = 1 << 20;

/// Number of unwritten outcomes above which nothing more is attempted: the database is unavailable, and unwritten
/// deliveries are repeated if the process is killed.
const UNWRITTEN_MAX: usize = 256;

/// The number of attempts that is stored for a withheld or expired delivery, even if it had some: its endpoint did not
/// fail, and rows with 0 are skipped when the time of the endpoint's last failure is read.
const NO_TRIES: i32 = 0;

/// An event, serialized for delivery.
#[derive(Clone, Debug)]
pub(super) struct OutgoingEvent {
    pub(super) id: i64,
    pub(super) kind: String,
    /// The record that the event is about.
    pub(super) lane: String,
    pub(super) created_at: DateTime<Utc>,
    pub(super) json: Bytes,
}

#[derive(Debug)]
struct QueuedEvent {
    event: OutgoingEvent,
    /// Number of failed attempts.
    tries: i32,
    /// Whether it is in the table.
    is_in_table: bool,
    /// When it was added to memory.
    added_at: DateTime<Utc>,
}

/// What an attempt means for its webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing beyond the outcome itself.
    None,
    /// The endpoint no longer exists, or has failed for too long.
    Disable(DisableReason),
}

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisableReason {
    Gone,
    FailingSince(DateTime<Utc>),
}

/// A period in which every attempt at an endpoint has failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailurePeriod {
    pub(super) since: DateTime<Utc>,
    /// Its last failure.
    pub(super) last_failed_at: DateTime<Utc>,
}

/// The deliveries of one webhook.
#[derive(Debug)]
pub(super) struct DeliveryQueue {
    events: BTreeMap<i64, QueuedEvent>,
    bytes: usize,
    /// The events in memory, by lane.
    lanes: HashMap<String, BTreeSet<i64>>,
    /// The first event of each lane in which no attempt is running.
    ready: BTreeSet<i64>,
    under_way: HashSet<i64>,
    under_way_max: usize,
    unwritten: Vec<DeliveryOutcome>,
    /// The position up to which the log was read.
    read_to: i64,
    /// The position that was written last.
    written_to: i64,
    failing: Option<FailurePeriod>,
    /// The start of `failing` in the table when it was last read or written.
    written_failing_since: Option<DateTime<Utc>>,
    /// Whether the table may contain waiting deliveries.
    may_have_waiting: bool,
    /// Whether the next batch is written at once, even if empty: the write checks the position and the waiting
    /// deliveries.
    must_check: bool,
}

impl DeliveryQueue {
    /// Continues from the written position.
    pub(super) fn new(delivered_through: i64, failing: Option<FailurePeriod>) -> Self {
        Self {
            events: BTreeMap::new(),
            bytes: 0,
            lanes: HashMap::new(),
            ready: BTreeSet::new(),
            under_way: HashSet::new(),
            under_way_max: UNDER_WAY_INITIAL,
            unwritten: Vec::new(),
            read_to: delivered_through,
            written_to: delivered_through,
            failing,
            written_failing_since: failing.map(|failing| failing.since),
            may_have_waiting: true,
            must_check: false,
        }
    }

    /// How many more events may be read.
    pub(super) fn room(&self) -> usize {
        if self.bytes >= BYTES_MAX || self.unwritten.len() >= UNWRITTEN_MAX {
            return 0;
        }
        EVENTS_MAX.saturating_sub(self.events.len())
    }

    /// The position up to which the log was read; later events in the table are read again.
    pub(super) fn read_to(&self) -> i64 {
        self.read_to
    }

    /// The events in memory, and those with unwritten outcomes: their rows in the table are not due.
    pub(super) fn event_ids(&self) -> Vec<i64> {
        let unwritten = self.unwritten.iter().map(|outcome| outcome.event_id);
        self.events.keys().copied().chain(unwritten).collect()
    }

    /// The creation time of the oldest event in memory.
    pub(super) fn oldest(&self) -> Option<DateTime<Utc>> {
        self.events.first_key_value().map(|(_, queued)| queued.event.created_at)
    }

    /// Adds the next events of the log, which was read up to `read_to`. Events of lanes that are `busy` in the table
    /// wait there.
    pub(super) fn push_page(
        &mut self,
        events: Vec<OutgoingEvent>,
        read_to: i64,
        busy: &HashSet<String>,
        now: DateTime<Utc>,
    ) {
        for event in events {
            let is_lane_deferred = self
                .unwritten
                .iter()
                .any(|outcome| outcome.lane == event.lane && outcome.status == DeliveryStatus::Pending);
            let must_wait = is_lane_deferred || busy.contains(&event.lane);
            if must_wait && !self.has_unsaved_event(&event.lane) {
                self.unwritten.push(outcome_of(&event, DeliveryStatus::Pending, 0, None, None));
            } else {
                self.insert_event(QueuedEvent { event, tries: 0, is_in_table: false, added_at: now });
            }
        }
        self.read_to = self.read_to.max(read_to);
    }

    /// Whether a lane has an event in memory that is not in the table: then the events after it are in memory too.
    fn has_unsaved_event(&self, lane: &str) -> bool {
        let queued = self.lanes.get(lane).into_iter().flatten();
        queued.into_iter().any(|id| self.events.get(id).is_some_and(|queued| !queued.is_in_table))
    }

    /// Adds a delivery from the table that is due.
    pub(super) fn push_due(&mut self, due: &DueDelivery, event: OutgoingEvent, now: DateTime<Utc>) {
        if !self.events.contains_key(&due.event_id) {
            self.insert_event(QueuedEvent { event, tries: due.tries, is_in_table: true, added_at: now });
        }
    }

    /// Fails a due delivery whose event is no longer in the log.
    pub(super) fn expire(&mut self, due: DueDelivery, reason: &str, now: DateTime<Utc>) {
        let attempt = failure_without_attempt(reason, now);
        self.unwritten.push(DeliveryOutcome {
            event_id: due.event_id,
            kind: due.kind,
            lane: due.lane,
            status: DeliveryStatus::Failed,
            tries: NO_TRIES,
            attempt: Some(attempt),
            next_attempt_at: None,
            created_at: due.created_at,
        });
        self.may_have_waiting = true;
    }

    fn insert_event(&mut self, queued: QueuedEvent) {
        let id = queued.event.id;
        let lane = self.lanes.entry(queued.event.lane.clone()).or_default();
        lane.insert(id);
        // One attempt at a time per lane. A delivery from the table precedes the later events of its lane.
        let is_idle = lane.iter().all(|other| !self.under_way.contains(other));
        if is_idle && lane.first() == Some(&id) {
            if let Some(next) = lane.iter().nth(1) {
                self.ready.remove(next);
            }
            self.ready.insert(id);
        }
        self.bytes += queued.event.json.len();
        self.events.insert(id, queued);
    }

    fn remove_event(&mut self, id: i64) -> Option<QueuedEvent> {
        let queued = self.events.remove(&id)?;
        self.bytes = self.bytes.saturating_sub(queued.event.json.len());
        self.ready.remove(&id);
        if let Some(lane) = self.lanes.get_mut(&queued.event.lane) {
            lane.remove(&id);
            if lane.is_empty() {
                self.lanes.remove(&queued.event.lane);
            }
        }
        Some(queued)
    }

    /// Whether an attempt could be started now.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty() && self.under_way.len() < self.under_way_max && self.unwritten.len() < UNWRITTEN_MAX
    }

    /// The next delivery to attempt, the oldest first.
    pub(super) fn start_next(&mut self) -> Option<OutgoingEvent> {
        if !self.has_ready() {
            return None;
        }
        let id = self.ready.pop_first()?;
        let event = self.events.get(&id)?.event.clone();
        self.under_way.insert(id);
        Some(event)
    }

    /// Records the outcome of an attempt; returns the new status of the delivery, and the consequence for the webhook.
    pub(super) fn finish(
        &mut self,
        id: i64,
        verdict: Verdict,
        attempt: Attempt,
        retry_policy: &RetryPolicy,
        now: DateTime<Utc>,
    ) -> (DeliveryStatus, Consequence) {
        self.under_way.remove(&id);
        let Some(QueuedEvent { event, tries, .. }) = self.remove_event(id) else {
            return (DeliveryStatus::Failed, Consequence::None);
        };
        if verdict == Verdict::Accepted {
            self.failing = None;
            self.under_way_max = (self.under_way_max + 1).min(UNDER_WAY_MAX);
            self.unwritten.push(outcome_of(&event, DeliveryStatus::Delivered, tries, Some(attempt), None));
            self.advance_lane(&event.lane);
            return (DeliveryStatus::Delivered, Consequence::None);
        }
        // An endpoint that fails gets fewer concurrent attempts, down to one.
        self.under_way_max = (self.under_way_max / 2).max(1);
        let since = self.record_failure(retry_policy, now);
        let consequence = match verdict {
            Verdict::Gone => Consequence::Disable(DisableReason::Gone),
            _ if retry_policy.must_disable(since, now) => Consequence::Disable(DisableReason::FailingSince(since)),
            _ => Consequence::None,
        };
        let next = retry_policy.next_attempt_at(tries + 1, now);
        let status = if next.is_some() { DeliveryStatus::Pending } else { DeliveryStatus::Failed };
        self.unwritten.push(outcome_of(&event, status, tries + 1, Some(attempt), next));
        match status {
            DeliveryStatus::Pending => self.defer_lane(&event.lane),
            _ => self.advance_lane(&event.lane),
        }
        (status, consequence)
    }

    /// Fails the delivery of an event that its webhook may not receive. This does not count as a failure of the
    /// endpoint, even if earlier attempts of the delivery have failed.
    pub(super) fn withhold(&mut self, id: i64, reason: &str, now: DateTime<Utc>) {
        self.under_way.remove(&id);
        let Some(QueuedEvent { event, .. }) = self.remove_event(id) else { return };
        let attempt = failure_without_attempt(reason, now);
        self.unwritten.push(outcome_of(&event, DeliveryStatus::Failed, NO_TRIES, Some(attempt), None));
        self.advance_lane(&event.lane);
    }

    /// Records a failure of the endpoint, and returns when its failures began. If its last failure is too long ago, a
    /// new period begins: nothing was sent meanwhile.
    fn record_failure(&mut self, retry_policy: &RetryPolicy, now: DateTime<Utc>) -> DateTime<Utc> {
        let before = self.failing.filter(|failing| retry_policy.is_same_period(failing.last_failed_at, now));
        let since = before.map_or(now, |failing| failing.since);
        self.failing = Some(FailurePeriod { since, last_failed_at: now });
        since
    }

    /// Ends the failure period, because the endpoint has recovered or its URL has changed.
    pub(super) fn clear_failure(&mut self) {
        self.failing = None;
    }

    /// Records when the endpoint's failures began according to the table, after a write. If the table has no failure
    /// although one was written, it was cleared meanwhile, and the next failure begins a new period.
    pub(super) fn note_stored_failure(&mut self, stored: Option<DateTime<Utc>>) {
        if stored.is_none() && self.failing_since() == self.written_failing_since {
            self.failing = None;
        }
        self.written_failing_since = stored;
    }

    fn failing_since(&self) -> Option<DateTime<Utc>> {
        self.failing.map(|failing| failing.since)
    }

    /// Makes the first delivery of a lane ready.
    fn advance_lane(&mut self, lane: &str) {
        if let Some(first) = self.lanes.get(lane).and_then(BTreeSet::first) {
            self.ready.insert(*first);
        }
    }

    /// Moves all deliveries of a lane to the table.
    fn defer_lane(&mut self, lane: &str) {
        let events: Vec<i64> = self.lanes.get(lane).into_iter().flatten().copied().collect();
        for id in events {
            if let Some(QueuedEvent { event, tries, .. }) = self.remove_event(id) {
                self.unwritten.push(outcome_of(&event, DeliveryStatus::Pending, tries, None, None));
            }
        }
    }

    /// Requests a write at once, because the tables were changed: waiting deliveries may be due, or the position may
    /// have changed.
    pub(super) fn request_check(&mut self) {
        self.must_check = true;
        self.may_have_waiting = true;
    }

    /// Whether the next batch must be written at once, to check the tables.
    pub(super) fn must_check(&self) -> bool {
        self.must_check
    }

    /// Requests a write, which also queries the waiting deliveries.
    pub(super) fn request_due_check(&mut self) {
        self.must_check = true;
    }

    /// Whether the table may contain waiting deliveries.
    pub(super) fn may_have_waiting(&self) -> bool {
        self.may_have_waiting
    }

    /// Records that the table contained no waiting deliveries of the events read so far, after the last write. If a
    /// check was requested since, the table may have changed after the write read it.
    pub(super) fn clear_waiting(&mut self) {
        let has_pending = self.unwritten.iter().any(|outcome| outcome.status == DeliveryStatus::Pending);
        self.may_have_waiting = self.must_check || has_pending;
    }

    /// The number of unwritten outcomes.
    pub(super) fn unwritten_count(&self) -> usize {
        self.unwritten.len()
    }

    /// Whether nothing is in memory: neither events nor unwritten outcomes.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.unwritten.is_empty()
    }
}

/// The attempt that is stored for a delivery that failed without one.
fn failure_without_attempt(reason: &str, now: DateTime<Utc>) -> Attempt {
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
