use std::collections::{BTreeMap, HashSet};

use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn outgoing(id: i64, lane: &str) -> OutgoingEvent {
    let (kind, lane) = ("ticket.read".to_owned(), lane.to_owned());
    OutgoingEvent { id, kind, lane, created_at: START, json: Bytes::from_static(b"{}") }
}

fn attempt() -> Attempt {
    Attempt { at: String::new(), status: None, error: None, duration_ms: 1 }
}

fn accept(queue: &mut DeliveryQueue, event: i64) {
    let outcome = queue.finish(event, Verdict::Accepted, attempt(), &RetryPolicy::default(), START);
    assert_eq!(outcome, (DeliveryStatus::Delivered, Consequence::None));
}

fn start_all(queue: &mut DeliveryQueue) -> Vec<i64> {
    std::iter::from_fn(|| queue.start_next()).map(|event| event.id).collect()
}

#[test]
fn one_event_of_a_record_is_attempted_at_a_time_and_records_are_concurrent() {
    let mut queue = DeliveryQueue::new(0, None);
    let events =
        vec![outgoing(1, "ticket:1"), outgoing(2, "ticket:2"), outgoing(3, "ticket:1"), outgoing(5, "ticket:1")];
    queue.push_page(events, 6, &HashSet::new(), START);
    assert_eq!(start_all(&mut queue), [1, 2]);
    accept(&mut queue, 2);
    assert!(start_all(&mut queue).is_empty());
    accept(&mut queue, 1);
    assert_eq!(start_all(&mut queue), [3]);
    let batch = queue.take_batch();
    assert_eq!(batch.progress.delivered_through, 2, "3 is neither done nor in the table");
    assert_eq!(batch.outcomes.len(), 2);
    accept(&mut queue, 3);
    assert_eq!(start_all(&mut queue), [5]);
    accept(&mut queue, 5);
    assert_eq!(queue.take_batch().progress.delivered_through, 6, "the log was read up to 6");
    assert!(!queue.has_batch());
}

#[test]
fn a_failed_delivery_waits_in_the_table_with_the_later_ones_of_its_record() {
    let mut queue = DeliveryQueue::new(0, None);
    queue.push_page(vec![outgoing(1, "a"), outgoing(2, "a"), outgoing(3, "b")], 3, &HashSet::new(), START);
    assert_eq!(start_all(&mut queue), [1, 3]);
    let outcome = queue.finish(1, Verdict::Refused, attempt(), &RetryPolicy::default(), START);
    assert_eq!(outcome, (DeliveryStatus::Pending, Consequence::None));
    accept(&mut queue, 3);
    // A new event of the record waits in the table too, even before the others are written.
    queue.push_page(vec![outgoing(4, "a")], 4, &HashSet::new(), START);
    assert!(start_all(&mut queue).is_empty());
    let batch = queue.take_batch();
    let written: Vec<_> = batch.outcomes.iter().map(|o| (o.event_id, o.status, o.next_attempt_at.is_some())).collect();
    use DeliveryStatus::{Delivered, Pending};
    assert_eq!(written, [(1, Pending, true), (2, Pending, false), (3, Delivered, false), (4, Pending, false)]);
    assert_eq!((batch.progress.delivered_through, batch.may_unblock), (4, true));
    assert!(queue.event_ids().is_empty());
}

#[test]
fn a_failing_endpoint_gets_one_delivery_at_a_time_and_more_after_it_recovers() {
    let mut queue = DeliveryQueue::new(0, None);
    let events = (1..=100).map(|event| outgoing(event, &event.to_string())).collect();
    queue.push_page(events, 100, &HashSet::new(), START);
    let first = start_all(&mut queue);
    assert_eq!(first.len(), UNDER_WAY_INITIAL);
    for event in first {
        queue.finish(event, Verdict::Refused, attempt(), &RetryPolicy::default(), START);
    }
    let next = start_all(&mut queue);
    assert_eq!(next.len(), 1);
    accept(&mut queue, next[0]);
    assert_eq!(start_all(&mut queue).len(), 2);
}

