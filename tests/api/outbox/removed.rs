//! Contacts that are deleted, or change their number, while messages to them wait.

use serde_json::json;

use super::{Office, number};
use crate::plain::deleted;
use crate::steps::{close, id};
use crate::support::eventually;
use crate::support::provider::{Answer, Call};

/// The texts of accepted messages.
fn texts(accepted: &[Call]) -> Vec<&str> {
    accepted.iter().map(Call::text).collect()
}

/// How often the provider was called for this recipient.
fn count_calls(office: &Office, account: &str, to: &str) -> usize {
    office.provider.calls(account).iter().filter(|call| call.to == to).count()
}

/// Waits until the provider was called at least this many times for this recipient.
async fn until_called(office: &Office, account: &str, to: &str, times: usize) {
    eventually("the provider was called often enough", || async { count_calls(office, account, to) >= times }).await;
}

#[actix_web::test]
async fn queued_messages_of_a_deleted_contact_are_not_sent() {
    let office = Office::open().await;
    let channel = office.phone("2401").await;
    office.provider.always("2401", Answer::status(503));
    for body in ["first", "second"] {
        office.text(channel, &number(1), body).await;
    }
    office.provider.called_times("2401", 2).await;
    let ticket = office.app.api.all("/tickets?status=open").await[0].clone();
    let contact = ticket["contact"]["id"].as_i64().expect("contact");
    close(&office.app.api, id(&ticket)).await;
    deleted(&office.app.api, &format!("/contacts/{contact}")).await;
    // A call that was in progress at the deletion may arrive after it.
    let engine = &office.app.service.app.engine;
    eventually("no call is in progress", || async { engine.sending.stats().calling == 0 }).await;
    let calls_before = count_calls(&office, "2401", &number(1));
    office.text(channel, &number(2), "another").await;
    // The other contact's message is tried several times meanwhile.
    until_called(&office, "2401", &number(2), 6).await;
    assert_eq!(count_calls(&office, "2401", &number(1)), calls_before, "a message was sent to the deleted contact");
    office.provider.always("2401", Answer::Accept);
    office.provider.accepts("2401", 1).await;
    assert_eq!(texts(&office.provider.accepted("2401")), ["another"]);
    office.close().await;
}

#[actix_web::test]
async fn queued_messages_are_sent_to_the_contacts_new_number() {
    let office = Office::open().await;
    let channel = office.phone("2402").await;
    office.provider.always("2402", Answer::status(503));
    let job = office.text(channel, &number(1), "corrected").await;
    office.provider.called_times("2402", 1).await;
    let contact = office.message(&job).await["contactId"].as_i64().expect("contact");
    let change = json!({"number": number(2)});
    office.app.api.put(&format!("/contacts/{contact}"), change).await.data(200);
    until_called(&office, "2402", &number(2), 1).await;
    office.provider.always("2402", Answer::Accept);
    assert_eq!(office.provider.accepts("2402", 1).await[0].to, number(2));
    office.wait_for_status(&job, "sent").await;
    office.close().await;
}
