//! The contract's ticket table over HTTP: random sequences of calls, compared with the model that tests the commands.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use crate::steps::NOBODY;
use crate::support::{Company, Reply, TestApp};

#[path = "../../actors/src/tickets/commands/tests/model.rs"]
#[allow(dead_code)] // The model has calls that a webchat's API does not have.
mod ticket;

use ticket::{Line, Model, Queue, Setup, Step, Wrapup, WrapupType};

/// Sequences tried, at least and at most, and calls in each.
const SEQUENCES_MIN: u32 = 24;
const SEQUENCES_MAX: u32 = 240;
const CALLS: std::ops::Range<usize> = 5..30;

/// One call of the API.
#[derive(Clone, Debug)]
enum Call {
    /// A call that is one command on the ticket.
    OnTicket(ticket::Call),
    /// Opens another ticket and closes it at once: the ticket under test must not change.
    OpenAnother,
}

/// One of these ids; one time in eleven, an id that no record has.
fn one_of(ids: [i64; 2]) -> impl Strategy<Value = i64> + Clone + use<> {
    prop_oneof![5 => Just(ids[0]), 5 => Just(ids[1]), 1 => Just(NOBODY)]
}

fn any_call(company: &Company) -> impl Strategy<Value = Call> + use<> {
    let queue = one_of([company.support.0, company.sales.0]);
    let user = one_of([company.ana.0, company.ben.0]);
    let kind = one_of([company.solved.0, company.sold.0]);
    let wrapup = (proptest::option::of(kind.clone()), proptest::option::of(Just("noted".to_owned())));
    let send = (
        any::<bool>(),
        proptest::option::weighted(0.2, queue.clone()),
        proptest::option::weighted(0.4, wrapup.clone()),
    );
    let send = send.prop_map(|(reopen, queue, close)| ticket::Call::Send {
        body: "x".to_owned(),
        reopen,
        reachable: true,
        queue,
        close,
    });
    let transfer = (proptest::option::of(queue), proptest::option::of(proptest::option::of(user)))
        .prop_map(|(queue, user)| ticket::Call::Transfer { queue, user });
    let note = proptest::option::of(proptest::option::of(Just("noted".to_owned())));
    let set_wrapup = (kind, note).prop_map(|(kind, note)| ticket::Call::SetWrapup { kind, note });
    prop_oneof![
        3 => send.prop_map(Call::OnTicket),
        3 => transfer.prop_map(Call::OnTicket),
        2 => wrapup.prop_map(|wrapup| Call::OnTicket(ticket::Call::Close(wrapup))),
        2 => Just(Call::OnTicket(ticket::Call::Reopen)),
        1 => set_wrapup.prop_map(Call::OnTicket),
        1 => Just(Call::OnTicket(ticket::Call::AddNote("note".to_owned()))),
        1 => Just(Call::OnTicket(ticket::Call::MarkRead)),
        1 => Just(Call::OpenAnother),
    ]
}

/// The company of the tests, as `Company` describes it.
fn setup(company: &Company) -> Setup {
    let (support, sales) = (company.support.0, company.sales.0);
    let queue = |requires_wrapup, agents: &[i64]| Queue { is_active: true, requires_wrapup, agents: agents.to_vec() };
    let kind = |queue| WrapupType { is_active: true, queues: vec![queue] };
    Setup {
        queues: BTreeMap::from([
            (support, queue(true, &[company.ana.0, company.ben.0])),
            (sales, queue(false, &[company.ben.0])),
        ]),
        users: BTreeMap::from([(company.ana.0, true), (company.ben.0, true)]),
        wrapup_types: BTreeMap::from([(company.solved.0, kind(support)), (company.sold.0, kind(sales))]),
    }
}

