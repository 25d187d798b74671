//! Applying every event gives what the API shows.

use std::collections::BTreeMap;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Value, json};

use super::after;
use crate::steps::id;
use crate::support::{OwnApp, TestApp, check_events, eventually};

/// Random steps of one history.
const STEPS: usize = 160;

/// The records as a reader of every event has them, by noun and id.
#[derive(Default)]
struct ReplayedRecords {
    contacts: BTreeMap<String, Value>,
    tickets: BTreeMap<String, Value>,
    messages: BTreeMap<String, Value>,
    cards: BTreeMap<String, Value>,
    schedules: BTreeMap<String, Value>,
    sessions: BTreeMap<String, Value>,
}

impl ReplayedRecords {
    fn apply(&mut self, event: &Value) {
        let kind = event["type"].as_str().expect("a type");
        let (data, key) = (event["data"].clone(), event["data"]["id"].to_string());
        match kind.split_once('.').expect("a noun and a verb") {
            ("contact", "deleted") => {
                self.contacts.remove(&key);
                // Everything of the contact is deleted with it.
                let id = &data["id"];
                let is_theirs = |ticket: &Value| ticket["contact"]["id"] == *id;
                self.tickets.retain(|_, ticket| !is_theirs(ticket));
                self.messages.retain(|_, message| message["contactId"] != *id);
                self.sessions.retain(|_, session| session["contact"]["id"] != *id);
                // A pending schedule fails by an event of its own.
                self.schedules
                    .retain(|_, schedule| schedule["contact"]["id"] != *id || schedule["status"] == "pending");
            }
            ("contact", _) => {
                self.contacts.insert(key, data);
            }
            ("ticket", verb) => {
                if verb == "read" {
                    let is_unread = |message: &Value| {
                        message["ticketId"] == data["id"]
                            && message["direction"] == "inbound"
                            && message["readAt"].is_null()
                    };
                    for message in self.messages.values_mut().filter(|message| is_unread(message)) {
                        message["readAt"] = event["createdAt"].clone();
                    }
                }
                self.tickets.insert(key, data);
            }
            ("message" | "note", verb) => {
                if data["deleted"] == json!(true) {
                    return;
                }
                let ticket = self.tickets.get_mut(&data["ticketId"].to_string()).expect("its ticket is known");
                let is_new = matches!(verb, "received" | "created");
                if is_new && ticket["lastMessage"]["id"].as_i64() < data["id"].as_i64() {
                    // The message changes its ticket too.
                    let fields =
                        ["id", "body", "direction", "createdAt"].map(|name| (name.to_owned(), data[name].clone()));
                    ticket["lastMessage"] = Value::Object(fields.into_iter().collect());
                    ticket["lastActivityAt"] = data["createdAt"].clone();
                    if verb == "created" {
                        ticket["waitingSince"] = Value::Null;
                    } else if ticket["waitingSince"].is_null() {
                        ticket["waitingSince"] = data["createdAt"].clone();
                    }
                    if verb == "received" {
                        ticket["unreadCount"] = json!(ticket["unreadCount"].as_i64().expect("a number") + 1);
                    }
                    if verb == "created" && ticket["firstResponseAt"].is_null() {
                        ticket["firstResponseAt"] = data["createdAt"].clone();
                    }
                }
                self.messages.insert(key, data);
            }
            ("card", "deleted") => drop(self.cards.remove(&key)),
            ("card", _) => drop(self.cards.insert(key, data)),
            ("schedule", _) => drop(self.schedules.insert(key, data)),
            ("session", _) => drop(self.sessions.insert(key, data)),
            ("channel", _) => {}
            other => panic!("unexpected event {other:?}"),
        }
    }
}

/// A record without these fields, which changes of other records change too.
fn without_fields(record: &Value, fields: &[&str]) -> Value {
    let mut record = record.clone();
    for field in fields {
        record.as_object_mut().expect("a record").remove(*field);
    }
    record
}

/// What the steps refer to and do not change.
struct Fixture {
    board: Value,
    /// The stages of the board.
    lists: Vec<Value>,
    tag: i64,
}

