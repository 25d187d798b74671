//! What a send does to its ticket: reopens it, moves it, closes it.

use serde_json::{Value, json};

use super::{text, visited};
use crate::steps::{NOBODY, assert_timestamp, close, history, id, sent, ticket};
use crate::support::{OwnApp, TestApp};

#[actix_web::test]
async fn a_send_on_a_webchat_first_sends_then_transfers_then_closes() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let (_, _, open) = visited(&app, "visitor").await;
    // `Sold` is a wrap-up of sales, not of support: the ticket must have moved before it is closed.
    let message = sent(
        &app.api,
        text(json!({
            "ticketId": open, "queueId": company.sales, "closeTicket": true, "wrapupTypeId": company.sold,
            "wrapupNote": "two boxes",
        })),
    )
    .await;
    let closed = ticket(&app.api, open).await;
    assert_eq!(closed["status"], "closed");
    assert_eq!(closed["queue"], json!({"id": company.sales, "name": "Sales"}));
    assert_eq!(closed["wrapupType"], json!({"id": company.sold, "name": "Sold"}));
    assert_eq!(closed["wrapupNote"], "two boxes");
    assert_eq!(closed["lastMessage"]["id"], id(&message));
    assert_eq!(message["status"], "sent");
    assert_timestamp(&message["sentAt"]);
    let events = history(&app.api, open).await;
    assert_eq!(events.iter().map(|(kind, ..)| kind.as_str()).collect::<Vec<_>>(), ["opened", "transferred", "closed"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_send_whose_transfer_or_closing_is_refused_sends_nothing() {
    let app = TestApp::shared().await;
    let company = &app.company;
    let (_, _, web) = visited(&app, "visitor").await;
    let phone = app.ticket("5511900000001").await.0;
    app.api.post(&format!("/tickets/{phone}/transfer"), json!({"queueId": company.support})).await.data(200);
    for open in [web, phone] {
        let before = (ticket(&app.api, open).await, app.api.all(&format!("/tickets/{open}/messages")).await);
        for body in [
            json!({"ticketId": open, "closeTicket": true}),
            json!({"ticketId": open, "closeTicket": true, "wrapupTypeId": company.sold}),
            json!({"ticketId": open, "queueId": company.sales, "closeTicket": true, "wrapupTypeId": company.solved}),
        ] {
            let refused = app.api.post("/messages", text(body.clone())).await;
            assert_eq!(refused.invalid_fields(), ["wrapupTypeId"], "{body}");
        }
        let refused = app.api.post("/messages", text(json!({"ticketId": open, "queueId": NOBODY}))).await;
        refused.error(404, "ERR_API_NOT_FOUND");
        assert_eq!((ticket(&app.api, open).await, app.api.all(&format!("/tickets/{open}/messages")).await), before);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_send_reopens_the_latest_ticket_only_if_asked_to() {
    let app = OwnApp::start().await;
    let to = json!({"channelId": app.company.phone, "number": "5511900000001"});
    let reopening = json!({"channelId": app.company.phone, "number": "5511900000001", "reopenTicket": true});
    let ticket_of = |message: Value| message["ticketId"].as_i64().expect("ticket");
    // Without a ticket to reopen, a new one is opened.
    let first = ticket_of(sent(&app.api, text(reopening.clone())).await);
    assert_eq!(ticket(&app.api, first).await["reopenCount"], 0);
    close(&app.api, first).await;
    let second = ticket_of(sent(&app.api, text(to)).await);
    assert!(second > first);
    // The open one is used, and not reopened.
    assert_eq!(ticket_of(sent(&app.api, text(reopening.clone())).await), second);
    assert_eq!(ticket(&app.api, second).await["reopenCount"], 0);
    close(&app.api, second).await;
    assert_eq!(ticket_of(sent(&app.api, text(reopening.clone())).await), second);
    let reopened = ticket(&app.api, second).await;
    assert_eq!((&reopened["status"], &reopened["reopenCount"]), (&json!("open"), &json!(1)));
    assert_eq!(ticket(&app.api, first).await["status"], "closed");

    // A ticket that is named by its id is reopened, unless another one is open.
    let refused = app.api.post("/messages", text(json!({"ticketId": first, "reopenTicket": true}))).await;
    assert_eq!(refused.error(409, "ERR_API_CONFLICT")["ticketId"], second);
    close(&app.api, second).await;
    let refused = app.api.post("/messages", text(json!({"ticketId": first}))).await;
    assert_eq!(refused.error(409, "ERR_API_TICKET_CLOSED")["ticketId"], first);
    assert_eq!(ticket_of(sent(&app.api, text(json!({"ticketId": first, "reopenTicket": true}))).await), first);
    // The restarted service finds the latest in the tables.
    close(&app.api, first).await;
    let app = crate::steps::restarted(app).await;
    let fresh =
        ticket_of(sent(&app.api, text(json!({"channelId": app.company.phone, "number": "5511900000001"}))).await);
    close(&app.api, fresh).await;
    let app = crate::steps::restarted(app).await;
    assert_eq!(ticket_of(sent(&app.api, text(reopening)).await), fresh);
    app.stop().await;
}

#[actix_web::test]
async fn the_first_response_is_the_first_outbound_message_since_the_ticket_was_last_opened() {
    let app = TestApp::shared().await;
    let (session, _, open) = visited(&app, "visitor").await;
    app.api.post(&format!("/tickets/{open}/notes"), json!({"body": "not a response"})).await.data(201);
    assert_eq!(ticket(&app.api, open).await["firstResponseAt"], Value::Null);
    let first = sent(&app.api, text(json!({"ticketId": open}))).await;
    assert_eq!(ticket(&app.api, open).await["firstResponseAt"], first["createdAt"]);
    app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "thanks"})).await.data(201);
    sent(&app.api, text(json!({"ticketId": open}))).await;
    assert_eq!(
        ticket(&app.api, open).await["firstResponseAt"],
        first["createdAt"],
        "the second response replaced the first"
    );

    let body = json!({"wrapupTypeId": app.company.solved});
    app.api.post(&format!("/tickets/{open}/close"), body).await.data(200);
    let again = sent(&app.api, text(json!({"ticketId": open, "reopenTicket": true}))).await;
    assert_eq!(
        ticket(&app.api, open).await["firstResponseAt"],
        again["createdAt"],
        "the first response is from before the ticket was reopened"
    );
    app.stop().await;
}
