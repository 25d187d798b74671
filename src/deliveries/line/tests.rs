use std::collections::{BTreeMap, HashSet};

use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;

const START: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn letter(event: i64, lane: &str) -> Letter {
    let (kind, lane) = ("ticket.read".to_owned(), lane.to_owned());
    Letter { event, kind, lane, created_at: START, json: Bytes::from_static(b"{}") }
}

fn attempt() -> Attempt {
    Attempt { at: String::new(), status: None, error: None, duration_ms: 1 }
}

fn taken(line: &mut Line, event: i64) {
    let ended = line.ended(event, Verdict::Taken, attempt(), &Plan::default(), START);
    assert_eq!(ended, (DeliveryStatus::Delivered, Consequence::None));
}

fn next(line: &mut Line) -> Vec<i64> {
    std::iter::from_fn(|| line.next()).map(|letter| letter.event).collect()
}

#[test]
fn of_one_record_one_event_is_tried_at_a_time_and_of_many_many() {
    let mut line = Line::new(0, None);
    let letters = vec![letter(1, "ticket:1"), letter(2, "ticket:2"), letter(3, "ticket:1"), letter(5, "ticket:1")];
    line.take(letters, 6, &HashSet::new(), START);
    assert_eq!(next(&mut line), [1, 2]);
    taken(&mut line, 2);
    assert!(next(&mut line).is_empty());
    taken(&mut line, 1);
    assert_eq!(next(&mut line), [3]);
    let writing = line.writing();
    assert_eq!(writing.standing.told_to, 2, "3 is neither done nor in the table");
    assert_eq!(writing.outcomes.len(), 2);
    taken(&mut line, 3);
    assert_eq!(next(&mut line), [5]);
    taken(&mut line, 5);
    assert_eq!(line.writing().standing.told_to, 6, "of the other types nothing waits");
    assert!(!line.is_unwritten());
}

#[test]
fn what_fails_waits_in_the_table_with_all_that_follows_it() {
    let mut line = Line::new(0, None);
    line.take(vec![letter(1, "a"), letter(2, "a"), letter(3, "b")], 3, &HashSet::new(), START);
    assert_eq!(next(&mut line), [1, 3]);
    let ended = line.ended(1, Verdict::Refused, attempt(), &Plan::default(), START);
    assert_eq!(ended, (DeliveryStatus::Pending, Consequence::None));
    taken(&mut line, 3);
    // New events wait behind the others, even while nothing is written yet.
    line.take(vec![letter(4, "a")], 4, &HashSet::new(), START);
    assert!(next(&mut line).is_empty());
    let writing = line.writing();
    let written: Vec<_> =
        writing.outcomes.iter().map(|o| (o.event_id, o.status, o.next_attempt_at.is_some())).collect();
    use DeliveryStatus::{Delivered, Pending};
    assert_eq!(written, [(1, Pending, true), (2, Pending, false), (3, Delivered, false), (4, Pending, false)]);
    assert_eq!((writing.standing.told_to, writing.frees), (4, true));
    assert!(line.held().is_empty());
}

#[test]
fn an_endpoint_that_fails_is_asked_by_one_at_a_time_and_one_that_answers_again_by_more() {
    let mut line = Line::new(0, None);
    let letters = (1..=100).map(|event| letter(event, &event.to_string())).collect();
    line.take(letters, 100, &HashSet::new(), START);
    let first = next(&mut line);
    assert_eq!(first.len(), UNDER_WAY_FIRST);
    for event in first {
        line.ended(event, Verdict::Refused, attempt(), &Plan::default(), START);
    }
    let one = next(&mut line);
    assert_eq!(one.len(), 1);
    taken(&mut line, one[0]);
    assert_eq!(next(&mut line).len(), 2);
}

