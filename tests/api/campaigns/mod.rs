//! Campaigns, from their creation to the last delivery.

mod doubts;
mod inactive;
mod life;
mod moved;
mod races;
mod sending;
mod skipped;
mod states;
mod time;

use serde_json::{Value, json};

use crate::outbox::Office;
use crate::steps::id;
use crate::support::{Api, TestApp, eventually};

/// A time that no test reaches.
const LATER: &str = "2099-01-31T12:00:00.000Z";

/// A list of these contacts.
pub async fn list(api: &Api, contacts: &[i64]) -> i64 {
    let list = id(api.post("/contact-lists", json!({"name": "Everybody"})).await.data(201));
    for some in contacts.chunks(100) {
        api.post(&format!("/contact-lists/{list}/contacts"), json!({"contactIds": some})).await.data(200);
    }
    list
}

/// The body of a campaign that sends a text to a list, due at [`LATER`].
fn text(list: i64, channel: i64, message: &str) -> Value {
    json!({"name": "Spring sale", "contactListId": list, "channelId": channel, "scheduledAt": LATER, "message": message})
}

/// The body of [`text`] with the highest rate.
pub fn fast(list: i64, channel: i64, message: &str) -> Value {
    let mut body = text(list, channel, message);
    body["ratePerMinute"] = json!(6000);
    body
}

pub async fn create_campaign(api: &Api, body: Value) -> i64 {
    id(api.post("/campaigns", body).await.data(201))
}

/// Asks a campaign to start, pause, resume or cancel.
pub async fn post_verb(api: &Api, campaign: i64, verb: &str) -> Value {
    api.post(&format!("/campaigns/{campaign}/{verb}"), json!({})).await.data(200).clone()
}

async fn shown(api: &Api, campaign: i64) -> Value {
    api.get(&format!("/campaigns/{campaign}")).await.data(200).clone()
}

/// Waits until a campaign has this status, and returns the campaign.
pub async fn wait_for_status(api: &Api, campaign: i64, status: &str) -> Value {
    let has_status = || async { shown(api, campaign).await["status"] == status };
    eventually(&format!("campaign {campaign} is {status}"), has_status).await;
    shown(api, campaign).await
}

async fn recipients(api: &Api, campaign: i64) -> Vec<Value> {
    api.all(&format!("/campaigns/{campaign}/recipients")).await
}

/// The counts of a campaign that are not zero.
fn counts(campaign: &Value) -> Value {
    let mut counts = campaign["counts"].clone();
    counts.as_object_mut().expect("counts").retain(|_, count| *count != 0);
    counts
}

/// Adds this many contacts with numbers, and returns their ids in order.
pub async fn contacts(app: &TestApp, count: i64) -> Vec<i64> {
    let mut ids: Vec<i64> = sqlx::query_scalar(
        "insert into contacts (company_id, name, number)
         select $1, 'Contact ' || k, (5511900000000 + k)::text from generate_series(1, $2) k returning id",
    )
    .bind(app.company.id)
    .bind(count)
    .fetch_all(&app.db)
    .await
    .expect("contacts");
    ids.sort_unstable();
    ids
}

/// The numbers of contacts, in order.
async fn numbers(app: &TestApp, contacts: &[i64]) -> Vec<String> {
    sqlx::query_scalar("select number from contacts where company_id = $1 and id = any ($2) order by id")
        .bind(app.company.id)
        .bind(contacts)
        .fetch_all(&app.db)
        .await
        .expect("numbers")
}

/// Asserts that the provider has one message for each of these contacts, in any order because calls overlap, and that
/// the messages were written in the order of the contacts.
async fn check_sent_once(office: &Office, account: &str, channel: i64, contacts: &[i64]) {
    let mut to: Vec<String> = office.provider.accepted(account).into_iter().map(|call| call.to).collect();
    to.sort_unstable();
    assert_eq!(to, numbers(&office.app, contacts).await);
    let written: Vec<i64> = office
        .app
        .api
        .all(&format!("/messages?channelId={channel}"))
        .await
        .iter()
        .map(|message| message["contactId"].as_i64().expect("contact"))
        .collect();
    assert_eq!(written, contacts);
}

/// A service, its phone channel of this account, this many contacts, and a list of them.
async fn office(account: &str, count: i64) -> (Office, i64, Vec<i64>, i64) {
    let office = Office::open().await;
    let channel = office.phone(account).await.0;
    let contacts = contacts(&office.app, count).await;
    let list = list(&office.app.api, &contacts).await;
    (office, channel, contacts, list)
}
