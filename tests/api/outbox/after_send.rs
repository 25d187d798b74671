//! The transfer and the closing that a send asks for: they follow once the provider has accepted the message.

use serde_json::{Value, json};

use super::{Office, number};
use crate::support::eventually;
use crate::support::provider::Answer;

impl Office {
    /// The types of a ticket's events after its opening.
    async fn events(&self, ticket: &Value) -> Vec<String> {
        let events = self.app.api.all(&format!("/tickets/{ticket}/events")).await;
        let kinds = events.iter().map(|event| event["type"].as_str().expect("a type").to_owned());
        kinds.filter(|kind| kind != "opened").collect()
    }

    async fn ticket(&self, ticket: &Value) -> Value {
        self.app.api.get(&format!("/tickets/{ticket}")).await.data(200).clone()
    }
}

#[actix_web::test]
async fn a_ticket_is_transferred_and_closed_only_once_its_message_is_sent() {
    let office = Office::open().await;
    let (channel, company) = (office.phone("1401").await, office.app.company.clone());
    office.provider.always("1401", Answer::status(503));
    let job = office
        .send(json!({"channelId": channel, "number": number(1), "type": "text", "body": "Solved!",
            "queueId": company.support, "closeTicket": true, "wrapupTypeId": company.solved, "wrapupNote": "by mail"}))
        .await;
    let ticket = office.job(&job).await["ticketId"].clone();
    office.provider.called_times("1401", 3).await;
    assert_eq!(office.ticket(&ticket).await["status"], "open");
    assert!(office.events(&ticket).await.is_empty());
    office.provider.always("1401", Answer::Accept);
    office.wait_for_status(&job, "sent").await;
    // Transfer and closing are in the same entry of the log as the status.
    let closed = office.ticket(&ticket).await;
    assert_eq!(closed["status"], "closed");
    assert_eq!(closed["queue"]["id"], json!(company.support));
    assert_eq!((&closed["wrapupType"]["id"], &closed["wrapupNote"]), (&json!(company.solved), &json!("by mail")));
    assert_eq!(office.events(&ticket).await, ["transferred", "closed"]);
    office.close().await;
}

#[actix_web::test]
async fn a_failed_message_transfers_and_closes_nothing() {
    let office = Office::open().await;
    let channel = office.phone("1402").await;
    office.provider.next("1402", [Answer::refuse(400, 131_047, "Re-engagement message")]);
    let body = json!({"channelId": channel, "number": number(1), "type": "text", "body": "x", "closeTicket": true});
    let job = office.send(body).await;
    let ticket = office.wait_for_status(&job, "failed").await["ticketId"].clone();
    assert_eq!(office.ticket(&ticket).await["status"], "open");
    assert!(office.events(&ticket).await.is_empty());
    office.close().await;
}

#[actix_web::test]
async fn a_transfer_or_closing_that_has_become_impossible_is_left_out() {
    let office = Office::open().await;
    let (channel, company) = (office.phone("1403").await, office.app.company.clone());
    office.provider.always("1403", Answer::status(503));
    let body = json!({"channelId": channel, "number": number(1), "type": "text", "body": "x",
        "queueId": company.sales, "closeTicket": true});
    let job = office.send(body).await;
    let ticket = office.job(&job).await["ticketId"].clone();
    // Another request closes the ticket first.
    office.app.api.post(&format!("/tickets/{ticket}/close"), json!({})).await.data(200);
    office.provider.always("1403", Answer::Accept);
    office.wait_for_status(&job, "sent").await;
    assert_eq!(office.events(&ticket).await, ["closed"]);
    assert_eq!(office.ticket(&ticket).await["queue"], json!(null));
    office.close().await;
}

#[actix_web::test]
async fn the_transfers_of_several_messages_follow_in_their_order() {
    let office = Office::open().await;
    let (channel, company) = (office.phone("1404").await, office.app.company.clone());
    office.provider.always("1404", Answer::status(503));
    let mut jobs = Vec::new();
    for (body, queue) in [("one", company.sales), ("two", company.support)] {
        let body = json!({"channelId": channel, "number": number(1), "type": "text", "body": body, "queueId": queue});
        jobs.push(office.send(body).await);
    }
    office.provider.always("1404", Answer::Accept);
    for job in &jobs {
        office.wait_for_status(job, "sent").await;
    }
    let ticket = office.job(&jobs[0]).await["ticketId"].clone();
    assert_eq!(office.ticket(&ticket).await["queue"]["id"], json!(company.support));
    assert_eq!(office.events(&ticket).await, ["transferred", "transferred"]);
    office.close().await;
}

#[actix_web::test]
async fn an_evicted_ticket_is_still_closed_after_the_send() {
    let options = crate::support::service::TestOptions::default();
    let engine = hotline_actors::EngineOptions {
        sending: super::fast(),
        // Idle actors retire soon.
        idle_after: std::time::Duration::from_millis(100),
        ..options.engine.clone()
    };
    let app = crate::support::OwnApp::start_with(crate::support::service::TestOptions { engine, ..options }).await;
    let office = Office { app, provider: crate::support::Provider::start().await };
    let channel = office.phone("1405").await;
    office.provider.always("1405", Answer::Hang);
    let body = json!({"channelId": channel, "number": number(1), "type": "text", "body": "x", "closeTicket": true});
    let job = office.send(body).await;
    let ticket = office.job(&job).await["ticketId"].clone();
    let engine = &office.app.service.app.engine;
    eventually("the ticket is evicted", || async { engine.hot().0 == 0 }).await;
    office.provider.always("1405", Answer::Accept);
    office.provider.release();
    office.wait_for_status(&job, "sent").await;
    assert_eq!(office.ticket(&ticket).await["status"], "closed");
    office.close().await;
}