#[test]
fn an_endpoint_is_switched_off_when_it_is_gone_or_has_failed_for_five_days() {
    let plan = Plan::default();
    let mut line = Line::new(0, None);
    line.take(vec![letter(1, "a"), letter(2, "b"), letter(3, "c")], 3, &HashSet::new(), START);
    next(&mut line);
    let (_, gone) = line.ended(1, Verdict::Gone, attempt(), &plan, START);
    assert_eq!(gone, Consequence::SwitchOff(Why::Gone));
    // Others fail all the while.
    let failed = |line: &mut Line, event: i64, after: TimeDelta| {
        line.ended(event, Verdict::Refused, attempt(), &plan, START + after).1
    };
    for (event, day) in (10..).zip(1..5) {
        fail_first(&mut line, event, START + TimeDelta::days(day));
    }
    assert_eq!(failed(&mut line, 2, TimeDelta::days(5) - TimeDelta::seconds(1)), Consequence::None);
    let late = failed(&mut line, 3, TimeDelta::days(5));
    assert_eq!(late, Consequence::SwitchOff(Why::FailingSince(START)));
}

/// Has an event of its own record come and fail; what follows for the webhook.
fn fail_first(line: &mut Line, event: i64, now: DateTime<Utc>) -> Consequence {
    line.take(vec![letter(event, &event.to_string())], event, &HashSet::new(), now);
    next(line);
    line.ended(event, Verdict::Refused, attempt(), &Plan::default(), now).1
}

#[test]
fn a_failure_after_a_silence_is_the_first_and_switches_nothing_off() {
    let weeks = |weeks: i64| START + TimeDelta::weeks(weeks);
    let mut line = Line::new(0, None);
    assert_eq!(fail_first(&mut line, 1, START), Consequence::None);
    assert_eq!(fail_first(&mut line, 2, weeks(3)), Consequence::None, "nobody has asked it for three weeks");
    assert_eq!(line.writing().standing.failing_since, Some(weeks(3)));
    // The same of one that was written before the service was started.
    let failing = Failing { since: START, last: START + TimeDelta::days(3) };
    let mut line = Line::new(0, Some(failing));
    assert!(!line.is_unwritten());
    assert_eq!(fail_first(&mut line, 1, weeks(3)), Consequence::None);
    let mut line = Line::new(0, Some(failing));
    let fifth = START + TimeDelta::days(5);
    assert_eq!(fail_first(&mut line, 1, fifth - TimeDelta::hours(20)), Consequence::None);
    assert_eq!(fail_first(&mut line, 2, fifth), Consequence::SwitchOff(Why::FailingSince(START)));
}

#[test]
fn an_endpoint_that_is_forgiven_fails_from_its_next_failure_on() {
    let failing = Failing { since: START - TimeDelta::days(6), last: START };
    let mut line = Line::new(0, Some(failing));
    line.forgive();
    assert!(line.is_unwritten(), "the table is told");
    assert_eq!(line.writing().standing.failing_since, None);
    assert_eq!(fail_first(&mut line, 1, START), Consequence::None);
    assert_eq!(line.writing().standing.failing_since, Some(START));
}

#[test]
fn a_delivery_has_failed_after_its_last_attempt_and_the_next_of_its_record_is_tried() {
    let plan = Plan { pauses: vec![std::time::Duration::from_secs(1)], ..Plan::default() };
    let mut line = Line::new(2, None);
    let due = Due { event_id: 1, kind: "ticket.read".to_owned(), lane: "a".to_owned(), tries: 1, created_at: START };
    line.take_due(&due, letter(1, "a"), START);
    assert_eq!(next(&mut line), [1]);
    let ended = line.ended(1, Verdict::Refused, attempt(), &plan, START);
    assert_eq!(ended, (DeliveryStatus::Failed, Consequence::None));
    let writing = line.writing();
    assert_eq!((writing.outcomes[0].tries, writing.frees), (2, true));
}

#[test]
fn what_is_withheld_has_failed_and_says_nothing_of_the_endpoint() {
    let mut line = Line::new(0, None);
    line.take(vec![letter(1, "a"), letter(2, "a")], 2, &HashSet::new(), START);
    assert_eq!(next(&mut line), [1]);
    line.withheld(1, "not for this one", START);
    assert_eq!(next(&mut line), [2], "the next of its record is tried");
    let writing = line.writing();
    let shown: Vec<_> = writing.outcomes.iter().map(|o| (o.event_id, o.status, o.tries)).collect();
    assert_eq!(shown, [(1, DeliveryStatus::Failed, 0)]);
    let error = writing.outcomes[0].attempt.as_ref().and_then(|attempt| attempt.error.as_deref());
    assert_eq!(error, Some("not for this one"));
    assert_eq!(writing.standing.failing_since, None);
}

