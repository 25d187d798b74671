//! Deliveries: every event arrives as `GET /events` shows it, and the events of each record arrive in order.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotline_persistence::tables::webhooks::deliveries::{WebhookProgress, record};
use hotline_persistence::tables::webhooks::{self, WebhookId};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{add_webhook, deliveries, note, wait_for_deliveries, webhook_with_receiver, with_retry_pauses};
use crate::steps::{assert_timestamp, id};
use crate::support::service::TestOptions;
use crate::support::{Conduct, OwnApp, Receiver, TestApp, eventually};

/// The events of a company, as `GET /events` shows them.
async fn event_log(app: &TestApp) -> Vec<Value> {
    let reply = app.api.get("/events?limit=1000").await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["data"].as_array().expect("events").clone()
}

#[actix_web::test]
async fn every_event_after_the_creation_of_a_webhook_arrives_as_the_api_shows_it() {
    let app = TestApp::shared().await;
    let before = app.ticket("5511900000001").await;
    let is_opened = async || event_log(&app).await.iter().any(|event| event["type"] == "ticket.opened");
    eventually("the opening of the ticket is in the log", is_opened).await;
    let count_before = event_log(&app).await.len();
    let (webhook, receiver) = webhook_with_receiver(&app, &[]).await;
    note(&app.api, before.0, "first").await;
    let ticket = app.ticket("5511900000002").await;
    for text in ["a", "b", "c"] {
        note(&app.api, ticket.0, text).await;
    }
    app.api.post(&format!("/tickets/{ticket}/close"), json!({})).await.data(200);
    app.api.post(&format!("/tickets/{ticket}/reopen"), json!({})).await.data(200);
    eventually("all events are in the log", || async {
        event_log(&app).await.last().is_some_and(|last| last["type"] == "ticket.reopened")
    })
    .await;
    let expected = event_log(&app).await;
    let expected = &expected[count_before..];
    let received = receiver.has(expected.len()).await;
    let mut events: Vec<Value> = received.iter().map(crate::support::Received::event).collect();
    events.sort_by_key(|event| event["id"].as_i64());
    assert_eq!(events, expected);
    for request in &received {
        assert_eq!(request.header("content-type"), "application/json");
        assert_eq!(request.header("webhook-id"), format!("evt_{}_{}", app.company.id, request.id()));
        assert!(request.header("user-agent").starts_with("hotline/"));
    }
    assert!(receiver.connections() < received.len(), "each delivery opens a connection");
    let done = wait_for_deliveries(&app.api, webhook, "delivered", expected.len()).await;
    for (delivery, event) in done.iter().zip(expected) {
        assert_eq!((&delivery["id"], &delivery["eventId"]), (&event["id"], &event["id"]));
        assert_eq!((&delivery["type"], &delivery["createdAt"]), (&event["type"], &event["createdAt"]));
        assert_eq!(delivery["nextAttemptAt"], Value::Null);
        let attempts = delivery["attempts"].as_array().expect("attempts");
        assert_eq!(attempts.len(), 1);
        assert_eq!((&attempts[0]["status"], &attempts[0]["error"]), (&json!(200), &Value::Null));
        assert!(attempts[0]["durationMs"].is_u64());
        assert_timestamp(&attempts[0]["at"]);
        assert_timestamp(&delivery["updatedAt"]);
    }
    assert!(deliveries(&app.api, webhook, "pending").await.is_empty());
    assert!(deliveries(&app.api, webhook, "failed").await.is_empty());
    let filter = format!("/webhooks/{webhook}/deliveries?status=gone");
    assert_eq!(app.api.get(&filter).await.invalid_fields(), ["status"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_webhook_gets_only_events_of_its_types_and_its_company() {
    let app = TestApp::shared().await;
    let (other, other_api) = app.another_company().await;
    let (opened, notes) = (
        webhook_with_receiver(&app, &["ticket.opened"]).await,
        webhook_with_receiver(&app, &["note.added", "ticket.closed"]).await,
    );
    let their_receiver = Receiver::start().await;
    add_webhook(&other_api, &their_receiver.url(), &["ticket.opened"]).await;
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    app.api.post(&format!("/tickets/{ticket}/close"), json!({})).await.data(200);
    super::open_ticket(&other_api, &other, 7).await;
    assert_eq!(
        notes.1.has(2).await.iter().map(|r| r.event()["type"].clone()).collect::<Vec<_>>(),
        ["note.added", "ticket.closed"]
    );
    let received = opened.1.has(1).await;
    assert_eq!((received.len(), &received[0].event()["type"]), (1, &json!("ticket.opened")));
    let received = their_receiver.has(1).await;
    assert_eq!((received.len(), &received[0].event()["data"]["contact"]["name"]), (1, &json!("Contact 7")));
    assert_eq!(received[0].header("webhook-id"), format!("evt_{}_{}", other.id, received[0].id()));
    app.stop().await;
}

#[actix_web::test]
async fn a_webhook_with_more_types_gets_their_events_from_the_response_on() {
    let app = TestApp::shared().await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    let path = format!("/webhooks/{webhook}");
    for round in 0..20 {
        app.api.put(&path, json!({"types": ["ticket.closed"]})).await.data(200);
        app.api.put(&path, json!({"types": ["ticket.closed", "note.added"]})).await.data(200);
        let text = round.to_string();
        note(&app.api, ticket.0, &text).await;
        eventually("the note arrives", || async {
            receiver.received().iter().any(|request| request.event()["data"]["body"] == text.as_str())
        })
        .await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_position_that_was_reached_with_other_types_is_not_stored() {
    let app = OwnApp::start().await;
    let off = json!({"url": "https://hooks.example.com/", "types": ["note.added"], "active": false});
    let webhook = WebhookId::new(id(app.api.post("/webhooks", off).await.data(201)));
    let keys = &app.service.app.engine.store().keys;
    let endpoint = async || {
        let found = webhooks::endpoint(&app.db, keys, app.company.id, webhook).await;
        found.expect("the database answers").expect("a webhook")
    };
    let stale = endpoint().await;
    let more = json!({"types": ["note.added", "ticket.opened"]});
    app.api.put(&format!("/webhooks/{webhook}"), more).await.data(200);
    let from = stale.delivered_through;
    let progress = WebhookProgress {
        expected_delivered_through: from,
        delivered_through: from + 5,
        expected_failing_since: None,
        failing_since: None,
    };
    let mut db = app.db.acquire().await.expect("a connection");
    let is_current = record(&mut db, &stale, progress, &[], false).await.expect("written").is_current;
    let current = endpoint().await;
    assert_eq!((is_current, current.delivered_through), (false, from));
    let is_current = record(&mut db, &current, progress, &[], false).await.expect("written").is_current;
    assert_eq!((is_current, endpoint().await.delivered_through), (true, from + 5));
    drop(db);
    app.stop().await;
}

#[actix_web::test]
async fn events_of_a_ticket_arrive_in_order_however_often_deliveries_fail() {
    let app = OwnApp::start_with(with_retry_pauses(&[20, 30, 40, 50, 60, 70, 80, 90, 100])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    // Every third request fails, whichever that is.
    let mut count = 0;
    receiver.choose(move |_| {
        count += 1;
        Conduct::status(if count % 3 == 0 { 500 } else { 204 })
    });
    let mut tickets = Vec::new();
    for k in 0..4 {
        tickets.push(app.ticket(&format!("551190000000{k}")).await.0);
    }
    for text in 0..12 {
        for ticket in &tickets {
            note(&app.api, *ticket, &text.to_string()).await;
        }
    }
    wait_for_deliveries(&app.api, webhook, "delivered", 48).await;
    let mut firsts: HashMap<i64, Vec<i64>> = HashMap::new();
    for request in receiver.received() {
        let of_ticket = firsts.entry(request.ticket().expect("a ticket")).or_default();
        let value: i64 = request.event()["data"]["body"].as_str().and_then(|body| body.parse().ok()).expect("a number");
        // A repeated note is a delivery that failed, with no other note in between.
        match of_ticket.last() {
            Some(last) if *last == value => {}
            last => {
                assert_eq!(value, last.map_or(0, |last| last + 1), "out of order: {of_ticket:?}");
                of_ticket.push(value);
            }
        }
    }
    assert!(firsts.len() == 4 && firsts.values().all(|values| values.len() == 12), "{firsts:?}");
    let attempts: usize = deliveries(&app.api, webhook, "delivered")
        .await
        .iter()
        .map(|delivery| delivery["attempts"].as_array().map_or(0, Vec::len))
        .sum();
    assert_eq!(attempts, receiver.count(), "an attempt is not recorded");
    app.stop().await;
}

#[actix_web::test]
async fn events_that_were_not_delivered_before_a_stop_are_delivered_after_the_restart() {
    // There are so many attempts that no delivery is given up, however long the test takes.
    let options = with_retry_pauses(&[50; 10_000]);
    let app = OwnApp::start_with(options.clone()).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::Close);
    let ticket = app.ticket("5511900000001").await;
    for text in 0..20 {
        note(&app.api, ticket.0, &text.to_string()).await;
    }
    receiver.has(2).await;
    let mut failed = 0;
    let app = app
        .restarted(&options, async |_| {
            failed = receiver.count();
            receiver.behave(Conduct::status(200));
        })
        .await;
    wait_for_deliveries(&app.api, webhook, "delivered", 20).await;
    let bodies: Vec<Value> =
        receiver.received()[failed..].iter().map(|request| request.event()["data"]["body"].clone()).collect();
    assert_eq!(bodies, (0..20).map(|text| json!(text.to_string())).collect::<Vec<_>>());
    app.stop().await;
}

#[actix_web::test]
async fn a_webhook_that_is_enabled_again_gets_the_events_it_missed() {
    let app = TestApp::shared().await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "before").await;
    receiver.has(1).await;
    let path = format!("/webhooks/{webhook}");
    app.api.put(&path, json!({"active": false})).await.data(200);
    // This webhook is created later: once it gets an event, the process that delivers knows both webhooks.
    let other = webhook_with_receiver(&app, &["ticket.opened", "note.added"]).await;
    app.ticket("5511900000002").await;
    other.1.has(1).await;
    note(&app.api, ticket.0, "meanwhile").await;
    note(&app.api, ticket.0, "after").await;
    other.1.has(3).await;
    assert_eq!(receiver.count(), 1, "an event is delivered to a disabled webhook");
    app.api.put(&path, json!({"active": true})).await.data(200);
    let bodies: Vec<Value> = receiver.has(3).await.iter().map(|r| r.event()["data"]["body"].clone()).collect();
    assert_eq!(bodies, ["before", "meanwhile", "after"]);
    app.stop().await;
}

#[actix_web::test]
async fn deliveries_of_a_deleted_webhook_are_removed() {
    let app = TestApp::shared().await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    receiver.has(1).await;
    wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    assert_eq!(app.api.delete(&format!("/webhooks/{webhook}")).await.status, 204);
    eventually("nothing is left", || async {
        let left: i64 = sqlx::query_scalar(
            "select (select count(*) from webhook_deliveries where company_id = $1)
                     + (select count(*) from removals where company_id = $1)",
        )
        .bind(app.company.id)
        .fetch_one(&app.db)
        .await
        .expect("count");
        left == 0
    })
    .await;
    app.stop().await;
}

/// The pause before a courier (the task that delivers to one webhook) starts again after it has failed.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// Makes a courier panic at a failpoint. Asserts that it pauses before each restart, and that it delivers once the
/// failpoint is removed.
async fn check_restarts(point: &str) {
    let app = OwnApp::start().await;
    let failures: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = failures.clone();
    fail::cfg_callback(point, move || {
        noted.lock().push(Instant::now());
        panic!("a defect");
    })
    .expect("failpoint");
    let (_, receiver) = webhook_with_receiver(&app, &["contact.created"]).await;
    eventually("it has failed three times", || async { failures.lock().len() >= 3 }).await;
    fail::remove(point);
    let failures = failures.lock().clone();
    assert!(failures.windows(2).all(|two| two[1] - two[0] >= RESTART_PAUSE), "without a pause: {failures:?}");
    app.api.post("/contacts", json!({"name": "Ana", "number": "5511900000001"})).await.data(201);
    receiver.has(1).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_courier_that_fails_immediately_starts_again_after_a_pause() {
    check_restarts("courier_started").await;
}

#[actix_web::test]
async fn a_courier_whose_statement_fails_immediately_starts_again_after_a_pause() {
    check_restarts("courier_read").await;
}

#[actix_web::test]
async fn deliveries_are_made_although_the_search_for_webhooks_has_panicked() {
    let app = OwnApp::start().await;
    let (_, receiver) = webhook_with_receiver(&app, &["contact.created"]).await;
    let app = app
        .restarted(&TestOptions::default(), async |_| {
            // More often than a start searches without a failure: once at first, and once when it begins to listen.
            fail::cfg("webhooks_searched", "3*panic(a defect)").expect("failpoint");
        })
        .await;
    app.api.post("/contacts", json!({"name": "Ana", "number": "5511900000001"})).await.data(201);
    receiver.has(1).await;
    app.stop().await;
}
