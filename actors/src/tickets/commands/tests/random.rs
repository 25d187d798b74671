//! Random sequences of commands, valid or not, compared with a small model of the state machine.

use std::cell::RefCell;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hotline_persistence::change::{decode, encode};
use hotline_persistence::tables::tickets::TicketStatus;
use hotline_persistence::{Change, ChannelId, MessageId, QueueId, UserId, WrapupTypeId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::fixture::*;
use super::model::{Call, Line, Model, Queue, Setup, Step, Wrapup, WrapupType};
use crate::Refusal;
use crate::tickets::{
    AddNote, AfterSend, Close, ContactFacts, MarkDelivered, MarkRead, Open, Receive, Reopen, Send, SetWrapup, Show,
    Ticket, Transfer,
};

// Generators. Some of the generated ids do not exist.

fn id() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 1..=4_i64, 1 => Just(0), 1 => Just(9)]
}

fn wrapup() -> impl Strategy<Value = Wrapup> {
    (proptest::option::of(id()), proptest::option::of(".{0,12}"))
}

fn call() -> impl Strategy<Value = Call> {
    let transfer = prop_oneof![
        id().prop_map(|queue| Call::Transfer { queue: Some(queue), user: None }),
        proptest::option::of(id()).prop_map(|user| Call::Transfer { queue: None, user: Some(user) }),
        (id(), proptest::option::of(id()))
            .prop_map(|(queue, user)| Call::Transfer { queue: Some(queue), user: Some(user) }),
    ];
    let set_wrapup = (id(), proptest::option::of(proptest::option::of(".{0,12}")))
        .prop_map(|(kind, note)| Call::SetWrapup { kind, note });
    let follow_up = (proptest::option::weighted(0.3, id()), proptest::option::weighted(0.3, wrapup()));
    let send = (".{0,12}", any::<bool>(), any::<bool>(), follow_up)
        .prop_map(|(body, reopen, reachable, (queue, close))| Call::Send { body, reopen, reachable, queue, close });
    prop_oneof![
        3 => transfer,
        3 => wrapup().prop_map(Call::Close),
        2 => Just(Call::Reopen),
        2 => set_wrapup,
        1 => ".{0,12}".prop_map(Call::AddNote),
        4 => send,
        3 => ".{0,12}".prop_map(Call::Receive),
        2 => Just(Call::MarkRead),
        1 => any::<i64>().prop_map(Call::MarkDelivered),
        1 => Just(Call::Show),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (call(), proptest::bool::weighted(0.2)).prop_map(|(call, open_elsewhere)| Step { call, open_elsewhere });
    proptest::collection::vec(step, 1..60)
}

fn open_command() -> impl Strategy<Value = Open> {
    let channel = prop_oneof![Just(PHONE), Just(WEBCHAT), Just(SOCIAL)];
    let queue = proptest::option::of(prop_oneof![Just(SUPPORT), Just(SALES)]);
    // Ana belongs to every queue, so every opening is valid.
    (channel, queue, proptest::option::of(Just(ANA)), any::<bool>(), any::<bool>()).prop_map(
        |(channel, queue, user, reachable, has_number)| {
            let mut opening = Open { queue, user, reachable, ..open(channel) };
            if !has_number {
                let mut contact = (*opening.contact).clone();
                contact.number = None;
                opening.contact = contact.into();
            }
            opening
        },
    )
}

/// The fixture's company in the model's terms, written by hand.
fn setup() -> Setup {
    let queue =
        |is_active, requires_wrapup, agents: &[i64]| Queue { is_active, requires_wrapup, agents: agents.to_vec() };
    let wrapup_type = |is_active, queues: &[i64]| WrapupType { is_active, queues: queues.to_vec() };
    Setup {
        queues: BTreeMap::from([
            (1, queue(true, false, &[1, 2, 4])),
            (2, queue(true, true, &[1, 3])),
            (3, queue(false, false, &[1, 2, 3, 4])),
        ]),
        users: BTreeMap::from([(1, true), (2, true), (3, true), (4, false)]),
        wrapup_types: BTreeMap::from([
            (1, wrapup_type(true, &[1])),
            (2, wrapup_type(true, &[2])),
            (3, wrapup_type(false, &[1, 2, 3])),
            (4, wrapup_type(true, &[])),
        ]),
    }
}

fn line_of(channel: ChannelId) -> Line {
    if channel == PHONE {
        Line::Phone
    } else if channel == WEBCHAT {
        Line::Webchat
    } else {
        Line::Social
    }
}

/// The model of a ticket that this command opened.
fn opened_model(open: &Open, now: DateTime<Utc>) -> Model {
    let default_queue = (open.channel == PHONE).then_some(1);
    Model {
        has_number: open.contact.number.is_some(),
        reachable: open.reachable,
        user: open.user.map(|id| id.0),
        ..Model::opened(setup(), line_of(open.channel), open.queue.map(|id| id.0).or(default_queue), now)
    }
}

/// The ticket's current state in the model's terms.
fn current_model(desk: &Desk) -> Model {
    let row = &desk.ticket.row;
    Model {
        setup: setup(),
        line: line_of(row.channel_id),
        has_number: desk.ticket.contact.number.is_some(),
        reachable: desk.ticket.reachable,
        is_open: row.status == TicketStatus::Open,
        queue: row.queue_id.map(|id| id.0),
        user: row.user_id.map(|id| id.0),
        wrapup: (row.wrapup_type_id.map(|id| id.0), row.wrapup_note.clone().map(Into::into)),
        unread: row.unread_count,
        reopens: row.reopen_count,
        opened_at: row.opened_at,
        first_response_at: row.first_response_at,
        closed_at: row.closed_at,
        updated_at: row.updated_at,
    }
}

// The code under test, with its changes and refusals in the model's terms.

fn execute(desk: &mut Desk, step: &Step) -> Result<Vec<Change>, Refusal> {
    desk.open_elsewhere = step.open_elsewhere.then_some(OTHER_TICKET);
    let author = ana();
    match step.call.clone() {
        Call::Transfer { queue, user } => {
            let user = user.map(|user| user.map(UserId::new));
            desk.try_run(Transfer { queue: queue.map(QueueId::new), user, author }).map(|result| result.changes)
        }
        Call::Close((kind, wrapup_note)) => {
            let wrapup_type = kind.map(WrapupTypeId::new);
            desk.try_run(Close { wrapup_type, wrapup_note, author }).map(|result| result.changes)
        }
        Call::Reopen => desk.try_run(Reopen { author }).map(|result| result.changes),
        Call::SetWrapup { kind, note: wrapup_note } => {
            let wrapup_type = WrapupTypeId::new(kind);
            desk.try_run(SetWrapup { wrapup_type, wrapup_note, author }).map(|result| result.changes)
        }
        Call::AddNote(body) => desk.try_run(AddNote { body, author }).map(|result| result.changes),
        Call::Send { body, reopen, reachable, queue, close } => {
            let close_ticket = close.is_some();
            let (kind, wrapup_note) = close.unwrap_or_default();
            let (queue_id, wrapup_type_id) = (queue.map(QueueId::new), kind.map(WrapupTypeId::new));
            let after = AfterSend { queue_id, close_ticket, wrapup_type_id, wrapup_note, answers: false };
            let facts = ContactFacts { reachable, ..ContactFacts::default() };
            desk.try_run(Send { reopen, facts, after, ..Send::text(body, author) }).map(|result| result.changes)
        }
        Call::Receive(body) => {
            let message = Receive::text(body);
            desk.try_run(message).map(|result| result.changes)
        }
        Call::MarkRead => desk.try_run(MarkRead { author }).map(|result| result.changes),
        Call::MarkDelivered(up_to) => {
            desk.try_run(MarkDelivered { up_to: MessageId::new(up_to), since: None }).map(|result| result.changes)
        }
        Call::Show => desk.try_run(Show).map(|result| result.changes),
    }
}

/// A delivery is recorded if it advances the ticket's delivered position, which never passes the last message.
fn expected_delivery(ticket: &Ticket, up_to: MessageId) -> Vec<&'static str> {
    let position = ticket.row.last_message_id.map(|last| up_to.min(last).into());
    if position > Some(ticket.receipts.delivered) { vec!["delivered"] } else { vec![] }
}