#[test]
fn memory_is_bounded_by_events_and_by_bytes() {
    let mut line = Line::new(0, None);
    let large = Letter { json: Bytes::from(vec![b'x'; HELD_BYTES_MAX]), ..letter(1, "a") };
    line.take(vec![large], 1, &HashSet::new(), START);
    assert_eq!(line.room(), 0);
    next(&mut line);
    taken(&mut line, 1);
    assert_eq!(line.room(), HELD_MAX);
}

#[test]
fn a_line_that_is_noted_leaves_nothing_that_was_delivered_behind_its_position() {
    use DeliveryStatus::{Delivered, Pending};
    let mut line = Line::new(0, None);
    let letters = vec![letter(1, "a"), letter(2, "a"), letter(3, "b"), letter(4, "c")];
    line.take(letters, 5, &HashSet::new(), START);
    assert_eq!(next(&mut line), [1, 3, 4]);
    taken(&mut line, 3);
    line.note_all(START);
    let writing = line.writing();
    let written: Vec<_> =
        writing.outcomes.iter().map(|o| (o.event_id, o.status, o.next_attempt_at.is_some())).collect();
    // The second waits for the first of its record.
    assert_eq!(written, [(3, Delivered, false), (1, Pending, true), (2, Pending, false), (4, Pending, true)]);
    assert_eq!(writing.standing.told_to, 5);
    assert!(!line.is_empty());
    taken(&mut line, 1);
    taken(&mut line, 4);
    assert_eq!(next(&mut line), [2]);
    taken(&mut line, 2);
    assert_eq!(line.writing().outcomes.len(), 3);
    assert!(line.is_empty());
}

/// The table, with the semantics of the real one (`deliveries.rs` of the tables).
#[derive(Default)]
struct Table {
    told_to: i64,
    rows: BTreeMap<i64, Row>,
}

/// Lane, status, attempts, due time.
type Row = (String, DeliveryStatus, i32, Option<DateTime<Utc>>);

impl Table {
    fn record(&mut self, writing: &Writing, now: DateTime<Utc>) {
        assert_eq!(self.told_to, writing.standing.from);
        self.told_to = writing.standing.told_to;
        for o in &writing.outcomes {
            self.rows.insert(o.event_id, (o.lane.clone(), o.status, o.tries, o.next_attempt_at));
        }
        let over = writing.outcomes.iter().filter(|o| o.status != DeliveryStatus::Pending && writing.frees);
        for lane in over.map(|o| o.lane.clone()).collect::<HashSet<_>>() {
            let first = self.rows.values_mut().find(|row| row.0 == lane && row.1 == DeliveryStatus::Pending);
            if let Some((_, _, _, due @ None)) = first {
                *due = Some(now);
            }
        }
    }

    fn busy(&self, read_to: i64) -> HashSet<String> {
        let pending = self.rows.iter().filter(|(event, row)| **event <= read_to && row.1 == DeliveryStatus::Pending);
        pending.map(|(_, row)| row.0.clone()).collect()
    }

    fn waits(&self, read_to: i64) -> bool {
        self.rows.iter().any(|(event, row)| *event <= read_to && row.1 == DeliveryStatus::Pending)
    }

    fn due(&self, now: DateTime<Utc>, read_to: i64, held: &[i64]) -> Vec<Due> {
        let due = self.rows.iter().filter(|(event, row)| {
            row.1 == DeliveryStatus::Pending
                && row.3.is_some_and(|at| at <= now)
                && **event <= read_to
                && !held.contains(event)
        });
        due.map(|(event, row)| Due {
            event_id: *event,
            kind: "ticket.read".to_owned(),
            lane: row.0.clone(),
            tries: row.2,
            created_at: START,
        })
        .take(4)
        .collect()
    }
}

