//! Endpoints that fail, hang, redirect, close connections, answer late or byte by byte, or respond that they no longer
//! exist; and other endpoints beside them.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use hotline::webhooks::{RetryPolicy, WebhookOptions};
use hotline_actors::clock;
use hotline_persistence::tables::webhooks::deliveries::{WebhookProgress, record};
use hotline_persistence::tables::webhooks::{self, WebhookId};
use serde_json::{Value, json};

use super::{
    LONG, deliveries, note, open_ticket, read_webhook, wait_for_deliveries, wait_for_retry, webhook_with_receiver,
    with_response_time_max, with_retry_pauses,
};
use crate::steps::id;
use crate::support::service::TestOptions;
use crate::support::{Conduct, OwnApp, Receiver, TestApp, eventually};

/// Waits until the one delivery of a webhook has `count` attempts, and returns them.
async fn attempts(app: &TestApp, webhook: i64, count: usize) -> Vec<Value> {
    let noted = async || {
        let all = app.api.all(&format!("/webhooks/{webhook}/deliveries")).await;
        all.first().and_then(|delivery| delivery["attempts"].as_array().cloned()).unwrap_or_default()
    };
    eventually(&format!("{count} attempts are noted"), || async { noted().await.len() >= count }).await;
    noted().await
}

#[actix_web::test]
async fn attempts_without_a_2xx_are_retried_and_their_errors_are_shown() {
    let elsewhere = Receiver::start().await;
    let conducts = [
        (Conduct::status(500), json!(500), "the endpoint responded with 500"),
        (Conduct::status(404), json!(404), "the endpoint responded with 404"),
        (Conduct::Redirect(elsewhere.url()), json!(307), "the endpoint responded with 307; redirects are not followed"),
        (Conduct::Close, Value::Null, "the request failed: "),
        (Conduct::Drip(503), json!(503), "the endpoint responded with 503"),
    ];
    assert_retried(with_retry_pauses(PAUSES_MS), conducts).await;
    assert_eq!(elsewhere.count(), 0, "a redirect was followed");
}

#[actix_web::test]
async fn attempts_without_an_answer_in_time_are_retried_and_their_errors_are_shown() {
    let conducts = [Conduct::Hang, Conduct::Late(LONG)];
    let conducts = conducts.map(|conduct| (conduct, Value::Null, "the request failed: no response in time"));
    // So many attempts that two requests arrive even if a busy machine makes none of the first ones in time.
    assert_retried(with_response_time_max(Duration::from_millis(700), with_retry_pauses(&[30; 10_000])), conducts)
        .await;
}

/// The second attempt follows soon, and a third does not follow during a test.
const PAUSES_MS: &[u64] = &[30, 3_600_000];

