//! Each scheduled message is sent once and at its time, even if that passed while no process was running.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::{StreamExt, stream};
use hotline_actors::clock;
use serde_json::json;

use super::{TEN_MINUTES_MS, contacts, in_ms, move_clock_to, request_to, rfc3339, schedule, time};
use crate::steps::{listed, restarted};
use crate::support::metrics::ScrapedMetrics;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, eventually};

/// How many requests schedule messages at once, so that they share the journal's syncs.
const AT_ONCE: usize = 32;

/// How late a message may be.
const LATE_MS_MAX: i64 = 5000;

/// How many messages there are, one every `APART_MS` milliseconds.
const MESSAGES: i64 = 2000;
const APART_MS: i64 = 5;

async fn metrics(app: &OwnApp) -> ScrapedMetrics {
    ScrapedMetrics::of(app.service.metrics_listener.as_ref().expect("metrics are served").address).await
}

/// Schedules all messages, in a service of its own. Returns that service, and when the first message is due.
async fn schedule_all() -> (OwnApp, DateTime<Utc>) {
    let app = OwnApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let contacts = contacts(&app, MESSAGES / 2).await;
    // Until all are scheduled none is due.
    let first_due_at = clock::now() + TimeDelta::milliseconds(TEN_MINUTES_MS);
    stream::iter(0..MESSAGES)
        .map(|number| {
            let contact = contacts[usize::try_from(number).expect("an index") % contacts.len()];
            let body = request_to(&app, contact, &number.to_string(), &rfc3339(due(first_due_at, number)));
            let app = &app;
            async move { schedule(app, body).await }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<i64>>()
        .await;
    eventually("they are held", || async {
        metrics(&app).await.value("hotline_schedules{state=\"held\"}") == MESSAGES as f64
    })
    .await;
    (app, first_due_at)
}

fn due(first_due_at: DateTime<Utc>, number: i64) -> DateTime<Utc> {
    first_due_at + TimeDelta::milliseconds(number * APART_MS)
}

/// Waits until all have been sent, each once. Returns how late the earliest and the latest was, in milliseconds.
async fn lateness_ms(app: OwnApp, first_due_at: DateTime<Utc>) -> (i64, i64) {
    eventually("all are sent", || async { app.api.get("/schedules?status=pending").await.body["data"] == json!([]) })
        .await;
    let mut lateness_by_number: HashMap<i64, Vec<i64>> = HashMap::new();
    for message in app.api.all("/messages").await {
        let number: i64 = message["body"].as_str().and_then(|text| text.parse().ok()).expect("a number");
        let late = (time(&message["createdAt"]) - due(first_due_at, number)).num_milliseconds();
        lateness_by_number.entry(number).or_default().push(late);
    }
    let mut late: Vec<i64> = lateness_by_number.values().flatten().copied().collect();
    late.sort_unstable();
    println!("of {} the latest was {:?} ms late, the median {} ms", late.len(), late.last(), late[late.len() / 2]);
    assert_eq!((lateness_by_number.len(), late.len()), (MESSAGES as usize, MESSAGES as usize));
    let scraped = metrics(&app).await;
    assert_eq!(scraped.value("hotline_schedules_ended_total{end=\"sent\"}"), MESSAGES as f64);
    assert_eq!(scraped.value("hotline_schedules_ended_total{end=\"failed\"}"), 0.0);
    app.stop().await;
    (late[0], late[late.len() - 1])
}

#[actix_web::test]
async fn two_thousand_within_ten_seconds_are_each_sent_once_and_none_before_its_time() {
    /// How many times the clock is advanced while they are sent.
    const STEPS: i64 = 4;
    let (app, first_due_at) = schedule_all().await;
    for step in 1..=STEPS {
        let last = MESSAGES * step / STEPS - 1;
        move_clock_to(due(first_due_at, last));
        let is_sent = format!("{last} is sent, and all before it");
        eventually(&is_sent, || async {
            let sent = metrics(&app).await.value("hotline_schedules_ended_total{end=\"sent\"}");
            assert!(sent <= (last + 1) as f64, "{sent} are sent when {last} is due");
            sent == (last + 1) as f64
        })
        .await;
    }
    // The clock stands still between the steps, so a message is late by less than a step.
    let (earliest, latest) = lateness_ms(app, first_due_at).await;
    assert!(earliest >= 0 && latest < MESSAGES * APART_MS / STEPS, "{earliest} {latest}");
}

#[actix_web::test]
async fn two_thousand_within_ten_seconds_leave_at_their_time_measured() {
    let (app, first_due_at) = schedule_all().await;
    clock::advance((first_due_at - clock::now()).to_std().expect("a time in the future"));
    let (earliest, latest) = lateness_ms(app, first_due_at).await;
    assert!(earliest >= 0 && latest <= LATE_MS_MAX, "{earliest} {latest}");
}

#[actix_web::test]
async fn messages_due_while_no_process_ran_are_sent_at_the_start_once_and_the_oldest_first() {
    // More messages than are loaded at once.
    const MESSAGES: i64 = 450;
    let app = OwnApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    let other = app.contact("5511900000002").await.0;
    let at = in_ms(86_400_000);
    for number in 0..MESSAGES {
        schedule(&app, request_to(&app, contact, &number.to_string(), &at)).await;
    }
    let later = schedule(&app, request_to(&app, other, "later", &at)).await;
    // A week passes, and the message created last is the oldest.
    app.api.get("/schedules").await.data(200);
    let moved = "update schedules set send_at = now() - interval '7 days' - id * interval '1 second' where id <> $1";
    let app = app
        .restarted(&TestOptions::default(), async |database| {
            sqlx::query(moved).bind(later).execute(&database.db).await.expect("moved");
        })
        .await;
    eventually("all are sent", || async { listed(&app.api, "/schedules?status=sent").await.len() as i64 == MESSAGES })
        .await;
    let messages = app.api.all("/messages").await;
    let numbers: Vec<i64> =
        messages.iter().map(|message| message["body"].as_str().expect("text").parse().expect("a number")).collect();
    assert_eq!(numbers, (0..MESSAGES).rev().collect::<Vec<_>>());
    // Another start sends nothing again.
    let app = restarted(app).await;
    let near = in_ms(TEN_MINUTES_MS);
    let made = schedule(&app, request_to(&app, other, "7", &near)).await;
    move_clock_to(time(&json!(near)));
    super::wait_for_status(&app, made, "sent").await;
    assert_eq!(listed(&app.api, "/messages").await.len() as i64, MESSAGES + 1);
    assert_eq!(super::shown(&app, later).await["status"], "pending");
    app.stop().await;
}

#[actix_web::test]
async fn no_message_of_a_company_that_another_process_serves_is_sent() {
    let app = OwnApp::start().await;
    let (_, contact) = app.session("visitor").await;
    let at = in_ms(TEN_MINUTES_MS);
    let body = json!({"contactId": contact, "channelId": app.company.webchat, "body": "hello", "sendAt": at});
    let made = schedule(&app, body).await;
    let (other, other_api) = app.another_company().await;
    let visitor = json!({"channelId": other.webchat, "visitor": {"name": "Visitor"}});
    let theirs = other_api.post("/webchat/sessions", visitor).await.data(201)["contact"]["id"].clone();
    let engine = &app.service.app.engine;
    let log = &engine.store().log;
    log.wait_until_flushed(log.appended()).await.expect("the tables have all");
    let closed = log.ownership().close(app.company.id).await.expect("no request is under way");
    let after = in_ms(TEN_MINUTES_MS);
    let theirs = json!({"contactId": theirs, "channelId": other.webchat, "body": "hello", "sendAt": after});
    other_api.post("/schedules", theirs).await.data(201);
    move_clock_to(time(&json!(after)));
    eventually("the other company's message is sent", || async {
        other_api.get("/schedules?status=sent").await.body["data"].as_array().is_some_and(|sent| sent.len() == 1)
    })
    .await;
    let status = "select status from schedules where company_id = $1 and id = $2";
    let status: String =
        sqlx::query_scalar(status).bind(app.company.id).bind(made).fetch_one(&app.db).await.expect("the schedule");
    assert_eq!(status, "pending");
    drop(closed);
    super::wait_for_status(&app, made, "sent").await;

    // When the company is dropped from memory while it is served, a message that is due is still sent, once.
    let at = in_ms(TEN_MINUTES_MS);
    let soon = json!({"contactId": contact, "channelId": app.company.webchat, "body": "again", "sendAt": at});
    let soon = schedule(&app, soon).await;
    eventually("it is dropped", || async { app.service.forget(app.company.id).await.is_ok() }).await;
    move_clock_to(time(&json!(at)));
    super::wait_for_status(&app, soon, "sent").await;
    assert_eq!(listed(&app.api, "/messages").await.len(), 2);
    app.stop().await;
}
