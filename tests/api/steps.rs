//! Small steps that many tests share.

use chrono::DateTime;
use hotline::web::connections::Limits;
use hotline_persistence::pool::request_shares;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, PATIENCE, TestApp, patience};

/// An id that no record has.
pub const NOBODY: i64 = 999_999_999;

/// The id of a resource.
#[track_caller]
pub fn id(resource: &Value) -> i64 {
    resource["id"].as_i64().unwrap_or_else(|| panic!("no id: {resource}"))
}

/// The ids of a list's rows, in its order.
#[track_caller]
pub fn ids(rows: &[Value]) -> Vec<i64> {
    rows.iter().map(id).collect()
}

/// The ids of all rows of a list, from all its pages.
pub async fn listed(api: &Api, path: &str) -> Vec<i64> {
    ids(&api.all(path).await)
}

/// Asserts that a value is an RFC 3339 time in UTC with milliseconds and `Z`.
#[track_caller]
pub fn assert_timestamp(value: &Value) {
    let text = value.as_str().unwrap_or_else(|| panic!("not a timestamp: {value}"));
    assert!(DateTime::parse_from_rfc3339(text).is_ok(), "not a timestamp: {text}");
    assert!(
        text.len() == "2026-01-31T12:00:00.000Z".len() && text.ends_with('Z'),
        "not UTC with milliseconds and `Z`: {text}"
    );
}

/// Sends a message. Returns the message that its job has created.
pub async fn sent(api: &Api, body: Value) -> Value {
    let reply = api.post("/messages", body).await;
    assert_eq!(reply.data(202)["status"], "queued");
    let job = reply.data(202)["jobId"].as_str().expect("job").to_owned();
    let job = api.get(&format!("/messages/jobs/{job}")).await;
    let message = job.data(200)["messageId"].clone();
    api.get(&format!("/messages/{message}")).await.data(200).clone()
}

/// Reads a ticket.
pub async fn ticket(api: &Api, id: i64) -> Value {
    api.get(&format!("/tickets/{id}")).await.data(200).clone()
}

/// The events of a ticket: the type of each, and its `from` and `to`.
pub async fn history(api: &Api, ticket: i64) -> Vec<(String, Value, Value)> {
    let events = api.all(&format!("/tickets/{ticket}/events")).await;
    let event =
        |event: &Value| (event["type"].as_str().expect("type").to_owned(), event["from"].clone(), event["to"].clone());
    events.iter().map(event).collect()
}

/// Closes a ticket whose queue asks for no wrap-up.
pub async fn close(api: &Api, ticket: i64) {
    api.post(&format!("/tickets/{ticket}/close"), json!({})).await.data(200);
}

/// Runs a statement directly on the database, without the service. The id is its parameter.
pub async fn sql(app: &TestApp, statement: &'static str, id: i64) {
    sqlx::query(statement).bind(id).execute(&app.db).await.expect(statement);
}

/// Inserts another channel, waits until the service knows it, and returns its id.
pub async fn channel(app: &TestApp, name: &str, kind: ChannelType) -> i64 {
    let id = crate::support::seed::channel(&app.db, app.company.id, name, kind, None).await;
    app.refreshed().await;
    id.0
}

/// How many changes of one company can run at once without any of them waiting for a connection.
pub fn changes_at_once() -> usize {
    request_shares().company_transactions
}

/// Options of a service that, after it has refused a request, waits longer than usual for a client that is still
/// sending the body.
pub fn lingering() -> TestOptions {
    let defaults = TestOptions::default();
    let limits = Limits { linger: patience(PATIENCE), ..defaults.limits };
    TestOptions { limits, ..defaults }
}

/// Stops the service and starts it again on the same database.
pub async fn restarted(app: OwnApp) -> OwnApp {
    app.restarted(&TestOptions::default(), async |_| {}).await
}
