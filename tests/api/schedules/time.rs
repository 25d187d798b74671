//! Each leaves once and at its time, also when that came while nobody served.

use std::collections::HashMap;

use chrono::{TimeDelta, Utc};
use futures_util::{StreamExt, stream};
use serde_json::json;

use super::{contacts, in_ms, schedule, time, to, written};
use crate::steps::{listed, restarted};
use crate::support::figures::Figures;
use crate::support::service::TestOptions;
use crate::support::{TestApp, eventually};

/// Scheduled at once: what lets them share the journal's syncs.
const AT_ONCE: usize = 32;

/// What a message may be late.
const LATE_MS_MAX: i64 = 5000;

async fn figures(app: &TestApp) -> Figures {
    Figures::of(app.service.metrics.as_ref().expect("figures are served").address).await
}

#[actix_web::test]
async fn two_thousand_within_ten_seconds_leave_each_once_and_at_its_time() {
    const MESSAGES: i64 = 2000;
    let app = TestApp::start_with(TestOptions { metrics: true, ..TestOptions::default() }).await;
    let contacts = contacts(&app, MESSAGES / 2).await;
    // Until all are scheduled none is due.
    let begin = Utc::now() + TimeDelta::seconds(20);
    let due = |number: i64| begin + TimeDelta::milliseconds(number * 5);
    stream::iter(0..MESSAGES)
        .map(|number| {
            let contact = contacts[usize::try_from(number).expect("an index") % contacts.len()];
            let body = to(&app, contact, &number.to_string(), &written(due(number)));
            let app = &app;
            async move { schedule(app, body).await }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<i64>>()
        .await;
    assert!(Utc::now() < begin, "the machine is too slow to schedule {MESSAGES} in 20 s");
    eventually("they are held", || async {
        figures(&app).await.value("hotline_schedules{state=\"held\"}") == MESSAGES as f64
    })
    .await;
    eventually("all have left", || async { app.api.get("/schedules?status=pending").await.body["data"] == json!([]) })
        .await;
    let mut left: HashMap<i64, Vec<i64>> = HashMap::new();
    for message in app.api.all("/messages").await {
        let number: i64 = message["body"].as_str().and_then(|text| text.parse().ok()).expect("a number");
        let late = (time(&message["createdAt"]) - due(number)).num_milliseconds();
        left.entry(number).or_default().push(late);
    }
    let mut late: Vec<i64> = left.values().flatten().copied().collect();
    late.sort_unstable();
    println!("of {} the latest was {:?} ms late, the median {} ms", late.len(), late.last(), late[late.len() / 2]);
    assert_eq!((left.len(), late.len()), (MESSAGES as usize, MESSAGES as usize));
    assert!(late.iter().all(|late| (0..=LATE_MS_MAX).contains(late)), "{:?} {:?}", late.first(), late.last());
    let seen = figures(&app).await;
    assert_eq!(seen.value("hotline_schedules_ended_total{end=\"sent\"}"), MESSAGES as f64);
    assert_eq!(seen.value("hotline_schedules_ended_total{end=\"failed\"}"), 0.0);
    app.stop().await;
}

#[actix_web::test]
async fn what_was_due_while_nobody_served_leaves_at_the_start_once_and_the_oldest_first() {
    // More than one load brings.
    const MESSAGES: i64 = 450;
    let app = TestApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    let other = app.contact("5511900000002").await.0;
    let at = in_ms(86_400_000);
    for number in 0..MESSAGES {
        schedule(&app, to(&app, contact, &number.to_string(), &at)).await;
    }
    let later = schedule(&app, to(&app, other, "later", &at)).await;
    let app = {
        // A week has passed. The last one made is the oldest.
        app.api.get("/schedules").await.data(200);
        let moved =
            "update schedules set send_at = now() - interval '7 days' - id * interval '1 second' where id <> $1";
        let TestApp { service, database, folder, company, .. } = app;
        service.stop().await.expect("the service stops cleanly");
        sqlx::query(moved).bind(later).execute(&database.db).await.expect("moved");
        let settings = TestOptions::default().settings(&folder, database.options.clone());
        let service = hotline::service::Service::start(settings).await.expect("the service starts again");
        let api = crate::support::Api::new(service.address, &company.key);
        TestApp { service, database, folder, company, api }
    };
    eventually("all have left", || async { listed(&app.api, "/schedules?status=sent").await.len() as i64 == MESSAGES })
        .await;
    let messages = app.api.all("/messages").await;
    let numbers: Vec<i64> =
        messages.iter().map(|message| message["body"].as_str().expect("text").parse().expect("a number")).collect();
    assert_eq!(numbers, (0..MESSAGES).rev().collect::<Vec<_>>());
    // Another start sends nothing again.
    let app = restarted(app).await;
    let near = schedule(&app, to(&app, other, "7", &in_ms(2000))).await;
    super::becomes(&app, near, "sent").await;
    assert_eq!(listed(&app.api, "/messages").await.len() as i64, MESSAGES + 1);
    assert_eq!(super::shown(&app, later).await["status"], "pending");
    app.stop().await;
}

#[actix_web::test]
async fn nothing_leaves_of_a_company_that_another_process_serves() {
    let app = TestApp::start().await;
    let (_, contact) = app.session("visitor").await;
    let body = json!({"contactId": contact, "channelId": app.company.webchat, "body": "hello", "sendAt": in_ms(5000)});
    let made = schedule(&app, body.clone()).await;
    let (other, other_api) = app.another_company().await;
    let visitor = json!({"channelId": other.webchat, "visitor": {"name": "Visitor"}});
    let theirs = other_api.post("/webchat/sessions", visitor).await.data(201)["contact"]["id"].clone();
    let engine = &app.service.app.engine;
    let log = &engine.store().log;
    log.reached(log.appended()).await.expect("the tables have all");
    let closed = log.ownership().close(app.company.id).await.expect("no request is under way");
    let theirs = json!({"contactId": theirs, "channelId": other.webchat, "body": "hello", "sendAt": in_ms(5500)});
    other_api.post("/schedules", theirs).await.data(201);
    eventually("the other company's has left", || async {
        other_api.get("/schedules?status=sent").await.body["data"].as_array().is_some_and(|sent| sent.len() == 1)
    })
    .await;
    let status = "select status from schedules where company_id = $1 and id = $2";
    let status: String = sqlx::query_scalar(status)
        .bind(app.company.id)
        .bind(made)
        .fetch_one(&app.database.db)
        .await
        .expect("the schedule");
    assert_eq!(status, "pending");
    drop(closed);
    super::becomes(&app, made, "sent").await;

    // Dropped from memory while it is served, what is due leaves all the same, once.
    let soon = json!({"contactId": contact, "channelId": app.company.webchat, "body": "again", "sendAt": in_ms(3000)});
    let soon = schedule(&app, soon).await;
    app.service.forget(app.company.id).await.expect("it is dropped");
    super::becomes(&app, soon, "sent").await;
    assert_eq!(listed(&app.api, "/messages").await.len(), 2);
    app.stop().await;
}