/// The HTTP status for the model's outcome of a call.
fn expected_status(call: &ticket::Call, outcome: &Result<Vec<&'static str>, &'static str>) -> u16 {
    match (outcome, call) {
        (Ok(_), ticket::Call::Send { .. }) => 202,
        (Ok(_), ticket::Call::AddNote(_)) => 201,
        (Ok(_), _) => 200,
        (Err("closed" | "conflict" | "already open"), _) => 409,
        (Err("not found"), _) => 404,
        (Err(_), _) => 422,
    }
}

/// Whether a send names a queue or a wrap-up type that does not exist.
fn names_unknown_record(call: &ticket::Call) -> bool {
    match call {
        ticket::Call::Send { queue, close, .. } => {
            let kind = close.as_ref().and_then(|(kind, _)| *kind);
            [*queue, kind].contains(&Some(NOBODY))
        }
        _ => false,
    }
}

/// How many messages a call has added to its ticket.
fn count_messages(outcome: &Result<Vec<&'static str>, &'static str>) -> usize {
    outcome.iter().flatten().filter(|recorded| **recorded == "message").count()
}

fn check_ticket(model: &Model, shown: &Value) {
    assert_eq!(shown["status"], if model.is_open { "open" } else { "closed" });
    assert_eq!(shown["queue"]["id"].as_i64(), model.queue);
    assert_eq!(shown["assignedTo"]["id"].as_i64(), model.user);
    assert_eq!(shown["wrapupType"]["id"].as_i64(), model.wrapup.0);
    assert_eq!(shown["wrapupNote"].as_str(), model.wrapup.1.as_deref());
    assert_eq!(shown["reopenCount"], model.reopens);
    assert_eq!(shown["unreadCount"], model.unread);
    assert_eq!(shown["closedAt"].is_null(), model.closed_at.is_none());
    assert_eq!(shown["firstResponseAt"].is_null(), model.first_response_at.is_none());
}

/// An object of the fields that have a value.
fn body<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}

async fn send_call(app: &TestApp, ticket: i64, call: &ticket::Call) -> Reply {
    let path = |verb: &str| format!("/tickets/{ticket}/{verb}");
    match call.clone() {
        ticket::Call::Send { body: text, reopen, queue, close, .. } => {
            let does_close = close.is_some();
            let (kind, note): Wrapup = close.unwrap_or_default();
            let sent = body([
                ("ticketId", Some(json!(ticket))),
                ("type", Some(json!("text"))),
                ("body", Some(json!(text))),
                ("reopenTicket", Some(json!(reopen))),
                ("queueId", queue.map(Value::from)),
                ("closeTicket", Some(json!(does_close))),
                ("wrapupTypeId", kind.map(Value::from)),
                ("wrapupNote", note.map(Value::from)),
            ]);
            app.api.post("/messages", sent).await
        }
        ticket::Call::Transfer { queue, user } => {
            let to = body([("queueId", queue.map(Value::from)), ("userId", user.map(|user| json!(user)))]);
            app.api.post(&path("transfer"), to).await
        }
        ticket::Call::Close((kind, note)) => {
            app.api.post(&path("close"), json!({"wrapupTypeId": kind, "wrapupNote": note})).await
        }
        ticket::Call::Reopen => app.api.post(&path("reopen"), json!({})).await,
        ticket::Call::SetWrapup { kind, note } => {
            let note = note.map(|note| json!(note));
            app.api.put(&path("wrapup"), body([("wrapupTypeId", Some(json!(kind))), ("wrapupNote", note)])).await
        }
        ticket::Call::AddNote(text) => app.api.post(&path("notes"), json!({"body": text})).await,
        ticket::Call::MarkRead => app.api.post(&path("read"), json!({})).await,
        other => panic!("no call of the API is {other:?}"),
    }
}