#[test]
fn an_endpoint_is_disabled_after_410_or_five_days_of_failures() {
    let retry_policy = RetryPolicy::default();
    let mut queue = DeliveryQueue::new(0, None);
    queue.push_page(vec![outgoing(1, "a"), outgoing(2, "b"), outgoing(3, "c")], 3, &HashSet::new(), START);
    start_all(&mut queue);
    let (_, consequence) = queue.finish(1, Verdict::Gone, attempt(), &retry_policy, START);
    assert_eq!(consequence, Consequence::Disable(DisableReason::Gone));
    // Other deliveries fail in between.
    let consequence_of_failure = |queue: &mut DeliveryQueue, event: i64, after: TimeDelta| {
        queue.finish(event, Verdict::Refused, attempt(), &retry_policy, START + after).1
    };
    for (event, day) in (10..).zip(1..5) {
        fail_new_event(&mut queue, event, START + TimeDelta::days(day));
    }
    let just_before = TimeDelta::days(5) - TimeDelta::seconds(1);
    assert_eq!(consequence_of_failure(&mut queue, 2, just_before), Consequence::None);
    let consequence = consequence_of_failure(&mut queue, 3, TimeDelta::days(5));
    assert_eq!(consequence, Consequence::Disable(DisableReason::FailingSince(START)));
}

/// Adds an event of a new record, and fails its attempt. Returns the consequence for the webhook.
fn fail_new_event(queue: &mut DeliveryQueue, event: i64, now: DateTime<Utc>) -> Consequence {
    queue.push_page(vec![outgoing(event, &event.to_string())], event, &HashSet::new(), now);
    start_all(queue);
    queue.finish(event, Verdict::Refused, attempt(), &RetryPolicy::default(), now).1
}

#[test]
fn a_failure_after_weeks_without_an_attempt_begins_a_new_failure_period() {
    let weeks = |weeks: i64| START + TimeDelta::weeks(weeks);
    let mut queue = DeliveryQueue::new(0, None);
    assert_eq!(fail_new_event(&mut queue, 1, START), Consequence::None);
    assert_eq!(fail_new_event(&mut queue, 2, weeks(3)), Consequence::None, "no attempt for three weeks");
    assert_eq!(queue.take_batch().progress.failing_since, Some(weeks(3)));
    // The same for a failure that was written before the service was started.
    let failing = FailurePeriod { since: START, last_failed_at: START + TimeDelta::days(3) };
    let mut queue = DeliveryQueue::new(0, Some(failing));
    assert!(!queue.has_batch());
    assert_eq!(fail_new_event(&mut queue, 1, weeks(3)), Consequence::None);
    let mut queue = DeliveryQueue::new(0, Some(failing));
    let day_five = START + TimeDelta::days(5);
    assert_eq!(fail_new_event(&mut queue, 1, day_five - TimeDelta::hours(20)), Consequence::None);
    assert_eq!(fail_new_event(&mut queue, 2, day_five), Consequence::Disable(DisableReason::FailingSince(START)));
}

#[test]
fn after_a_failure_is_cleared_the_next_one_begins_a_new_failure_period() {
    let failing = FailurePeriod { since: START - TimeDelta::days(6), last_failed_at: START };
    let mut queue = DeliveryQueue::new(0, Some(failing));
    queue.clear_failure();
    assert!(queue.has_batch(), "the cleared failure must be written");
    assert_eq!(queue.take_batch().progress.failing_since, None);
    assert_eq!(fail_new_event(&mut queue, 1, START), Consequence::None);
    assert_eq!(queue.take_batch().progress.failing_since, Some(START));
}

#[test]
fn a_failure_that_was_cleared_in_the_table_is_over_and_one_whose_write_fails_is_not() {
    let failing = FailurePeriod { since: START - TimeDelta::days(4), last_failed_at: START };
    let periods = |batch: &WriteBatch| (batch.progress.expected_failing_since, batch.progress.failing_since);
    let mut queue = DeliveryQueue::new(0, Some(failing));
    fail_new_event(&mut queue, 1, START);
    let batch = queue.take_batch();
    assert_eq!(periods(&batch), (Some(failing.since), Some(failing.since)));
    queue.restore(batch);
    let batch = queue.take_batch();
    assert_eq!(periods(&batch), (Some(failing.since), Some(failing.since)), "after a write that has failed");
    // A test of the webhook has cleared the failure before this write.
    queue.note_stored_failure(None);
    fail_new_event(&mut queue, 2, START);
    assert_eq!(periods(&queue.take_batch()), (None, Some(START)), "the next failure begins a new period");
    queue.note_stored_failure(Some(START));
    assert!(!queue.has_batch(), "it is in the table");
}

