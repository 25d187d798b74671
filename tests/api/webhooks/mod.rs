//! Webhooks, through the API and with endpoints that the tests run.

mod delivered;
mod endpoints;
mod life;
pub mod moved;
mod reached;
mod replayed;
mod retention;
mod signed;

use std::time::Duration;

use hotline::webhooks::{RetryPolicy, WebhookOptions};
use serde_json::{Value, json};

use crate::steps::id;
use crate::support::service::TestOptions;
use crate::support::{Api, Company, Receiver, TestApp, eventually};

/// The default options, with these pauses before retries. A response is waited for however long a busy machine takes:
/// an attempt fails only as its receiver says.
fn with_retry_pauses(pauses_ms: &[u64]) -> TestOptions {
    let defaults = TestOptions::default();
    let pauses = pauses_ms.iter().copied().map(Duration::from_millis).collect();
    let retry_policy = RetryPolicy { pauses, ..RetryPolicy::default() };
    let webhooks = WebhookOptions { retry_policy, response_time_max: LONG, ..defaults.webhooks.clone() };
    TestOptions { webhooks, ..defaults }
}

/// These options, with this maximum time for a response.
fn with_response_time_max(response_time_max: Duration, options: TestOptions) -> TestOptions {
    TestOptions { webhooks: WebhookOptions { response_time_max, ..options.webhooks.clone() }, ..options }
}

/// A time longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// Creates a webhook for these types of events. Returns its id.
async fn add_webhook(api: &Api, url: &str, types: &[&str]) -> i64 {
    id(api.post("/webhooks", json!({"url": url, "types": types})).await.data(201))
}

/// Creates a webhook for these types of events, with a receiver. Returns its id, and the receiver.
async fn webhook_with_receiver(app: &TestApp, types: &[&str]) -> (i64, Receiver) {
    let receiver = Receiver::start().await;
    let webhook = add_webhook(&app.api, &receiver.url(), types).await;
    (webhook, receiver)
}

async fn read_webhook(api: &Api, webhook: i64) -> Value {
    api.get(&format!("/webhooks/{webhook}")).await.data(200).clone()
}

async fn deliveries(api: &Api, webhook: i64, status: &str) -> Vec<Value> {
    api.all(&format!("/webhooks/{webhook}/deliveries?status={status}")).await
}

/// Waits until a webhook has `count` deliveries with a status, and returns them.
async fn wait_for_deliveries(api: &Api, webhook: i64, status: &str, count: usize) -> Vec<Value> {
    eventually(&format!("{count} are {status}"), || async { deliveries(api, webhook, status).await.len() == count })
        .await;
    deliveries(api, webhook, status).await
}

/// Waits until a webhook has `count` pending deliveries, and the first of them an attempt; returns them. A delivery
/// whose first attempt takes longer than a second, as on a busy machine, is pending without one.
async fn wait_for_retry(api: &Api, webhook: i64, count: usize) -> Vec<Value> {
    let is_noted = |pending: &[Value]| {
        let first = pending.first().and_then(|delivery| delivery["attempts"].as_array());
        pending.len() == count && first.is_some_and(|attempts| !attempts.is_empty())
    };
    eventually(&format!("{count} are pending, and the first was tried"), || async {
        is_noted(&deliveries(api, webhook, "pending").await)
    })
    .await;
    deliveries(api, webhook, "pending").await
}

/// Opens a ticket of a new contact: one event.
async fn open_ticket(api: &Api, company: &Company, number: u64) {
    let contact = json!({"name": format!("Contact {number}"), "number": format!("55119{number:08}")});
    let contact = id(api.post("/contacts", contact).await.data(201));
    api.post("/tickets", json!({"contactId": contact, "channelId": company.phone})).await.data(201);
}

/// Adds a note to a ticket: one event.
async fn note(api: &Api, ticket: i64, text: &str) {
    api.post(&format!("/tickets/{ticket}/notes"), json!({"body": text})).await.data(201);
}