async fn take_random_step(app: &TestApp, random: &mut impl Rng, number: usize, fixture: &Fixture) {
    let (api, company) = (&app.api, &app.company);
    let Fixture { board, lists, tag } = fixture;
    let one = |rows: Vec<Value>, random: &mut dyn FnMut(usize) -> usize| {
        if rows.is_empty() { None } else { Some(rows[random(rows.len())].clone()) }
    };
    let mut pick = |count: usize| random.random_range(0..count);
    let ticket = one(api.all("/tickets").await, &mut pick).map(|ticket| id(&ticket));
    let contact = one(api.all("/contacts").await, &mut pick).map(|contact| id(&contact));
    let card = one(api.all("/crm/cards").await, &mut pick).map(|card| id(&card));
    let text = format!("step {number}");
    let user = [company.ana.0, company.ben.0].choose(random).copied();
    match random.random_range(0..20) {
        0 => drop(api.post("/contacts", json!({"name": text, "email": format!("{number}@example.com")})).await),
        1 => drop(app.session(&format!("visitor-{number}")).await),
        2..5 => {
            let sessions: Vec<String> = sqlx::query_scalar("select id from webchat_sessions where company_id = $1")
                .bind(company.id)
                .fetch_all(&app.db)
                .await
                .expect("sessions");
            if let Some(session) = sessions.choose(random) {
                api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": text})).await;
                if random.random_bool(0.1) {
                    api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await;
                }
            }
        }
        5..8 => {
            if let Some(ticket) = ticket {
                let send =
                    json!({"ticketId": ticket, "type": "text", "body": text, "reopenTicket": random.random_bool(0.5)});
                api.post("/messages", send).await;
            }
        }
        8..13 => {
            if let Some(ticket) = ticket {
                let (verb, body) = match random.random_range(0..5) {
                    0 => ("transfer", json!({"userId": user})),
                    1 => ("close", json!({"wrapupTypeId": company.solved})),
                    2 => ("reopen", json!({})),
                    3 => ("read", json!({})),
                    _ => ("notes", json!({"body": text})),
                };
                api.post(&format!("/tickets/{ticket}/{verb}"), body).await;
            }
        }
        13 => {
            if let Some(contact) = contact {
                api.put(&format!("/contacts/{contact}"), json!({"name": text, "code": null, "tagIds": [tag]})).await;
            }
        }
        14 => {
            if let Some(contact) = contact {
                if random.random_bool(0.5) {
                    api.delete(&format!("/contacts/{contact}/tags/{tag}")).await;
                } else {
                    api.delete(&format!("/contacts/{contact}")).await;
                }
            }
        }
        15 => drop(api.post("/crm/cards", json!({"boardId": board, "name": text, "assignedToUserId": user})).await),
        16..18 => {
            if let Some(card) = card {
                let path = format!("/crm/cards/{card}");
                let list = lists.choose(random).expect("a stage");
                match random.random_range(0..6) {
                    0 => drop(api.post(&format!("{path}/move"), json!({"crmBoardListId": list["id"]})).await),
                    1 => drop(api.post(&format!("{path}/win"), json!({})).await),
                    2 => drop(api.post(&format!("{path}/lose"), json!({"statusReason": text})).await),
                    3 => drop(api.post(&format!("{path}/reopen"), json!({})).await),
                    4 => drop(api.put(&path, json!({"description": text})).await),
                    _ => drop(api.delete(&path).await),
                }
            }
        }
        _ => {
            let Some(contact) = contact else { return };
            let at = "2099-01-31T12:00:00.000Z";
            let schedule = json!({"contactId": contact, "channelId": company.phone, "body": text, "sendAt": at});
            let made = api.post("/schedules", schedule).await;
            let path = format!("/schedules/{}", made.data(201)["id"]);
            match random.random_range(0..3) {
                0 => drop(api.put(&path, json!({"body": "otherwise"})).await),
                1 => drop(api.delete(&path).await),
                _ => {}
            }
        }
    }
}