/// Opens another ticket of the contact, if the model allows it, and closes it.
async fn open_another(app: &TestApp, ticket: i64, contact: i64, model: &Model) {
    // The sales queue requires no wrap-up.
    let opening = json!({"channelId": app.company.webchat, "contactId": contact, "queueId": app.company.sales});
    let reply = app.api.post("/tickets", opening).await;
    assert_eq!(reply.status == StatusCode::CREATED, !model.is_open, "{}", reply.body);
    if reply.status != StatusCode::CREATED {
        reply.error(409, "ERR_API_CONFLICT");
        return;
    }
    let other = reply.body["data"]["id"].as_i64().expect("id");
    let mut meanwhile = model.clone();
    let reopening = Step { call: ticket::Call::Reopen, open_elsewhere: true };
    assert_eq!(meanwhile.step(&reopening, Utc::now()), Err("already open"));
    let refused = app.api.post(&format!("/tickets/{ticket}/reopen"), json!({})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["ticketId"], other);
    app.api.post(&format!("/tickets/{other}/close"), json!({})).await.data(200);
}

#[actix_web::test]
async fn random_calls_on_a_ticket_have_the_answers_and_effects_of_the_contract() {
    let app = TestApp::shared().await;
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let sequences = proptest::collection::vec(any_call(&app.company), CALLS);
    // A generator that never reaches an outcome proves nothing about it: further sequences are tried until all came up.
    let required = ["ticket + transferred", "ticket + closed", "ticket + reopened", "closed", "conflict", "not found"];
    let mut outcomes = BTreeMap::<String, u32>::new();
    for sequence in 0..SEQUENCES_MAX {
        if sequence >= SEQUENCES_MIN && required.iter().all(|outcome| outcomes.contains_key(*outcome)) {
            break;
        }
        let calls = sequences.new_tree(&mut runner).expect("a sequence").current();
        let (session, contact) = app.session(&format!("visitor-{sequence}")).await;
        let received = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hello"})).await;
        let ticket = received.data(201)["ticketId"].as_i64().expect("ticket");
        let opened: DateTime<Utc> = Utc::now();
        let mut model = Model::opened(setup(&app.company), Line::Webchat, Some(app.company.support.0), opened);
        let first = Step { call: ticket::Call::Receive("hello".to_owned()), open_elsewhere: false };
        let mut message_count = count_messages(&model.step(&first, opened));
        for (step, call) in calls.iter().enumerate() {
            match call {
                Call::OpenAnother => open_another(&app, ticket, contact.0, &model).await,
                Call::OnTicket(ticket::Call::Transfer { queue: None, user: None }) => {
                    let reply = send_call(&app, ticket, &ticket::Call::Transfer { queue: None, user: None }).await;
                    assert_eq!(reply.invalid_fields(), ["queueId"], "step {step} of {calls:?}");
                }
                Call::OnTicket(call) => {
                    let outcome = model.step(&Step { call: call.clone(), open_elsewhere: false }, Utc::now());
                    let reply = send_call(&app, ticket, call).await;
                    let mut expected = expected_status(call, &outcome);
                    // The queue and the wrap-up type of a send are looked up before its ticket decides.
                    if outcome.is_err() && names_unknown_record(call) && reply.status == StatusCode::NOT_FOUND {
                        expected = 404;
                    }
                    assert_eq!(reply.status.as_u16(), expected, "step {step} of {calls:?}: {}", reply.body);
                    message_count += count_messages(&outcome);
                    *outcomes
                        .entry(outcome.map_or_else(str::to_owned, |recorded| recorded.join(" + ")))
                        .or_default() += 1;
                }
            }
            let shown = app.api.get(&format!("/tickets/{ticket}")).await;
            check_ticket(&model, shown.data(200));
        }
        // The list, from the tables, shows the same ticket as the actor.
        let listed = app.api.get(&format!("/tickets?contactId={contact}")).await;
        let row =
            listed.data(200).as_array().expect("rows").iter().find(|row| row["id"] == ticket).expect("listed").clone();
        assert_eq!(&row, app.api.get(&format!("/tickets/{ticket}")).await.data(200));
        assert_eq!(app.api.all(&format!("/tickets/{ticket}/messages")).await.len(), message_count);
    }
    for outcome in required {
        assert!(outcomes.contains_key(outcome), "`{outcome}` never came up in {outcomes:?}");
    }
    app.stop().await;
}