#[test]
fn a_delivery_fails_after_its_last_retry_and_may_unblock_its_record() {
    let retry_policy = RetryPolicy { pauses: vec![std::time::Duration::from_secs(1)], ..RetryPolicy::default() };
    let mut queue = DeliveryQueue::new(2, None);
    let due =
        DueDelivery { event_id: 1, kind: "ticket.read".to_owned(), lane: "a".to_owned(), tries: 1, created_at: START };
    queue.push_due(&due, outgoing(1, "a"), START);
    assert_eq!(start_all(&mut queue), [1]);
    let outcome = queue.finish(1, Verdict::Refused, attempt(), &retry_policy, START);
    assert_eq!(outcome, (DeliveryStatus::Failed, Consequence::None));
    let batch = queue.take_batch();
    assert_eq!((batch.outcomes[0].tries, batch.may_unblock), (2, true));
}

#[test]
fn a_check_requested_during_a_write_that_found_nothing_waiting_is_made() {
    let mut queue = DeliveryQueue::new(0, None);
    assert!(queue.take_batch().may_unblock);
    queue.request_check();
    queue.clear_waiting();
    assert!(queue.must_check() && queue.has_batch());
    assert!(queue.take_batch().may_unblock, "the next write does not query what is waiting");
    queue.clear_waiting();
    assert!(!queue.may_have_waiting() && !queue.has_batch(), "nothing is waiting");
}

#[test]
fn a_withheld_event_fails_without_effect_on_the_endpoint() {
    let mut queue = DeliveryQueue::new(0, None);
    queue.push_page(vec![outgoing(1, "a"), outgoing(2, "a")], 2, &HashSet::new(), START);
    assert_eq!(start_all(&mut queue), [1]);
    queue.withhold(1, "not for this one", START);
    assert_eq!(start_all(&mut queue), [2], "the next event of its record is attempted");
    let batch = queue.take_batch();
    let outcomes: Vec<_> = batch.outcomes.iter().map(|o| (o.event_id, o.status, o.tries)).collect();
    assert_eq!(outcomes, [(1, DeliveryStatus::Failed, 0)]);
    let error = batch.outcomes[0].attempt.as_ref().and_then(|attempt| attempt.error.as_deref());
    assert_eq!(error, Some("not for this one"));
    assert_eq!(batch.progress.failing_since, None);
}

#[test]
fn an_event_that_is_withheld_or_expires_after_a_failed_attempt_is_not_a_new_failure_of_its_endpoint() {
    let due = |event_id: i64| DueDelivery {
        event_id,
        kind: "ticket.read".to_owned(),
        lane: event_id.to_string(),
        tries: 3,
        created_at: START,
    };
    let mut queue = DeliveryQueue::new(2, None);
    queue.push_due(&due(1), outgoing(1, "1"), START);
    assert_eq!(start_all(&mut queue), [1]);
    queue.withhold(1, "not for this one", START);
    queue.expire(due(2), "expired", START);
    let batch = queue.take_batch();
    // The time of the last failure is that of a delivery with attempts.
    let outcomes: Vec<_> = batch.outcomes.iter().map(|o| (o.event_id, o.status, o.tries)).collect();
    assert_eq!(outcomes, [(1, DeliveryStatus::Failed, 0), (2, DeliveryStatus::Failed, 0)]);
}

#[test]
fn memory_is_bounded_by_events_and_by_bytes() {
    let mut queue = DeliveryQueue::new(0, None);
    let large = OutgoingEvent { json: Bytes::from(vec![b'x'; BYTES_MAX]), ..outgoing(1, "a") };
    queue.push_page(vec![large], 1, &HashSet::new(), START);
    assert_eq!(queue.room(), 0);
    start_all(&mut queue);
    accept(&mut queue, 1);
    assert_eq!(queue.room(), EVENTS_MAX);
}

