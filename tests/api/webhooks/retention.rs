//! How long deliveries are kept, and deliveries of a company that is dropped from memory.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use hotline::service::EventOptions;
use hotline_persistence::tables::webhooks::deliveries::REMOVED_AT_ONCE;
use serde_json::{Value, json};

use super::{add_webhook, deliveries, note, wait_for_deliveries, webhook_with_receiver, with_retry_pauses};
use crate::events::days::{create_partitions, drop_expired};
use crate::steps::id;
use crate::support::service::TestOptions;
use crate::support::{Conduct, OwnApp, Received, Receiver, eventually};

/// The text of the note that a request delivers.
fn note_text(request: &Received) -> String {
    request.event()["data"]["body"].as_str().expect("a note").to_owned()
}

#[actix_web::test]
async fn deliveries_are_removed_with_the_days_of_their_events_and_those_behind_them_are_sent() {
    const HOUR_MS: u64 = 3_600_000;
    // The service itself drops none of the days that the test makes.
    let events = EventOptions { retention_days: 366, ..EventOptions::default() };
    let app = OwnApp::start_with(TestOptions { events, ..with_retry_pauses(&[HOUR_MS]) }).await;
    let db = &app.db;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let (stuck, fine) = (app.ticket("5511900000001").await, app.ticket("5511900000002").await);
    receiver.choose(|request| Conduct::status(if note_text(request) == "a" { 500 } else { 200 }));
    note(&app.api, stuck.0, "a").await;
    wait_for_deliveries(&app.api, webhook, "pending", 1).await;
    note(&app.api, fine.0, "b").await;
    let last_old_event = wait_for_deliveries(&app.api, webhook, "delivered", 1).await[0]["id"].as_i64().expect("an id");
    note(&app.api, stuck.0, "c").await;
    let pending = wait_for_deliveries(&app.api, webhook, "pending", 2).await;
    assert_eq!(pending[1]["nextAttemptAt"], Value::Null, "it does not wait for the delivery before it");
    // There are more old deliveries than are removed at once.
    sqlx::query(
        "insert into webhook_deliveries (company_id, webhook_id, event_id, type, lane, status, created_at)
         select $1, $2, -k, 'note.added', 'ticket:' || k, 'delivered', now() from generate_series(1, $3) k",
    )
    .bind(app.company.id)
    .bind(webhook)
    .bind(REMOVED_AT_ONCE * 2 + 1)
    .execute(db)
    .await
    .expect("deliveries");

    let before = |days| Utc::now() - TimeDelta::days(days);
    create_partitions(db, before(40)).await;
    let moved = sqlx::query("update events set created_at = $2 where company_id = $1 and last_id <= $3");
    moved.bind(app.company.id).bind(before(40)).bind(last_old_event).execute(db).await.expect("moved");
    drop_expired(db, before(30)).await;
    // A change of the webhook makes the service look at it, as it does every hour.
    app.api.put(&format!("/webhooks/{webhook}"), json!({"types": ["note.added"]})).await.data(200);
    eventually("only the delivery of today is left, and it is delivered", || async {
        let left = "select array_agg(event_id || ' ' || status) from webhook_deliveries where company_id = $1";
        let left: Option<Vec<String>> =
            sqlx::query_scalar(left).bind(app.company.id).fetch_one(db).await.expect("deliveries");
        left == Some(vec![format!("{} delivered", pending[1]["id"])])
    })
    .await;
    assert_eq!(deliveries(&app.api, webhook, "pending").await, Vec::<Value>::new());
    assert_eq!(receiver.received().iter().map(note_text).collect::<Vec<_>>(), ["a", "b", "c"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_company_that_is_dropped_from_memory_gets_all_events_in_order_and_so_do_others() {
    const ROUNDS: usize = 5;
    const NOTES: usize = 8;
    let app = OwnApp::start_with(with_retry_pauses(&[50; 4])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let (other, other_api) = app.another_company().await;
    let their_receiver = Receiver::start().await;
    let their_webhook = add_webhook(&other_api, &their_receiver.url(), &["note.added"]).await;
    let their_contact =
        id(other_api.post("/contacts", json!({"name": "Ana", "number": "5511900000009"})).await.data(201));
    let open_theirs = json!({"contactId": their_contact, "channelId": other.phone});
    let their_ticket = id(other_api.post("/tickets", open_theirs).await.data(201));
    let tickets = [app.ticket("5511900000001").await.0, app.ticket("5511900000002").await.0];

    // A delivery that is under way when the company is dropped is not known to have arrived, and is sent again.
    let mut is_first = true;
    receiver.choose(move |_| if std::mem::take(&mut is_first) { Conduct::Hang } else { Conduct::status(200) });
    note(&app.api, tickets[0], "0").await;
    receiver.has(1).await;
    let forget = || async { app.service.forget(app.company.id).await.is_ok() };
    eventually("it is dropped", forget).await;
    let twice = receiver.has(2).await;
    assert_eq!(twice[0].header("webhook-id"), twice[1].header("webhook-id"));

    let mut expected = vec!["0".to_owned()];
    for round in 0..ROUNDS {
        for number in 0..NOTES {
            let text = format!("{}", 1 + round * NOTES + number);
            note(&app.api, tickets[number % 2], &text).await;
            note(&other_api, their_ticket, &text).await;
            expected.push(text);
        }
        eventually("it is dropped", forget).await;
    }
    let delivered = wait_for_deliveries(&app.api, webhook, "delivered", expected.len()).await;
    assert!(delivered.iter().all(|one| one["type"] == "note.added"), "{delivered:?}");
    assert!(deliveries(&app.api, webhook, "pending").await.is_empty());
    for ticket in tickets {
        // Only the first arrival of each note counts: the delivery that was under way arrives again.
        let mut first: Vec<String> = Vec::new();
        for request in receiver.received().iter().filter(|request| request.ticket() == Some(ticket)) {
            let text = note_text(request);
            if !first.contains(&text) {
                first.push(text);
            }
        }
        let of_ticket = |text: &&String| {
            let number: usize = text.parse().expect("a number");
            (number == 0 && ticket == tickets[0]) || (number > 0 && tickets[(number - 1) % NOTES % 2] == ticket)
        };
        assert_eq!(first, expected.iter().filter(of_ticket).cloned().collect::<Vec<_>>(), "missed or out of order");
    }
    wait_for_deliveries(&other_api, their_webhook, "delivered", ROUNDS * NOTES).await;
    assert_eq!(
        their_receiver.received().iter().map(note_text).collect::<Vec<_>>(),
        expected[1..],
        "missed, sent twice or out of order"
    );
    app.stop().await;
}

/// A read of webhooks that waits for a lock keeps no other read from starting.
#[actix_web::test]
async fn the_webhooks_of_companies_are_read_in_parallel() {
    const OTHERS: usize = 6;
    /// How many companies' webhooks are read at a time.
    const AT_ONCE: i64 = 4;
    let app = OwnApp::start().await;
    let mut others = Vec::new();
    for _ in 0..OTHERS {
        others.push(app.another_company().await.0.id);
    }
    let mut lock = app.db.begin().await.expect("a transaction");
    sqlx::query("lock table webhooks in access exclusive mode").execute(&mut *lock).await.expect("a lock");
    let store = app.service.app.engine.store();
    others.iter().for_each(|company| store.webhooks.publish(*company));
    eventually("as many as may be are read at a time", || async {
        let reads = "select count(*) from pg_stat_activity where datname = current_database()
            and wait_event_type = 'Lock' and query like 'select company_id, id, url, types, secret, old_secret,%'";
        sqlx::query_scalar::<_, i64>(reads).fetch_one(&app.db).await.expect("the sessions") == AT_ONCE
    })
    .await;
    lock.rollback().await.expect("the lock is released");
    app.stop().await;
}

#[actix_web::test]
async fn a_company_is_dropped_from_memory_although_the_webhooks_of_others_cannot_be_read() {
    /// How many other companies there are. The read of the webhooks of each fails after five seconds.
    const OTHERS: usize = 6;
    let app = OwnApp::start().await;
    let mut others = Vec::new();
    for _ in 0..OTHERS {
        others.push(app.another_company().await.0.id);
    }
    let mut lock = app.db.begin().await.expect("a transaction");
    sqlx::query("lock table webhooks in access exclusive mode").execute(&mut *lock).await.expect("a lock");
    let store = app.service.app.engine.store();
    others.iter().for_each(|company| store.webhooks.publish(*company));
    eventually("one of them is read", || async {
        let waits = "select exists (select from pg_locks where not granted and relation = 'webhooks'::regclass
            and database = (select oid from pg_database where datname = current_database()))";
        sqlx::query_scalar::<_, bool>(waits).fetch_one(&app.db).await.expect("locks")
    })
    .await;
    // A machine that stalls may delay it once; waiting for the others would delay it every time.
    eventually("it is dropped soon", || async {
        let begun = Instant::now();
        app.service.forget(app.company.id).await.is_ok() && begun.elapsed() < Duration::from_secs(15)
    })
    .await;
    lock.rollback().await.expect("the lock is released");
    app.stop().await;
}
