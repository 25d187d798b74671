//! The checker finds each kind of contradiction. These tests need no service, and run with every `make test`.

use serde_json::json;

use super::compare::compare;
use super::{Event, Message, Stored, Ticket, Verdict};
use crate::record::{Action, Call, Outcome, Person, Record};

const CONTACT: i64 = 1;
const TICKET: i64 = 10;

/// A ticket that was opened, talked in, transferred, closed and reopened, each call after the answer of the one before.
fn record() -> Record {
    let acknowledged = |id| Outcome::Acknowledged { id, ticket: TICKET };
    let actions = [
        (Action::Open, "open", acknowledged(TICKET)),
        (Action::Send, "first", acknowledged(100)),
        (Action::Send, "second", acknowledged(101)),
        (Action::Send, "refused", Outcome::Refused(503)),
        (Action::Send, "unknown", Outcome::Unknown),
        (Action::Transfer, "transfer", acknowledged(TICKET)),
        (Action::Close, "close", acknowledged(TICKET)),
        (Action::Reopen, "reopen", acknowledged(TICKET)),
    ];
    let calls = actions.into_iter().zip((0..).step_by(2)).map(|((action, label, outcome), started)| Call {
        action,
        conversation: 0,
        ticket: (action != Action::Open).then_some(TICKET),
        label: label.to_owned(),
        keyed: false,
        started,
        ended: started + 1,
        outcome,
    });
    Record {
        people: vec![Person { contact: CONTACT, session: None }],
        calls: calls.collect(),
        contradictions: Vec::new(),
        reads: 0,
        repeats: 0,
        slowest: std::time::Duration::ZERO,
    }
}

/// The records after these calls; the call without an answer left nothing.
fn stored() -> Stored {
    let ticket = Ticket {
        contact_id: CONTACT,
        status: "open".to_owned(),
        wrapup_note: None,
        reopen_count: 1,
        last_message_id: Some(101),
    };
    let nowhere = json!({"queue": null, "assignedTo": null});
    let support = json!({"queue": {"id": 7}, "assignedTo": {"id": 8}});
    let events = [
        ("opened", None, Some(nowhere.clone())),
        ("transferred", Some(nowhere), Some(support)),
        ("closed", Some(json!({"status": "open"})), Some(json!({"status": "closed", "wrapupNote": "close"}))),
        ("reopened", Some(json!({"status": "closed", "wrapupNote": "close"})), Some(json!({"status": "open"}))),
    ];
    let event = |(kind, from, to): (&str, _, _)| Event { ticket_id: TICKET, kind: kind.to_owned(), from, to };
    Stored {
        tickets: [(TICKET, ticket)].into(),
        messages: [(100, message("first")), (101, message("second"))].into(),
        events: (200..).zip(events.into_iter().map(event)).collect(),
    }
}

fn message(body: &str) -> Message {
    Message { ticket_id: TICKET, contact_id: CONTACT, body: body.to_owned() }
}

fn verdict(change: impl FnOnce(&mut Stored)) -> Verdict {
    let (mut stored, mut verdict) = (stored(), Verdict::default());
    change(&mut stored);
    compare(&record(), &stored, "held", &mut verdict);
    verdict
}

/// How many acknowledged changes the checker finds lost after this change. Fails if it finds no contradiction.
#[track_caller]
fn count_lost(change: impl FnOnce(&mut Stored)) -> usize {
    let verdict = verdict(change);
    assert!(!verdict.contradictions.is_empty(), "the change was not contradicted");
    verdict.lost
}

#[test]
fn records_that_match_the_calls_are_not_contradicted() {
    assert_eq!(verdict(|_| ()).contradictions, Vec::<String>::new());
    let with_unknown_call = verdict(|stored| {
        stored.messages.insert(102, message("unknown"));
        stored.tickets.entry(TICKET).and_modify(|ticket| ticket.last_message_id = Some(102));
    });
    assert_eq!(with_unknown_call.contradictions, Vec::<String>::new());
}

#[test]
fn acknowledged_changes_that_are_missing_are_lost() {
    assert_eq!(count_lost(|stored| drop(stored.messages.remove(&100))), 1);
    // No later event depends on the transfer, but it is missed.
    assert_eq!(count_lost(|stored| drop(stored.events.remove(&201))), 1);
    assert_eq!(count_lost(|stored| drop(stored.events.remove(&202))), 1);
    assert_eq!(count_lost(|stored| drop(stored.events.remove(&203))), 1);
    assert!(count_lost(|stored| drop(stored.tickets.remove(&TICKET))) >= 1);
}

#[test]
fn duplicates_and_changes_without_a_call_are_contradicted() {
    for (id, body) in [(102, "first"), (103, "refused"), (104, "never said")] {
        let insert_message = |stored: &mut Stored| {
            stored.messages.insert(id, message(body));
            stored.tickets.entry(TICKET).and_modify(|ticket| ticket.last_message_id = Some(id));
        };
        assert_eq!(count_lost(insert_message), 0, "{body}");
    }
    assert_eq!(count_lost(|stored| drop(stored.events.insert(204, stored.events[&201].clone()))), 0);
}

#[test]
fn ids_in_a_different_order_from_the_answers_are_contradicted() {
    let mut reordered = record();
    // The second ended before the first started.
    reordered.calls[1].started = 50;
    reordered.calls[1].ended = 51;
    let mut verdict = Verdict::default();
    compare(&reordered, &stored(), "held", &mut verdict);
    assert_eq!(verdict.contradictions.len(), 1, "{:?}", verdict.contradictions);
    assert!(verdict.contradictions[0].contains("answered first"), "{:?}", verdict.contradictions);
}

#[test]
fn a_ticket_whose_state_differs_from_that_after_its_events_is_contradicted() {
    let changes: [fn(&mut Ticket); 4] = [
        |ticket| ticket.status = "closed".to_owned(),
        |ticket| ticket.wrapup_note = Some("close".to_owned()),
        |ticket| ticket.reopen_count = 2,
        |ticket| ticket.last_message_id = Some(100),
    ];
    for change in changes {
        assert_eq!(count_lost(|stored| stored.tickets.values_mut().for_each(change)), 0);
    }
}