#[test]
fn after_spilling_all_events_no_delivered_event_is_after_the_position() {
    use DeliveryStatus::{Delivered, Pending};
    let mut queue = DeliveryQueue::new(0, None);
    let events = vec![outgoing(1, "a"), outgoing(2, "a"), outgoing(3, "b"), outgoing(4, "c")];
    queue.push_page(events, 5, &HashSet::new(), START);
    assert_eq!(start_all(&mut queue), [1, 3, 4]);
    accept(&mut queue, 3);
    queue.spill_all(START);
    let batch = queue.take_batch();
    let written: Vec<_> = batch.outcomes.iter().map(|o| (o.event_id, o.status, o.next_attempt_at.is_some())).collect();
    // Event 2 waits for event 1 of its record.
    assert_eq!(written, [(3, Delivered, false), (1, Pending, true), (2, Pending, false), (4, Pending, true)]);
    assert_eq!(batch.progress.delivered_through, 5);
    assert!(!queue.is_empty());
    accept(&mut queue, 1);
    accept(&mut queue, 4);
    assert_eq!(start_all(&mut queue), [2]);
    accept(&mut queue, 2);
    assert_eq!(queue.take_batch().outcomes.len(), 3);
    assert!(queue.is_empty());
}

/// The table, with the semantics of the real one (`deliveries.rs` of the tables).
#[derive(Default)]
struct FakeTable {
    delivered_through: i64,
    rows: BTreeMap<i64, TableRow>,
}

#[derive(Debug)]
struct TableRow {
    lane: String,
    status: DeliveryStatus,
    tries: i32,
    due_at: Option<DateTime<Utc>>,
}

impl FakeTable {
    fn record(&mut self, batch: &WriteBatch, now: DateTime<Utc>) {
        assert_eq!(self.delivered_through, batch.progress.expected_delivered_through);
        self.delivered_through = batch.progress.delivered_through;
        for outcome in &batch.outcomes {
            let (lane, due_at) = (outcome.lane.clone(), outcome.next_attempt_at);
            let row = TableRow { lane, status: outcome.status, tries: outcome.tries, due_at };
            self.rows.insert(outcome.event_id, row);
        }
        let finished =
            batch.outcomes.iter().filter(|outcome| outcome.status != DeliveryStatus::Pending && batch.may_unblock);
        for lane in finished.map(|outcome| outcome.lane.clone()).collect::<HashSet<_>>() {
            let first = self.rows.values_mut().find(|row| row.lane == lane && row.status == DeliveryStatus::Pending);
            if let Some(TableRow { due_at: due_at @ None, .. }) = first {
                *due_at = Some(now);
            }
        }
    }

    fn busy_lanes(&self, read_to: i64) -> HashSet<String> {
        let rows = self.rows.iter();
        let pending = rows.filter(|(event, row)| **event <= read_to && row.status == DeliveryStatus::Pending);
        pending.map(|(_, row)| row.lane.clone()).collect()
    }

    fn has_waiting(&self, read_to: i64) -> bool {
        self.rows.iter().any(|(event, row)| *event <= read_to && row.status == DeliveryStatus::Pending)
    }

    fn due_deliveries(&self, now: DateTime<Utc>, read_to: i64, in_memory: &[i64]) -> Vec<DueDelivery> {
        let due = self.rows.iter().filter(|(event, row)| {
            row.status == DeliveryStatus::Pending
                && row.due_at.is_some_and(|at| at <= now)
                && **event <= read_to
                && !in_memory.contains(event)
        });
        due.map(|(event, row)| DueDelivery {
            event_id: *event,
            kind: "ticket.read".to_owned(),
            lane: row.lane.clone(),
            tries: row.tries,
            created_at: START,
        })
        .take(4)
        .collect()
    }
}

