//! A phone number with the highest throughput: one channel sends a thousand messages a second, while the provider
//! reports three statuses of each.
//!
//! <https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput>
//!
//! `make neighbours` runs it on a release build. The messages wait in the channel until it is connected, so that only
//! their sending and the statuses are measured.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use hotline_persistence::ChannelId;
use hotline_persistence::tables::channels::{self, ChannelType, NewChannel};
use serde_json::{Value, json};

use super::number;
use crate::support::provider::hooks::{Phone, signature};
use crate::support::seed::{APP_SECRET, provided_settings};
use crate::support::{Provider, TestApp, eventually, keys};

const ACCOUNT: &str = "1901";

const MESSAGES: usize = 10_000;

const PER_SECOND: usize = 1_000;

/// Messages whose statuses are in one call of the provider.
const MESSAGES_PER_CALL: usize = 10;

/// Calls of the provider and sends of the company at once.
const AT_ONCE: usize = 64;

/// Minimum share of the rate: the channel stays a twentieth below it on purpose, and the start takes a little time.
const REACHED_MIN: f64 = 0.9;

/// Maximum time from the last message to the last status in the tables.
const STATUSES_TIME_MAX: Duration = Duration::from_secs(2);

#[actix_web::test]
async fn a_thousand_messages_leave_a_second_while_three_thousand_statuses_return_measured() {
    let (app, provider) = (TestApp::shared().await, Provider::start().await);
    let mut settings = provided_settings(ChannelType::Whatsapp, ACCOUNT, &provider.url);
    settings.sends_per_second = Some(PER_SECOND as u32);
    let new = NewChannel { name: "Upgraded", kind: ChannelType::Whatsapp, number: None, queue_id: None, settings };
    let channel = channels::insert(&app.db, &keys(), app.company.id, new).await.expect("channel");
    set_status(&app, channel.id, "disconnected").await;
    let sends = (0..MESSAGES).map(|index| {
        let (app, channel) = (&app, channel.id);
        let body = json!({"channelId": channel, "number": number(index), "type": "text", "body": "Good morning!"});
        async move { app.api.post("/messages", body).await.data(202).clone() }
    });
    assert_eq!(stream::iter(sends).buffer_unordered(AT_ONCE).count().await, MESSAGES);

    set_status(&app, channel.id, "connected").await;
    let phone = Phone { id: ACCOUNT.to_owned(), number: "15550001901".to_owned() };
    let (mut first, mut last, mut reported) = (None, Instant::now(), 0);
    while reported < MESSAGES {
        let accepted = provider.accepted_from(ACCOUNT, reported);
        reported += accepted.len();
        first = first.or(accepted.first().map(|call| call.at));
        last = accepted.iter().map(|call| call.at).fold(last, Instant::max);
        let now = chrono::Utc::now().timestamp();
        let calls = accepted.chunks(MESSAGES_PER_CALL).map(|chunk| {
            let statuses = ["sent", "delivered", "read"].into_iter().flat_map(|status| {
                chunk.iter().map(move |call| (call.accepted.as_deref().expect("taken"), &*call.to, status, now))
            });
            let statuses: Vec<_> = statuses.collect();
            report_statuses(&app, &channel.public_key, phone.statuses(&statuses))
        });
        stream::iter(calls).buffer_unordered(AT_ONCE).collect::<()>().await;
        if accepted.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let time = last.duration_since(first.expect("the first message"));
    eventually("every message was read", || async { count_read(&app).await == MESSAGES as i64 }).await;
    let statuses_time = last.elapsed();
    let rate = MESSAGES as f64 / time.as_secs_f64();
    let figures = format!("{rate:.0} messages a second; the last status {statuses_time:.1?} after the last message");
    println!("{figures}");
    assert!(rate >= PER_SECOND as f64 * REACHED_MIN, "{figures}");
    assert!(statuses_time <= STATUSES_TIME_MAX, "{figures}");
    app.stop().await;
}

async fn set_status(app: &TestApp, channel: ChannelId, status: &str) {
    sqlx::query("update channels set status = $2, updated_at = clock_timestamp() where company_id = $1 and id = $3")
        .bind(app.company.id)
        .bind(status)
        .bind(channel)
        .execute(&app.db)
        .await
        .expect("update");
    app.refreshed().await;
}

async fn report_statuses(app: &TestApp, public_key: &str, body: Value) {
    let bytes = body.to_string();
    let request = app
        .api
        .anonymous(reqwest::Method::POST, &format!("/hooks/{public_key}"))
        .header("x-hub-signature-256", signature(APP_SECRET, bytes.as_bytes()))
        .header("content-type", "application/json")
        .body(bytes);
    assert_eq!(request.send().await.expect("an answer").status(), 200);
}

async fn count_read(app: &TestApp) -> i64 {
    sqlx::query_scalar("select count(*) from messages where company_id = $1 and status = 'read'")
        .bind(app.company.id)
        .fetch_one(&app.db)
        .await
        .expect("count")
}