fn change_name(change: &Change) -> &'static str {
    match change {
        Change::Ticket(_) => "ticket",
        Change::Event(event) => event.kind.as_str(),
        Change::Message(_) => "message",
        Change::Delivered(_) => "delivered",
        Change::Seen(_) => "seen",
        Change::Read(_) => "read up to",
        Change::Session(_) => "session",
        Change::ContactChannel(_) => "contact channel",
        Change::Answer(_) => "answer",
        Change::Progress(_) => "progress",
        Change::Attempt(_) => "attempt",
        Change::Media(_) => "media",
        Change::Revision(_) => "revision",
        Change::Referral(_) => "referral",
        Change::OptOut(_) => "opt out",
        Change::Schedule(_) => "schedule",
        Change::Recipient(_) => "recipient",
    }
}

fn refusal_name(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotFound => "not found".to_owned(),
        Refusal::Invalid(fields) => fields.iter().map(|field| field.field.as_str()).collect::<Vec<_>>().join(" "),
        Refusal::TicketClosed(_) => "closed".to_owned(),
        Refusal::AlreadyOpen(other) => {
            assert_eq!(*other, OTHER_TICKET);
            "already open".to_owned()
        }
        Refusal::Conflict(_) => "conflict".to_owned(),
        Refusal::ContactUnreachable(_) => "unreachable".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The highest ids so far, and the number of reopenings.
#[derive(Default)]
struct RecordedTotals {
    last_message_id: i64,
    last_event_id: i64,
    reopenings: i32,
}

impl RecordedTotals {
    fn record(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Message(row) => {
                    assert!(row.id.0 > self.last_message_id, "message ids strictly increase");
                    self.last_message_id = row.id.0;
                }
                Change::Event(row) => {
                    assert!(row.id.0 > self.last_event_id, "event ids strictly increase");
                    self.last_event_id = row.id.0;
                    self.reopenings += i32::from(row.kind.as_str() == "reopened");
                }
                _ => {}
            }
        }
    }
}

