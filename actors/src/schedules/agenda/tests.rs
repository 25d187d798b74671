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
        by: None,
        contact_was: None,
        updated_at: at(0),
    }
}

fn over(row: ScheduleRow) -> Arc<ScheduleRow> {
    Arc::new(ScheduleRow { status: ScheduleStatus::Canceled, ..row })
}

/// Everything is in memory, and nothing is pending beyond.
fn whole(rows: Vec<ScheduleRow>) -> Agenda {
    let mut agenda = Agenda::default();
    agenda.begin_read();
    agenda.loaded(agenda.until(), rows, (at(1_000_000), ScheduleId::new(i64::MAX)), false);
    agenda.end_read(at(0));
    agenda
}

/// The messages that are sent at a time, each settled before the next.
fn left(agenda: &mut Agenda, second: i64) -> Vec<i64> {
    let mut left = Vec::new();
    while let Some(row) = agenda.leave(at(second), Instant::now()) {
        left.push(row.id.0);
        agenda.decided(over(ScheduleRow::clone(&row)), at(0));
    }
    left
}

#[test]
fn what_is_due_leaves_once_the_oldest_first_whatever_the_clock_does() {
    let mut agenda = whole(vec![row(3, 10, 3), row(1, 20, 1), row(2, 10, 2), row(4, 30, 4)]);
    assert_eq!(left(&mut agenda, 9), [0; 0]);
    assert_eq!(left(&mut agenda, 10), [2, 3]);
    // The clock is set back by an hour, and forward by a week.
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
    // It waits for its retry; those behind it stay there, and one of them is canceled.
    let rested = clock + Duration::from_secs(1);
    agenda.rest(first.id, rested);
    assert!(matches!(agenda.look(first.id), Look::Settled(_)));
    assert!(agenda.leave(now, clock).is_none());
    agenda.decided(over(row(2, 2, 7)), at(0));
    assert_eq!(agenda.next(), (None, Some(rested)));
    assert_eq!(agenda.leave(now, rested).expect("it has rested").id.0, 1);
    agenda.decided(over(row(1, 1, 7)), at(0));
    assert_eq!(agenda.leave(now, rested).expect("the next").id.0, 3);
    // A message that waits for its retry and is canceled blocks nothing.
    agenda.rest(ScheduleId::new(3), rested);
    agenda.decided(Arc::new(row(5, 5, 7)), at(0));
    agenda.decided(over(row(3, 3, 7)), at(0));
    assert_eq!(agenda.leave(now, rested).expect("the last").id.0, 5);
    assert_eq!(agenda.waiting(at(9)), Waiting { held: 2, due: 2, late: 0 });
    assert_eq!(agenda.waiting(at(10)), Waiting { held: 2, due: 2, late: 1 });
}

#[test]
fn what_was_decided_counts_more_than_a_read_that_began_before() {
    let mut agenda = Agenda::default();
    agenda.begin_read();
    let after = agenda.until();
    // Canceled, changed and created while the read is under way, which has seen none of it.
    agenda.decided(over(row(1, 1, 1)), at(0));
    agenda.decided(Arc::new(row(2, 5, 2)), at(0));
    agenda.decided(Arc::new(row(3, 3, 3)), at(0));
    agenda.decided(Arc::new(row(9, 9999, 9)), at(0));
    agenda.loaded(after, vec![row(1, 1, 1), row(2, 2, 2)], (at(50), ScheduleId::new(i64::MAX)), false);
    agenda.end_read(at(0));
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
    agenda.end_read(at(0));
    assert!(!agenda.wants_more(at(1800)) && agenda.wants_more(at(1801)));
    // A message created beyond `until` is not in memory; one created before it is.
    agenda.decided(Arc::new(row(2, 6000, 2)), at(0));
    agenda.decided(Arc::new(row(3, 5000, 3)), at(0));
    assert!(matches!(agenda.look(ScheduleId::new(2)), Look::Unknown));
    assert_eq!(left(&mut agenda, 10_000), [1, 3]);
    assert!(!agenda.is_done());
}

#[test]
fn what_is_made_while_nothing_can_be_loaded_leaves_at_its_time() {
    let mut agenda = Agenda::default();
    agenda.begin_read();
    agenda.loaded(agenda.until(), vec![row(1, 10, 1)], (at(5400), ScheduleId::new(i64::MAX)), true);
    agenda.end_read(at(0));
    // The tables have been away for an hour.
    let now = at(3600);
    assert!(agenda.wants_more(now));
    agenda.decided(Arc::new(row(2, 6000, 2)), now);
    agenda.decided(Arc::new(row(3, 7201, 3)), now);
    // Also when a read that began before has failed.
    agenda.begin_read();
    agenda.decided(Arc::new(row(4, 7000, 4)), now);
    agenda.decided(Arc::new(row(5, 7300, 5)), now);
    agenda.end_read(now);
    assert_eq!(agenda.waiting(now).held, 3, "the first, and those that are due within an hour");
    assert!(matches!(agenda.look(ScheduleId::new(3)), Look::Unknown));
    assert_eq!(left(&mut agenda, 10_000), [1, 2, 4]);
    // Back again, they find the rest, and nothing of what has left.
    agenda.begin_read();
    agenda.loaded(agenda.until(), vec![row(3, 7201, 3), row(5, 7300, 5)], (at(9000), ScheduleId::new(i64::MAX)), false);
    agenda.end_read(at(10_000));
    assert_eq!(left(&mut agenda, 10_000), [3, 5]);
    assert!(agenda.is_done());
}

#[test]
fn what_does_not_fit_is_given_up_from_the_far_end_and_found_again() {
    let count = i64::try_from(HELD_MAX).expect("few") + 10;
    let mut agenda = whole((1..=count).map(|id| row(id, id, id)).collect());
    assert_eq!((agenda.held.len(), agenda.until().1.0), (HELD_MAX, count - 10));
    assert!(agenda.has_beyond && !agenda.wants_more(at(count)), "there is no room");
    // A nearer message replaces a farther one; a read that began before is ignored.
    let before = agenda.until();
    agenda.begin_read();
    agenda.decided(Arc::new(row(count + 1, 0, count + 1)), at(0));
    agenda.loaded(before, vec![row(count, count, count)], (at(count), ScheduleId::new(count)), false);
    agenda.end_read(at(0));
    assert_eq!(agenda.until().1.0, count - 11);
    assert!(agenda.has_beyond);
    assert_eq!(left(&mut agenda, count).len(), HELD_MAX);
    assert!(agenda.wants_more(at(count)));
    let mut agenda = whole(Vec::new());
    let long = ScheduleRow { body: "x".repeat(65_536), ..row(1, 1, 1) };
    for id in 1..=600 {
        agenda.decided(Arc::new(ScheduleRow { id: ScheduleId::new(id), send_at: at(id), ..long.clone() }), at(0));
    }
    assert!(agenda.bytes <= HELD_BYTES_MAX && agenda.held.len() > 500 && agenda.has_beyond);
}
