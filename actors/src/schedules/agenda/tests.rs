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

fn canceled(row: ScheduleRow) -> Arc<ScheduleRow> {
    Arc::new(ScheduleRow { status: ScheduleStatus::Canceled, ..row })
}

/// An agenda that has these messages in memory; no others are pending.
fn complete_agenda(rows: Vec<ScheduleRow>) -> Agenda {
    let mut agenda = Agenda::default();
    agenda.begin_read();
    agenda.add_loaded(agenda.until(), rows, (at(1_000_000), ScheduleId::new(i64::MAX)), false);
    agenda.end_read(at(0));
    agenda
}

/// Sends all messages that are due at a time, each settled before the next. Returns their ids.
fn send_due(agenda: &mut Agenda, second: i64) -> Vec<i64> {
    let mut ids = Vec::new();
    while let Some(row) = agenda.take_due(at(second), Instant::now()) {
        ids.push(row.id.0);
        agenda.apply(canceled(ScheduleRow::clone(&row)), at(0));
    }
    ids
}

#[test]
fn due_messages_are_sent_once_and_oldest_first_even_if_the_clock_changes() {
    let mut agenda = complete_agenda(vec![row(3, 10, 3), row(1, 20, 1), row(2, 10, 2), row(4, 30, 4)]);
    assert_eq!(send_due(&mut agenda, 9), [0; 0]);
    assert_eq!(send_due(&mut agenda, 10), [2, 3]);
    // The clock is set back by an hour, and forward by a week.
    assert_eq!(send_due(&mut agenda, -3590), [0; 0]);
    assert_eq!(send_due(&mut agenda, 700_000), [1, 4]);
    assert_eq!(send_due(&mut agenda, 700_000), [0; 0]);
    assert!(agenda.is_done() && agenda.conversations.is_empty() && agenda.bytes == 0);
}

#[test]
fn a_conversation_sends_one_at_a_time_and_others_do_not_wait_for_it() {
    let mut agenda = complete_agenda(vec![row(1, 1, 7), row(2, 2, 7), row(3, 3, 7), row(4, 4, 8)]);
    let (now, instant) = (at(9), Instant::now());
    let first = agenda.take_due(now, instant).expect("the oldest");
    assert_eq!(first.id.0, 1);
    assert_eq!(agenda.take_due(now, instant).expect("another conversation").id.0, 4);
    assert!(agenda.take_due(now, instant).is_none());
    assert!(matches!(agenda.look_up(first.id), MessageLookup::Sending));
    // The first waits for its retry; the messages behind it wait too, and one of them is canceled.
    let retry = instant + Duration::from_secs(1);
    agenda.retry_at(first.id, retry);
    assert!(matches!(agenda.look_up(first.id), MessageLookup::Idle(_)));
    assert!(agenda.take_due(now, instant).is_none());
    agenda.apply(canceled(row(2, 2, 7)), at(0));
    assert_eq!(agenda.next_times(), (None, Some(retry)));
    assert_eq!(agenda.take_due(now, retry).expect("its retry is due").id.0, 1);
    agenda.apply(canceled(row(1, 1, 7)), at(0));
    assert_eq!(agenda.take_due(now, retry).expect("the next").id.0, 3);
    // A message that waits for its retry and is canceled blocks nothing.
    agenda.retry_at(ScheduleId::new(3), retry);
    agenda.apply(Arc::new(row(5, 5, 7)), at(0));
    agenda.apply(canceled(row(3, 3, 7)), at(0));
    assert_eq!(agenda.take_due(now, retry).expect("the last").id.0, 5);
    assert_eq!(agenda.count(at(9)), ScheduleCounts { pending: 2, due: 2, late: 0 });
    assert_eq!(agenda.count(at(10)), ScheduleCounts { pending: 2, due: 2, late: 1 });
}

#[test]
fn a_decision_takes_precedence_over_a_read_that_began_before() {
    let mut agenda = Agenda::default();
    agenda.begin_read();
    let after = agenda.until();
    // Changes made while the read is running, whose result includes none of them.
    agenda.apply(canceled(row(1, 1, 1)), at(0));
    agenda.apply(Arc::new(row(2, 5, 2)), at(0));
    agenda.apply(Arc::new(row(3, 3, 3)), at(0));
    agenda.apply(Arc::new(row(9, 9999, 9)), at(0));
    agenda.add_loaded(after, vec![row(1, 1, 1), row(2, 2, 2)], (at(50), ScheduleId::new(i64::MAX)), false);
    agenda.end_read(at(0));
    assert!(agenda.has_more, "message 9 is later than `until`, and is still to be loaded");
    assert!(matches!(agenda.look_up(ScheduleId::new(9)), MessageLookup::Unknown));
    assert!(
        matches!(agenda.look_up(ScheduleId::new(1)), MessageLookup::Unknown),
        "the read must not add a canceled message"
    );
    assert_eq!(send_due(&mut agenda, 100), [3, 2]);
}