fn assert_consistent(desk: &Desk, totals: &RecordedTotals) {
    let row = &desk.ticket.row;
    match row.status {
        TicketStatus::Open => {
            assert_eq!((row.closed_at, row.wrapup_type_id, &row.wrapup_note), (None, None, &None));
        }
        TicketStatus::Closed => assert!(row.closed_at.is_some_and(|at| at >= row.opened_at)),
    }
    assert!(row.unread_count >= 0);
    assert_eq!(row.reopen_count, totals.reopenings, "reopenings are counted");
    assert_eq!(row.last_message_id.is_some(), desk.ticket.last_message.is_some());
    assert!(row.last_message_id.is_none_or(|last| last.0 <= totals.last_message_id));
}

/// Encodes and decodes every change, as a restart does with the journal.
fn assert_survives_the_journal(changes: &[Change]) {
    let bytes = encode(changes).expect("the changes are encoded");
    assert_eq!(decode(1, &bytes).expect("the changes are decoded"), changes);
}

/// The outcomes that every run of the test must reach: the names of the recorded changes, or of the refusal.
const OUTCOMES: &[&str] = &[
    "ticket + transferred",
    "ticket + closed",
    "ticket + reopened",
    "ticket + wrapup_changed",
    "ticket + note_added + message",
    "ticket + message",
    "ticket + reopened + message",
    "ticket + transferred + closed + message",
    "ticket + reopened + closed + message",
    "ticket + read + read up to",
    "delivered",
    "not found",
    "closed",
    "conflict",
    "already open",
    "unreachable",
    "queueId",
    "userId",
    "wrapupTypeId",
];

#[test]
fn any_sequence_of_commands_follows_the_contract() {
    // The number of steps with each outcome: an outcome that is never generated is not tested.
    let outcomes = RefCell::new(BTreeMap::<String, u32>::new());
    let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
    let run = |(opening, steps): (Open, Vec<Step>)| {
        let (mut desk, opened) = Desk::opened(opening.clone()).expect("the ticket opens");
        assert_survives_the_journal(&opened.changes);
        let mut model = opened_model(&opening, desk.now);
        let mut totals = RecordedTotals::default();
        totals.record(&opened.changes);
        for step in &steps {
            let before = desk.ticket.clone();
            let outcome = execute(&mut desk, step);
            let expected = match step.call {
                // The model has no message ids.
                Call::MarkDelivered(up_to) => Ok(expected_delivery(&before, MessageId::new(up_to))),
                _ => model.step(step, desk.now),
            };
            match (outcome, expected) {
                (Ok(changes), Ok(expected)) => {
                    let recorded: Vec<_> = changes.iter().map(change_name).collect();
                    prop_assert_eq!(&recorded, &expected, "{:?}", step);
                    if let Some(Change::Ticket(row)) = changes.first() {
                        prop_assert_eq!(row, &desk.ticket.row, "the recorded row is the ticket's row");
                    }
                    totals.record(&changes);
                    assert_survives_the_journal(&changes);
                    *outcomes.borrow_mut().entry(recorded.join(" + ")).or_default() += 1;
                }
                (Err(refusal), Err(expected)) => {
                    let refusal = refusal_name(&refusal);
                    prop_assert_eq!(&refusal, expected, "{:?}", step);
                    prop_assert_eq!(&desk.ticket, &before, "a refused command changes nothing");
                    *outcomes.borrow_mut().entry(refusal).or_default() += 1;
                }
                (outcome, expected) => {
                    prop_assert!(false, "{step:?} on {before:?}: {outcome:?}, but the model says {expected:?}");
                }
            }
            prop_assert_eq!(&current_model(&desk), &model, "{:?}", step);
            assert_consistent(&desk, &totals);
        }
        Ok(())
    };
    let cases = (open_command(), steps());
    if let Err(failure) = runner.run(&cases, run) {
        panic!("{failure}");
    }
    let outcomes = outcomes.into_inner();
    for outcome in OUTCOMES {
        assert!(outcomes.contains_key(*outcome), "`{outcome}` is not among {outcomes:?}");
    }
}