/// Random events, failures, database outages and kills: in the end all events have arrived, those of one record in
/// order.
#[test]
fn every_event_arrives_and_the_events_of_a_record_in_order() {
    // Longer than any of these runs: nothing fails permanently.
    let retry_policy = RetryPolicy {
        pauses: vec![std::time::Duration::from_secs(5); 1_000],
        failing_max: TimeDelta::days(1_000),
        ..RetryPolicy::default()
    };
    for seed in 0..1_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let last = random.random_range(1..80);
        let log: Vec<OutgoingEvent> =
            (1..=last).map(|event| outgoing(event, &format!("l{}", random.random_range(0..8)))).collect();
        let (mut table, mut now) = (FakeTable::default(), START);
        let mut queue = DeliveryQueue::new(0, None);
        let mut under_way: Vec<i64> = Vec::new();
        let mut arrived: Vec<i64> = Vec::new();
        let mut is_killed = false;
        for step in 0..100_000 {
            // From here on nothing fails, so that every event arrives.
            let is_calm = step > 600;
            match random.random_range(0..100) {
                0..=19 => {
                    let after = queue.read_to;
                    let page = log.iter().filter(|event| event.id > after).take(random.random_range(1..9));
                    let page: Vec<OutgoingEvent> = page.cloned().collect();
                    if let Some(to) = page.last().map(|event| event.id) {
                        let busy = table.busy_lanes(after);
                        queue.push_page(page, to, &busy, now);
                    }
                }
                // As the courier does, only if deliveries may be waiting.
                20..=29 if queue.may_have_waiting() => {
                    for due in table.due_deliveries(now, queue.read_to(), &queue.event_ids()) {
                        let event = log[usize::try_from(due.event_id - 1).expect("an index")].clone();
                        queue.push_due(&due, event, now);
                    }
                }
                30..=49 => under_way.extend(queue.start_next().map(|event| event.id)),
                50..=74 if !under_way.is_empty() => {
                    let event = under_way.swap_remove(random.random_range(0..under_way.len()));
                    let is_accepted = is_calm || random.random_bool(0.6);
                    if is_accepted {
                        arrived.push(event);
                    }
                    let verdict = if is_accepted { Verdict::Accepted } else { Verdict::Refused };
                    queue.finish(event, verdict, attempt(), &retry_policy, now);
                }
                75..=84 => {
                    if queue.has_batch() {
                        let batch = queue.take_batch();
                        if is_calm || random.random_bool(0.8) {
                            table.record(&batch, now);
                            if batch.may_unblock && !table.has_waiting(queue.read_to()) {
                                queue.clear_waiting();
                            }
                        } else {
                            queue.restore(batch);
                        }
                    }
                }
                85..=89 => drop(queue.spill_old(now)),
                90 if !is_calm => {
                    // Killed: running attempts may have arrived.
                    is_killed = true;
                    arrived.extend(under_way.drain(..).filter(|_| random.random_bool(0.5)));
                    queue = DeliveryQueue::new(table.delivered_through, None);
                }
                91 if !is_calm => {
                    // The courier retires: running attempts are answered, or canceled before they arrive.
                    for event in under_way.drain(..).filter(|_| random.random_bool(0.7)).collect::<Vec<_>>() {
                        arrived.push(event);
                        queue.finish(event, Verdict::Accepted, attempt(), &retry_policy, now);
                    }
                    queue.spill_all(now);
                    if queue.has_batch() {
                        table.record(&queue.take_batch(), now);
                    }
                    queue = DeliveryQueue::new(table.delivered_through, None);
                    assert_eq!(queue.read_to(), table.delivered_through);
                    let repeated: Vec<i64> = arrived
                        .iter()
                        .copied()
                        .filter(|event| {
                            *event > table.delivered_through
                                || table.rows.get(event).is_some_and(|row| row.status == DeliveryStatus::Pending)
                        })
                        .collect();
                    assert!(is_killed || repeated.is_empty(), "seed {seed}: {repeated:?} is sent again");
                }
                _ => now += TimeDelta::milliseconds(random.random_range(0..3_000)),
            }
            let is_delivered =
                |event: i64| table.rows.get(&event).is_some_and(|row| row.status == DeliveryStatus::Delivered);
            let are_all_written = table.delivered_through == last && (1..=last).all(is_delivered);
            if are_all_written {
                break;
            }
            assert!(step < 99_999, "seed {seed}: {:?} of {last}, {:?}, {queue:?}", table.delivered_through, table.rows);
        }
        for lane in log.iter().map(|event| &event.lane).collect::<HashSet<_>>() {
            let expected: Vec<i64> = log.iter().filter(|event| event.lane == *lane).map(|event| event.id).collect();
            // The order of first arrivals: events may arrive repeatedly.
            let mut first_arrivals: Vec<i64> = Vec::new();
            for event in arrived.iter().filter(|event| expected.contains(event)) {
                if !first_arrivals.contains(event) {
                    first_arrivals.push(*event);
                }
            }
            assert_eq!(first_arrivals, expected, "seed {seed}, {lane}");
        }
    }
}
