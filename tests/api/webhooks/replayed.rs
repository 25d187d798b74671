//! Replays: deliveries that are sent again on request.

use hotline_persistence::tables::webhooks::replays::SCHEDULED_AT_ONCE;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::{
    add_webhook, deliveries, note, wait_for_deliveries, wait_for_retry, webhook_with_receiver, with_retry_pauses,
};
use crate::steps::listed;
use crate::support::{Conduct, OwnApp, TestApp, eventually};

fn note_texts(receiver: &crate::support::Receiver) -> Vec<String> {
    let body =
        |request: &crate::support::Received| request.event()["data"]["body"].as_str().unwrap_or_default().to_owned();
    receiver.received().iter().map(body).collect()
}

#[actix_web::test]
async fn one_delivery_all_failed_ones_or_all_events_after_an_id_are_sent_again() {
    let app = OwnApp::start_with(with_retry_pauses(&[])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let path = format!("/webhooks/{webhook}/replay");
    let ticket = app.ticket("5511900000001").await;
    receiver.choose(|request| {
        let is_bad = request.event()["data"]["body"] != "a";
        Conduct::status(if is_bad { 500 } else { 200 })
    });
    for text in ["a", "b", "c"] {
        note(&app.api, ticket.0, text).await;
    }
    let failed = wait_for_deliveries(&app.api, webhook, "failed", 2).await;
    let delivered = wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    receiver.behave(Conduct::status(200));
    let replay = async |body: Value| app.api.post(&path, body).await.data(202)["deliveries"].clone();

    // A delivery that has arrived is delivered once more.
    assert_eq!(replay(json!({"deliveryId": delivered[0]["id"]})).await, 1);
    receiver.has(4).await;
    wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    assert_eq!(note_texts(&receiver), ["a", "b", "c", "a"]);
    let again = receiver.received();
    assert_eq!(again[0].header("webhook-id"), again[3].header("webhook-id"), "a repeated delivery has another id");

    // The failed deliveries are sent again in their order.
    assert_eq!(replay(json!({"failedSince": "2099-01-01T00:00:00Z"})).await, 0);
    assert_eq!(replay(json!({"failedSince": failed[0]["updatedAt"]})).await, 2);
    receiver.has(6).await;
    let all = wait_for_deliveries(&app.api, webhook, "delivered", 3).await;
    assert_eq!(note_texts(&receiver)[4..], ["b", "c"]);
    let attempt_counts: Vec<usize> = all.iter().map(|one| one["attempts"].as_array().map_or(0, Vec::len)).collect();
    assert_eq!(attempt_counts, [2, 2, 2]);
    assert!(deliveries(&app.api, webhook, "failed").await.is_empty());

    // Everything after the first event is sent again, and then a new event.
    let after = delivered[0]["id"].as_i64().expect("an id");
    let event_count = replay(json!({"after": after})).await;
    assert!(event_count.as_i64().is_some_and(|count| count >= 2), "{event_count}");
    receiver.has(8).await;
    note(&app.api, ticket.0, "d").await;
    receiver.has(9).await;
    assert_eq!(note_texts(&receiver)[6..], ["b", "c", "d"]);
    wait_for_deliveries(&app.api, webhook, "delivered", 4).await;
    // Each was sent once, although the replays disturbed the courier, which delivers to the webhook.
    assert_eq!(receiver.count(), 9);
    app.stop().await;
}

#[actix_web::test]
async fn a_replayed_delivery_waits_for_those_before_it_of_its_ticket() {
    // The retry is due after an hour, for which the test does not wait.
    let app = OwnApp::start_with(with_retry_pauses(&[3_600_000])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::status(500));
    let ticket = app.ticket("5511900000001").await;
    for text in ["a", "b", "c"] {
        note(&app.api, ticket.0, text).await;
    }
    let pending = wait_for_retry(&app.api, webhook, 3).await;
    receiver.behave(Conduct::status(200));
    let replay = async |delivery: &Value| {
        let path = format!("/webhooks/{webhook}/replay");
        app.api.post(&path, json!({"deliveryId": delivery["id"]})).await.data(202);
    };
    replay(&pending[2]).await;
    replay(&pending[1]).await;
    let waiting = deliveries(&app.api, webhook, "pending").await;
    let is_scheduled: Vec<bool> = waiting.iter().map(|one| one["nextAttemptAt"].is_string()).collect();
    assert_eq!(is_scheduled, [true, false, false], "a delivery behind another one is scheduled");
    replay(&pending[0]).await;
    wait_for_deliveries(&app.api, webhook, "delivered", 3).await;
    assert_eq!(note_texts(&receiver), ["a", "a", "b", "c"]);
    app.stop().await;
}

#[actix_web::test]
async fn deliveries_are_filtered_by_their_creation_and_their_last_change() {
    let app = OwnApp::start_with(with_retry_pauses(&[])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    receiver.behave(Conduct::status(500));
    for text in ["a", "b"] {
        note(&app.api, ticket.0, text).await;
    }
    let failed = wait_for_deliveries(&app.api, webhook, "failed", 2).await;
    let ids: Vec<i64> = failed.iter().filter_map(|one| one["id"].as_i64()).collect();
    // The deliveries get old times.
    for statement in [
        "update webhook_deliveries set created_at = '2020-01-01T10:20:00Z', updated_at = '2020-01-01T10:20:00Z'
         where company_id = $1",
        "update zones set created_from = '2020-01-01T10:00:00Z', created_until = '2020-01-01T11:00:00Z',
             updated_until = '2020-01-01T11:00:00Z' where company_id = $1 and noun = 'delivery'",
    ] {
        let done = sqlx::query(statement).bind(app.company.id).execute(&app.db).await.expect("an update");
        assert!(done.rows_affected() > 0, "{statement}");
    }
    let listed_ids = async |query: &str| listed(&app.api, &format!("/webhooks/{webhook}/deliveries?{query}")).await;
    let since = "updatedFrom=2020-01-01T10:20:01Z";
    assert_eq!(listed_ids("createdTo=2020-01-01T10:20:00Z").await, ids);
    assert_eq!(listed_ids("createdFrom=2020-01-01T10:20:00Z&order=desc").await, [ids[1], ids[0]]);
    assert_eq!(listed_ids("createdFrom=2020-01-01T10:20:01Z").await, [0_i64; 0]);
    assert_eq!(listed_ids(since).await, [0_i64; 0]);

    receiver.behave(Conduct::status(200));
    let path = format!("/webhooks/{webhook}/replay");
    assert_eq!(app.api.post(&path, json!({"deliveryId": ids[1]})).await.data(202)["deliveries"], 1);
    assert_eq!(listed_ids(since).await, ids[1..], "a delivery that was scheduled again has its old updatedAt");
    wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    assert_eq!(listed_ids(since).await, ids[1..]);
    assert_eq!(app.api.post(&path, json!({"failedSince": "2020-01-01T10:20:00Z"})).await.data(202)["deliveries"], 1);
    assert_eq!(listed_ids(since).await, ids);
    assert_eq!(listed_ids(&format!("status=delivered&{since}")).await.last(), ids.last());
    app.stop().await;
}

#[actix_web::test]
async fn a_replay_with_a_key_happens_once() {
    let app = TestApp::shared().await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    let delivered = wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    let body = json!({"deliveryId": delivered[0]["id"]}).to_string();
    let path = format!("/webhooks/{webhook}/replay");
    let keyed = || crate::support::Reply::of(app.api.keyed(reqwest::Method::POST, &path, "once", body.clone()));
    assert_eq!(keyed().await.data(202), keyed().await.data(202));
    receiver.has(2).await;
    eventually("it is noted", || async {
        deliveries(&app.api, webhook, "delivered")
            .await
            .first()
            .is_some_and(|one| one["attempts"].as_array().map(Vec::len) == Some(2))
    })
    .await;
    assert_eq!(receiver.count(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn attempts_of_a_delivery_are_kept_up_to_twenty() {
    let app = OwnApp::start_with(with_retry_pauses(&[5; 30])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::status(500));
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    let failed = wait_for_deliveries(&app.api, webhook, "failed", 1).await;
    assert_eq!(failed[0]["attempts"].as_array().map(Vec::len), Some(20));
    assert_eq!(receiver.count(), 31);
    app.stop().await;
}

/// Makes PostgreSQL refuse a statement that changes more than `SCHEDULED_AT_ONCE` deliveries.
async fn refuse_many(app: &TestApp) {
    for statement in [
        format!(
            "create function refuse_many() returns trigger language plpgsql as $$ begin
                 if (select count(*) from changed) > {SCHEDULED_AT_ONCE} then raise exception 'too many'; end if;
                 return null;
             end $$"
        ),
        "create trigger refuse_many after update on webhook_deliveries referencing new table as changed
             for each statement execute function refuse_many()"
            .to_owned(),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(&app.db).await.expect("a statement");
    }
}

#[actix_web::test]
async fn a_replay_of_many_deliveries_changes_a_bounded_number_in_each_statement() {
    /// How many deliveries have failed, and how many wait for a retry: the last step changes one of each.
    const COUNT: i64 = SCHEDULED_AT_ONCE * 2 + 1;
    /// How many records the failed deliveries belong to.
    const LANES: i64 = 1_000;
    let app = OwnApp::start().await;
    let webhook = add_webhook(&app.api, "https://hooks.example.com/", &["note.added"]).await;
    // Their events are beyond the end of the log, so that none of them is sent.
    for statement in [
        "insert into webhook_deliveries (company_id, webhook_id, event_id, type, lane, status, tries, created_at)
         select $1, $2, 1000000 + k, 'note.added', 'ticket:' || k % $4, 'failed', 10, now()
         from generate_series(1, $3) k",
        "insert into webhook_deliveries
             (company_id, webhook_id, event_id, type, lane, status, tries, next_attempt_at, created_at)
         select $1, $2, 2000000 + k, 'note.added', 'contact:' || k % (1000 * $4), 'pending', 1,
             now() + interval '1 hour' + k * interval '1 ms', now()
         from generate_series(1, $3) k",
    ] {
        let insert = sqlx::query(statement).bind(app.company.id).bind(webhook).bind(COUNT).bind(LANES);
        insert.execute(&app.db).await.expect("deliveries");
    }
    // As PostgreSQL does by itself a minute later: its plans depend on it.
    sqlx::query("analyze webhook_deliveries").execute(&app.db).await.expect("statistics");
    refuse_many(&app).await;
    let path = format!("/webhooks/{webhook}");
    let replayed = app.api.post(&format!("{path}/replay"), json!({"failedSince": "2020-01-01T00:00:00Z"})).await;
    assert_eq!(replayed.data(202)["deliveries"], COUNT);
    let counts = async |statement: &'static str| {
        let counts = sqlx::query_as::<_, (i64, i64)>(statement).bind(app.company.id).bind(webhook);
        counts.fetch_one(&app.db).await.expect("counts")
    };
    let all = "select count(*), count(next_attempt_at) from webhook_deliveries
         where company_id = $1 and webhook_id = $2 and event_id < 2000000 and status = 'pending' and tries = 0";
    assert_eq!(counts(all).await, (COUNT, LANES), "all are scheduled, and the first of each record is due");
    let due = "select min(event_id), max(event_id) from webhook_deliveries
         where company_id = $1 and webhook_id = $2 and event_id < 2000000 and next_attempt_at is not null";
    assert_eq!(counts(due).await, (1_000_001, 1_000_000 + LANES), "others than the first are due");

    for active in [false, true] {
        app.api.put(&path, json!({"active": active})).await.data(200);
    }
    let due = "select count(*), count(*) filter (where next_attempt_at > now()) from webhook_deliveries
         where company_id = $1 and webhook_id = $2 and event_id > 2000000";
    assert_eq!(counts(due).await, (COUNT, 0), "some wait although the webhook is enabled");
    app.stop().await;
}
