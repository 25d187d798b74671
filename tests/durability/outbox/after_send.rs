//! What follows a send, with a restart in between.

use serde_json::json;

use super::{Office, number};
use crate::support::provider::Answer;

#[actix_web::test]
async fn after_a_restart_a_sent_message_is_followed_once_by_its_transfer_and_closing() {
    let mut office = Office::open("2101").await;
    office.provider.always("2101", Answer::status(503));
    let after = json!({"queueId": office.company.support, "closeTicket": true, "wrapupTypeId": office.company.solved});
    let job = office.send(&number(1), "Solved!", after).await;
    let ticket = office.job(&job).await["ticketId"].clone();
    office.provider.called_times("2101", 2).await;
    office.kill();

    // The provider accepts it, and the process ends before that is recorded.
    office.provider.always("2101", Answer::Accept);
    office.start_until("message_taken");
    office.start();
    office.wait_for_status(&job, "sent").await;
    let closed = office.api.get(&format!("/tickets/{ticket}")).await.data(200).clone();
    assert_eq!((&closed["status"], &closed["queue"]["id"]), (&json!("closed"), &json!(office.company.support)));
    assert_eq!(closed["wrapupType"]["id"], json!(office.company.solved));

    // Neither is repeated.
    office.kill();
    office.start();
    let events = office.api.all(&format!("/tickets/{ticket}/events")).await;
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["opened", "transferred", "closed"]);
    assert_eq!(office.provider.accepted_count("2101"), 2);
    office.close();
}