#[actix_web::test]
async fn events_replayed_from_the_first_give_the_records_the_api_shows() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let app = OwnApp::start().await;
    let board = app.api.post("/crm/boards", json!({"name": "Sales"})).await.data(201)["id"].clone();
    let lists =
        app.api.get(&format!("/crm/boards/{board}")).await.data(200)["lists"].as_array().expect("lists").clone();
    let tag = id(app.api.post("/tags", json!({"name": "VIP"})).await.data(201));
    let fixture = Fixture { board, lists, tag };
    for number in 0..STEPS {
        take_random_step(&app, &mut random, number, &fixture).await;
    }
    // Each noun has a record at the end, whatever the history has deleted.
    let (session, _) = app.session("last").await;
    app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "last"})).await.data(201);
    let contact = app.api.post("/contacts", json!({"name": "last"})).await.data(201)["id"].clone();
    app.api.post("/crm/cards", json!({"boardId": fixture.board, "name": "last"})).await.data(201);
    let schedule =
        json!({"contactId": contact, "channelId": app.company.phone, "body": "last", "sendAt": "2099-01-31T12:00:00Z"});
    app.api.post("/schedules", schedule).await.data(201);
    // First, work that continues after an answer, such as naming a contact, has to end.
    eventually("the log is flushed", || async {
        let log = &app.service.app.engine.store().log;
        log.flushed() == log.appended()
    })
    .await;
    let events = after(&app.api, 0).await;
    let mut replayed = ReplayedRecords::default();
    events.iter().for_each(|event| replayed.apply(event));
    let shown = async |path: &str| -> BTreeMap<String, Value> {
        app.api.all(path).await.into_iter().map(|record| (record["id"].to_string(), record)).collect()
    };
    let assert_same =
        |noun: &str, replayed: &BTreeMap<String, Value>, shown: &BTreeMap<String, Value>, ignored: &[&str]| {
            assert_eq!(replayed.keys().collect::<Vec<_>>(), shown.keys().collect::<Vec<_>>(), "{noun}");
            assert!(!shown.is_empty(), "no {noun} at all");
            for (id, record) in shown {
                assert_eq!(without_fields(&replayed[id], ignored), without_fields(record, ignored), "{noun} {id}");
            }
        };
    // A contact's last channel and a ticket's last change follow from messages.
    assert_same("contact", &replayed.contacts, &shown("/contacts").await, &["lastChannel", "updatedAt"]);
    assert_same("ticket", &replayed.tickets, &shown("/tickets").await, &["updatedAt", "contact"]);
    // The event of an inbound message contains its ticket and contact.
    let messages = shown("/messages").await;
    for (id, message) in &mut replayed.messages {
        // No event is dated before the previous one, so the event of a read may be dated later than the read itself.
        let (known_at, read_at) = (message["readAt"].clone(), &messages[id]["readAt"]);
        if message["direction"] == "inbound" && read_at.as_str().is_some_and(|at| known_at.as_str() > Some(at)) {
            message["readAt"] = read_at.clone();
        }
    }
    assert_same("message", &replayed.messages, &messages, &["ticket", "contact", "updatedAt"]);
    assert_same("card", &replayed.cards, &shown("/crm/cards").await, &["contacts", "updatedAt"]);
    assert_same("schedule", &replayed.schedules, &shown("/schedules").await, &["contact"]);
    for (id, session) in &replayed.sessions {
        let now = app.api.get(&format!("/webchat/sessions/{}", id.trim_matches('"'))).await.data(200).clone();
        let ignored = ["contact", "lastSeenAt", "ticketId"];
        assert_eq!(without_fields(session, &ignored), without_fields(&now, &ignored));
    }
    assert!(!replayed.sessions.is_empty());
    app.stop().await;
}

#[actix_web::test]
async fn the_log_is_complete_after_a_history_without_deletions() {
    let app = TestApp::shared().await;
    let (session, _) = app.session("visitor").await;
    for number in 0..5 {
        let body = json!({"body": format!("hello {number}")});
        let said = app.api.post(&format!("/webchat/sessions/{session}/messages"), body).await;
        let ticket = id(&json!({"id": said.data(201)["ticketId"]}));
        let send = json!({"ticketId": ticket, "type": "text", "body": "welcome"});
        app.api.post("/messages", send).await.data(202);
        app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "noted"})).await.data(201);
        app.api.post(&format!("/tickets/{ticket}/close"), json!({"wrapupTypeId": app.company.solved})).await.data(200);
    }
    app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200);
    after(&app.api, 0).await;
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}