#[test]
fn distant_messages_are_loaded_as_time_passes() {
    let mut agenda = Agenda::default();
    assert!(agenda.needs_load(at(0)));
    agenda.begin_read();
    agenda.add_loaded(agenda.until(), vec![row(1, 10, 1)], (at(5400), ScheduleId::new(i64::MAX)), true);
    agenda.end_read(at(0));
    assert!(!agenda.needs_load(at(1800)) && agenda.needs_load(at(1801)));
    // A message created beyond `until` is not in memory; one created before it is.
    agenda.apply(Arc::new(row(2, 6000, 2)), at(0));
    agenda.apply(Arc::new(row(3, 5000, 3)), at(0));
    assert!(matches!(agenda.look_up(ScheduleId::new(2)), MessageLookup::Unknown));
    assert_eq!(send_due(&mut agenda, 10_000), [1, 3]);
    assert!(!agenda.is_done());
}

#[test]
fn a_message_created_during_an_outage_is_sent_on_time() {
    let mut agenda = Agenda::default();
    agenda.begin_read();
    agenda.add_loaded(agenda.until(), vec![row(1, 10, 1)], (at(5400), ScheduleId::new(i64::MAX)), true);
    agenda.end_read(at(0));
    // The database has been unavailable for an hour.
    let now = at(3600);
    assert!(agenda.needs_load(now));
    agenda.apply(Arc::new(row(2, 6000, 2)), now);
    agenda.apply(Arc::new(row(3, 7201, 3)), now);
    // The same during a read that then fails.
    agenda.begin_read();
    agenda.apply(Arc::new(row(4, 7000, 4)), now);
    agenda.apply(Arc::new(row(5, 7300, 5)), now);
    agenda.end_read(now);
    assert_eq!(agenda.count(now).pending, 3, "the first, and those that are due within an hour");
    assert!(matches!(agenda.look_up(ScheduleId::new(3)), MessageLookup::Unknown));
    assert_eq!(send_due(&mut agenda, 10_000), [1, 2, 4]);
    // Once the tables are available again, a read has the remaining messages, and none of the sent ones.
    agenda.begin_read();
    agenda.add_loaded(
        agenda.until(),
        vec![row(3, 7201, 3), row(5, 7300, 5)],
        (at(9000), ScheduleId::new(i64::MAX)),
        false,
    );
    agenda.end_read(at(10_000));
    assert_eq!(send_due(&mut agenda, 10_000), [3, 5]);
    assert!(agenda.is_done());
}

#[test]
fn the_latest_messages_are_evicted_first_and_loaded_again() {
    let count = i64::try_from(MESSAGES_MAX).expect("few") + 10;
    let mut agenda = complete_agenda((1..=count).map(|id| row(id, id, id)).collect());
    assert_eq!((agenda.entries.len(), agenda.until().1.0), (MESSAGES_MAX, count - 10));
    assert!(agenda.has_more && !agenda.needs_load(at(count)), "there is no room");
    // A nearer message replaces a farther one; a read that began before is ignored.
    let before = agenda.until();
    agenda.begin_read();
    agenda.apply(Arc::new(row(count + 1, 0, count + 1)), at(0));
    agenda.add_loaded(before, vec![row(count, count, count)], (at(count), ScheduleId::new(count)), false);
    agenda.end_read(at(0));
    assert_eq!(agenda.until().1.0, count - 11);
    assert!(agenda.has_more);
    assert_eq!(send_due(&mut agenda, count).len(), MESSAGES_MAX);
    assert!(agenda.needs_load(at(count)));
    let mut agenda = complete_agenda(Vec::new());
    let long = ScheduleRow { body: "x".repeat(65_536), ..row(1, 1, 1) };
    for id in 1..=600 {
        agenda.apply(Arc::new(ScheduleRow { id: ScheduleId::new(id), send_at: at(id), ..long.clone() }), at(0));
    }
    assert!(agenda.bytes <= BYTES_MAX && agenda.entries.len() > 500 && agenda.has_more);
}