/// Asserts that a delivery to an endpoint of each kind is tried twice, and that the API shows how the attempts failed.
async fn assert_retried(options: TestOptions, conducts: impl IntoIterator<Item = (Conduct, Value, &'static str)>) {
    let app = OwnApp::start_with(options).await;
    for (number, (conduct, status, error)) in (1..).zip(conducts) {
        let (webhook, receiver) = webhook_with_receiver(&app, &["ticket.opened"]).await;
        receiver.behave(conduct.clone());
        open_ticket(&app.api, &app.company, number).await;
        let attempts = attempts(&app, webhook, 2).await;
        for attempt in &attempts {
            assert_eq!(attempt["status"], status, "{conduct:?}");
            assert!(attempt["error"].as_str().is_some_and(|text| text.starts_with(error)), "{conduct:?}: {attempt}");
        }
        let pending = wait_for_deliveries(&app.api, webhook, "pending", 1).await;
        assert!(pending[0]["nextAttemptAt"].is_string(), "{conduct:?}");
        let received = receiver.has(2).await;
        assert_eq!(received[0].body, received[1].body, "{conduct:?}");
        assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
        app.api.delete(&format!("/webhooks/{webhook}")).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_2xx_is_a_delivery_whatever_its_body() {
    let app = OwnApp::start_with(with_retry_pauses(&[3_600_000])).await;
    let mut number = 0;
    for conduct in [
        Conduct::status(200),
        Conduct::status(202),
        Conduct::status(299),
        Conduct::Drip(200),
        Conduct::Answer(200, "x".repeat(1_000_000)),
        Conduct::Late(Duration::from_millis(200)),
    ] {
        let (webhook, receiver) = webhook_with_receiver(&app, &["ticket.opened"]).await;
        receiver.behave(conduct.clone());
        for _ in 0..2 {
            number += 1;
            open_ticket(&app.api, &app.company, number).await;
        }
        wait_for_deliveries(&app.api, webhook, "delivered", 2).await;
        assert_eq!(receiver.count(), 2, "{conduct:?}");
        app.api.delete(&format!("/webhooks/{webhook}")).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn an_endpoint_that_is_gone_is_switched_off_at_once_and_says_why() {
    let app = OwnApp::start_with(with_retry_pauses(&[3_600_000])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::status(410));
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    eventually("it is switched off", || async { read_webhook(&app.api, webhook).await["active"] == false }).await;
    assert_eq!(read_webhook(&app.api, webhook).await["disabledReason"], "the endpoint responded with 410 Gone");
    note(&app.api, ticket.0, "b").await;
    let path = format!("/webhooks/{webhook}/replay");
    let refused = app.api.post(&path, json!({"after": 0})).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["reason"], "inactive");
    assert_eq!(receiver.count(), 1);
    // The endpoint works again, and no event is lost.
    receiver.behave(Conduct::status(200));
    let on = app.api.put(&format!("/webhooks/{webhook}"), json!({"active": true})).await;
    assert_eq!((&on.data(200)["active"], &on.data(200)["disabledReason"]), (&json!(true), &Value::Null));
    wait_for_deliveries(&app.api, webhook, "delivered", 2).await;
    let bodies: Vec<Value> = receiver.received()[1..].iter().map(|r| r.event()["data"]["body"].clone()).collect();
    assert_eq!(bodies, ["a", "b"]);
    app.stop().await;
}

/// How long an endpoint may fail before it is switched off. The test advances the clock, so this takes no time. Every
/// test is shorter than `LAST_MINUTE`.
const FAILING_MAX: Duration = Duration::from_secs(3600);
const LAST_MINUTE: Duration = Duration::from_secs(60);

fn with_failing_max() -> TestOptions {
    let defaults = TestOptions::default();
    let failing_max = TimeDelta::from_std(FAILING_MAX).expect("a time");
    let retry_policy =
        RetryPolicy { pauses: vec![Duration::from_millis(50); 10_000], failing_max, ..RetryPolicy::default() };
    let webhooks = WebhookOptions { retry_policy, response_time_max: LONG, ..defaults.webhooks.clone() };
    TestOptions { webhooks, ..defaults }
}

/// Waits until an endpoint counts as failing since this time or later, and asserts that it is switched off once it has
/// failed for `FAILING_MAX`, but is still on a minute before.
async fn assert_switched_off_in_time(app: &OwnApp, webhook: i64, since: DateTime<Utc>, receiver: &Receiver) {
    eventually("it fails", || async {
        let failing = sqlx::query_scalar("select failing_since from webhooks where id = $1").bind(webhook);
        let failing: Option<DateTime<Utc>> = failing.fetch_one(&app.db).await.expect("the webhook");
        failing.is_some_and(|failing| failing >= since)
    })
    .await;
    clock::advance(FAILING_MAX - LAST_MINUTE);
    // Of three more attempts, the outcome of the first is known when the second begins.
    receiver.has(receiver.count() + 3).await;
    assert_eq!(read_webhook(&app.api, webhook).await["active"], true, "it is switched off too early");
    eventually("it is switched off", || async {
        clock::advance(LAST_MINUTE);
        read_webhook(&app.api, webhook).await["active"] == false
    })
    .await;
}

#[actix_web::test]
async fn a_changed_url_makes_deliveries_due_and_clears_the_failure() {
    // The retry is due after an hour, for which the test does not wait.
    let app = OwnApp::start_with(with_retry_pauses(&[3_600_000])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::status(500));
    let ticket = app.ticket("5511900000001").await;
    for text in ["a", "b"] {
        note(&app.api, ticket.0, text).await;
    }
    wait_for_retry(&app.api, webhook, 2).await;
    let path = format!("/webhooks/{webhook}");
    app.api.put(&path, json!({"url": receiver.url(), "description": "the same"})).await.data(200);
    let other = Receiver::start().await;
    app.api.put(&path, json!({"url": other.url()})).await.data(200);
    wait_for_deliveries(&app.api, webhook, "delivered", 2).await;
    let bodies = other.received().iter().map(|r| r.event()["data"]["body"].clone()).collect::<Vec<_>>();
    assert_eq!(bodies, ["a", "b"]);
    assert_eq!(receiver.count(), 1, "an unchanged URL made a delivery due");
    app.stop().await;

    let app = OwnApp::start_with(with_failing_max()).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::status(500));
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    receiver.has(2).await;
    clock::advance(FAILING_MAX - LAST_MINUTE);
    let other = Receiver::start().await;
    other.behave(Conduct::status(500));
    let changed = clock::now();
    app.api.put(&format!("/webhooks/{webhook}"), json!({"url": other.url()})).await.data(200);
    assert_switched_off_in_time(&app, webhook, changed, &other).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_delivery_that_hangs_is_sent_to_the_changed_url() {
    let app = OwnApp::start_with(with_response_time_max(LONG, TestOptions::default())).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.behave(Conduct::Hang);
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    receiver.has(1).await;
    let other = Receiver::start().await;
    app.api.put(&format!("/webhooks/{webhook}"), json!({"url": other.url()})).await.data(200);
    other.has(1).await;
    wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_test_that_is_delivered_clears_the_failure() {
    let app = OwnApp::start_with(with_failing_max()).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.choose(|request| {
        let is_test = request.header("webhook-id").starts_with("test_");
        Conduct::status(if is_test { 200 } else { 500 })
    });
    let ticket = app.ticket("5511900000001").await;
    note(&app.api, ticket.0, "a").await;
    receiver.has(2).await;
    clock::advance(FAILING_MAX - LAST_MINUTE);
    let tested = clock::now();
    let test = app.api.post(&format!("/webhooks/{webhook}/test"), json!({})).await;
    assert_eq!(test.data(200)["delivered"], true);
    assert_switched_off_in_time(&app, webhook, tested, &receiver).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_failure_before_a_delivered_test_does_not_count_after_it() {
    let app = OwnApp::start().await;
    let (company, keys) = (app.company.id, &app.service.app.engine.store().keys);
    let receiver = Receiver::start().await;
    // The test writes what a courier (the task that delivers to one webhook) would.
    let off = json!({"url": receiver.url(), "active": false});
    let webhook = WebhookId::new(id(app.api.post("/webhooks", off).await.data(201)));
    let failing = "update webhooks set failing_since = $3 where company_id = $1 and id = $2";
    let since = clock::now() - TimeDelta::days(1);
    sqlx::query(failing).bind(company).bind(webhook).bind(since).execute(&app.db).await.expect("it fails");
    let endpoint = async || {
        let found = webhooks::endpoint(&app.db, keys, company, webhook).await;
        found.expect("the database answers").expect("a webhook")
    };
    let before = endpoint().await;
    assert_eq!(before.failing_since, Some(since));
    let test = app.api.post(&format!("/webhooks/{webhook}/test"), json!({})).await;
    assert_eq!(test.data(200)["delivered"], true);

    let (from, failing_since) = (before.delivered_through, before.failing_since);
    let progress = WebhookProgress {
        expected_delivered_through: from,
        delivered_through: from,
        expected_failing_since: failing_since,
        failing_since,
    };
    let mut db = app.db.acquire().await.expect("a connection");
    let stored = record(&mut db, &before, progress, &[], false).await.expect("written");
    let failing_since_after = (stored.failing_since, endpoint().await.failing_since);
    assert_eq!(failing_since_after, (None, None), "a failure before the test counts after it");
    let path = format!("/webhooks/{webhook}");
    app.api.put(&path, json!({"active": true})).await.data(200);
    let is_off = webhooks::disable(&app.db, &before, failing_since, "it has failed for too long").await;
    assert!(!is_off.expect("an answer"), "it is switched off for a failure before the test");
    assert_eq!(app.api.get(&path).await.data(200)["active"], true);
    drop(db);
    app.stop().await;
}

#[actix_web::test]
async fn an_endpoint_that_fails_for_as_long_as_it_may_is_switched_off_with_a_reason() {
    let app = OwnApp::start_with(with_failing_max()).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    let ticket = app.ticket("5511900000001").await;
    receiver.behave(Conduct::status(500));
    note(&app.api, ticket.0, "a").await;
    // An endpoint that sometimes accepts a delivery is not switched off.
    receiver.has(2).await;
    clock::advance(FAILING_MAX - LAST_MINUTE);
    receiver.behave(Conduct::status(200));
    wait_for_deliveries(&app.api, webhook, "delivered", 1).await;
    receiver.behave(Conduct::status(500));
    let failing = clock::now();
    note(&app.api, ticket.0, "b").await;
    assert_switched_off_in_time(&app, webhook, failing, &receiver).await;
    let reason = read_webhook(&app.api, webhook).await["disabledReason"].clone();
    assert!(reason.as_str().is_some_and(|reason| reason.starts_with("every delivery has failed since 20")), "{reason}");
    assert_eq!(deliveries(&app.api, webhook, "pending").await.len(), 1, "a pending delivery was dropped");
    app.stop().await;
}

#[actix_web::test]
async fn a_withheld_delivery_is_not_a_failure_of_its_endpoint() {
    let app = OwnApp::start().await;
    let (company, keys) = (app.company.id, &app.service.app.engine.store().keys);
    let off = json!({"url": "https://hooks.example.com/", "active": false});
    let webhook = WebhookId::new(id(app.api.post("/webhooks", off).await.data(201)));
    let failed_at = DateTime::from_timestamp(1_700_000_000, 0).expect("a time");
    for (event, tries, at) in [(1_i64, 3, failed_at), (2, 0, Utc::now())] {
        let row = "insert into webhook_deliveries
                 (company_id, webhook_id, event_id, type, lane, status, tries, created_at, updated_at)
             values ($1, $2, $3, 'card.created', 'card:7', 'failed', $4, $5, $5)";
        let row = sqlx::query(row).bind(company).bind(webhook).bind(event).bind(tries).bind(at);
        row.execute(&app.db).await.expect("a delivery");
    }
    let failing = "update webhooks set failing_since = $3 where company_id = $1 and id = $2";
    sqlx::query(failing).bind(company).bind(webhook).bind(failed_at).execute(&app.db).await.expect("it fails");
    let endpoint = webhooks::endpoint(&app.db, keys, company, webhook).await.expect("an answer");
    assert_eq!(endpoint.expect("a webhook").failed_at, Some(failed_at));
    app.stop().await;
}

#[actix_web::test]
async fn after_its_last_attempt_a_delivery_has_failed_and_the_next_of_its_ticket_is_sent() {
    let app = OwnApp::start_with(with_retry_pauses(&[20, 20])).await;
    let (webhook, receiver) = webhook_with_receiver(&app, &["note.added"]).await;
    receiver.choose(|request| {
        let is_bad = request.event()["data"]["body"] == "bad";
        Conduct::status(if is_bad { 422 } else { 200 })
    });
    let ticket = app.ticket("5511900000001").await;
    for text in ["good", "bad", "better"] {
        note(&app.api, ticket.0, text).await;
    }
    let delivered = wait_for_deliveries(&app.api, webhook, "delivered", 2).await;
    let failed = wait_for_deliveries(&app.api, webhook, "failed", 1).await;
    assert_eq!(failed[0]["attempts"].as_array().map(Vec::len), Some(3));
    assert_eq!(failed[0]["nextAttemptAt"], Value::Null);
    assert_eq!(delivered.len(), 2);
    let bodies: Vec<Value> = receiver.received().iter().map(|r| r.event()["data"]["body"].clone()).collect();
    assert_eq!(bodies, ["good", "bad", "bad", "bad", "better"]);
    app.stop().await;
}

/// Returns how long the slowest of `deliveries` to each of two working endpoints takes, first without hanging endpoints
/// and then beside `endpoints` of them in one company.
async fn slowest_without_and_beside_some_that_hang(
    options: TestOptions,
    endpoints: usize,
    deliveries: u64,
) -> (Duration, Duration) {
    let app = OwnApp::start_with(options).await;
    let (other, other_api) = app.another_company().await;
    let (_, receiver) = webhook_with_receiver(&app, &["ticket.opened"]).await;
    let other_receiver = Receiver::start().await;
    super::add_webhook(&other_api, &other_receiver.url(), &["ticket.opened"]).await;
    let slowest = async |from: u64| {
        let mut slowest = Duration::ZERO;
        for k in 0..deliveries {
            let both = [(&app.api, &app.company, &receiver), (&other_api, &other, &other_receiver)];
            for (api, company, receiver) in both {
                let (before, begun) = (receiver.count(), Instant::now());
                open_ticket(api, company, from + k).await;
                receiver.has(before + 1).await;
                slowest = slowest.max(begun.elapsed());
            }
        }
        slowest
    };
    let alone = slowest(100).await;
    let mut hanging = Vec::new();
    for _ in 0..endpoints {
        let (_, receiver) = webhook_with_receiver(&app, &[]).await;
        receiver.behave(Conduct::Hang);
        hanging.push(receiver);
    }
    open_ticket(&app.api, &app.company, 150).await;
    for receiver in &hanging {
        receiver.has(1).await;
    }
    let beside_them = slowest(200).await;
    app.stop().await;
    (alone, beside_them)
}

/// The endpoints hang for longer than the test takes, and each delivery to them holds one of their company's permits.
#[actix_web::test]
async fn endpoints_that_hang_hold_up_nobody_else() {
    slowest_without_and_beside_some_that_hang(with_response_time_max(LONG, with_retry_pauses(&[50; 9])), 3, 10).await;
}

#[actix_web::test]
async fn endpoints_that_hang_slow_nobody_else_measured() {
    let options = with_response_time_max(Duration::from_millis(700), with_retry_pauses(&[50; 9]));
    let (alone, beside_them) = slowest_without_and_beside_some_that_hang(options, 15, 20).await;
    assert!(
        beside_them < alone * 3 + Duration::from_millis(250),
        "{beside_them:?} beside endpoints that hang, {alone:?} without them"
    );
}