/// Random events, failures, database outages and kills: in the end all events have arrived, those of one record in
/// order.
#[test]
fn whatever_happens_everything_arrives_and_of_each_record_in_order() {
    // Longer than any of these runs: nothing fails permanently.
    let plan = Plan {
        pauses: vec![std::time::Duration::from_secs(5); 1_000],
        failing_max: TimeDelta::days(1_000),
        ..Plan::default()
    };
    for seed in 0..1_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let last = random.random_range(1..80);
        let log: Vec<Letter> =
            (1..=last).map(|event| letter(event, &format!("l{}", random.random_range(0..8)))).collect();
        let (mut table, mut now) = (Table::default(), START);
        let mut line = Line::new(0, None);
        let mut under_way: Vec<i64> = Vec::new();
        let mut arrived: Vec<i64> = Vec::new();
        let mut is_killed = false;
        for step in 0..100_000 {
            let is_calm = step > 600;
            match random.random_range(0..100) {
                0..=19 => {
                    let after = line.read_to;
                    let page = log.iter().filter(|letter| letter.event > after).take(random.random_range(1..9));
                    let page: Vec<Letter> = page.cloned().collect();
                    if let Some(to) = page.last().map(|letter| letter.event) {
                        let busy = table.busy(after);
                        line.take(page, to, &busy, now);
                    }
                }
                // Only queried if there may be something.
                20..=29 if line.may_wait() => {
                    for due in table.due(now, line.read_to(), &line.held()) {
                        let letter = log[usize::try_from(due.event_id - 1).expect("an index")].clone();
                        line.take_due(&due, letter, now);
                    }
                }
                30..=49 => under_way.extend(line.next().map(|letter| letter.event)),
                50..=74 if !under_way.is_empty() => {
                    let event = under_way.swap_remove(random.random_range(0..under_way.len()));
                    let is_taken = is_calm || random.random_bool(0.6);
                    if is_taken {
                        arrived.push(event);
                    }
                    let verdict = if is_taken { Verdict::Taken } else { Verdict::Refused };
                    line.ended(event, verdict, attempt(), &plan, now);
                }
                75..=84 => {
                    if line.is_unwritten() {
                        let writing = line.writing();
                        if is_calm || random.random_bool(0.8) {
                            table.record(&writing, now);
                            if writing.frees && !table.waits(line.read_to()) {
                                line.none_waits();
                            }
                        } else {
                            line.not_written(writing);
                        }
                    }
                }
                85..=89 => drop(line.note(now)),
                90 if !is_calm => {
                    // Killed: running attempts may have arrived.
                    is_killed = true;
                    arrived.extend(under_way.drain(..).filter(|_| random.random_bool(0.5)));
                    line = Line::new(table.told_to, None);
                }
                91 if !is_calm => {
                    // Rests: what is under way is answered, or cancelled before it has arrived.
                    for event in under_way.drain(..).filter(|_| random.random_bool(0.7)).collect::<Vec<_>>() {
                        arrived.push(event);
                        line.ended(event, Verdict::Taken, attempt(), &plan, now);
                    }
                    line.note_all(now);
                    if line.is_unwritten() {
                        table.record(&line.writing(), now);
                    }
                    line = Line::new(table.told_to, None);
                    assert_eq!(line.read_to(), table.told_to);
                    let repeated: Vec<i64> = arrived
                        .iter()
                        .copied()
                        .filter(|event| {
                            *event > table.told_to
                                || table.rows.get(event).is_some_and(|row| row.1 == DeliveryStatus::Pending)
                        })
                        .collect();
                    assert!(is_killed || repeated.is_empty(), "seed {seed}: {repeated:?} is sent again");
                }
                _ => now += TimeDelta::milliseconds(random.random_range(0..3_000)),
            }
            let are_all_written = table.told_to == last
                && (1..=last).all(|event| table.rows.get(&event).is_some_and(|row| row.1 == DeliveryStatus::Delivered));
            if are_all_written {
                break;
            }
            assert!(step < 99_999, "seed {seed}: {:?} of {last}, {:?}, {line:?}", table.told_to, table.rows);
        }
        for lane in log.iter().map(|letter| &letter.lane).collect::<HashSet<_>>() {
            let sent: Vec<i64> = log.iter().filter(|letter| letter.lane == *lane).map(|letter| letter.event).collect();
            // The first arrival of each.
            let mut firsts: Vec<i64> = Vec::new();
            for event in arrived.iter().filter(|event| sent.contains(event)) {
                if !firsts.contains(event) {
                    firsts.push(*event);
                }
            }
            assert_eq!(firsts, sent, "seed {seed}, {lane}");
        }
    }
}
