//! Scheduled messages.

mod failures;
mod life;
mod races;
mod time;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use hotline_actors::clock;
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::{TestApp, eventually};

/// The time this many milliseconds from now, as the API writes it.
fn in_ms(milliseconds: i64) -> String {
    rfc3339(clock::now() + TimeDelta::milliseconds(milliseconds))
}

/// A delay shorter than the one after which a session ends by itself.
const TEN_MINUTES_MS: i64 = 600_000;

/// Stops the clock at this time, for a service in the test's own process.
pub fn move_clock_to(time: DateTime<Utc>) {
    clock::stop();
    clock::advance((time - clock::now()).to_std().expect("a time in the future"));
}

fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[track_caller]
fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("not a time: {value}"))
}

/// The body of a request that schedules a message to a contact on the phone channel.
fn request_to(app: &TestApp, contact: i64, body: &str, send_at: &str) -> Value {
    json!({"contactId": contact, "channelId": app.company.phone, "body": body, "sendAt": send_at})
}

async fn schedule(app: &TestApp, body: Value) -> i64 {
    id(app.api.post("/schedules", body).await.data(201))
}

async fn shown(app: &TestApp, schedule: i64) -> Value {
    app.api.get(&format!("/schedules/{schedule}")).await.data(200).clone()
}

/// Waits until a scheduled message has this status, and returns the message.
async fn wait_for_status(app: &TestApp, schedule: i64, status: &str) -> Value {
    eventually(&format!("{schedule} is {status}"), || async { shown(app, schedule).await["status"] == status }).await;
    shown(app, schedule).await
}

/// Inserts this many contacts with numbers. Returns their ids.
async fn contacts(app: &TestApp, count: i64) -> Vec<i64> {
    sqlx::query_scalar(
        "insert into contacts (company_id, name, number)
         select $1, 'Contact ' || k, (5511900000000 + k)::text from generate_series(1, $2) k returning id",
    )
    .bind(app.company.id)
    .bind(count)
    .fetch_all(&app.db)
    .await
    .expect("contacts")
}
