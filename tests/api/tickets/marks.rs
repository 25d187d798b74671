//! Notes of tickets, and marking tickets as read.

use serde_json::{Value, json};

use super::event;
use crate::steps::{assert_timestamp, history, id, ticket};
use crate::support::TestApp;

#[actix_web::test]
async fn a_note_is_a_message_that_is_not_sent_to_the_contact() {
    let app = TestApp::shared().await;
    let open = app.ticket("5511900000001").await.0;
    let before = ticket(&app.api, open).await;
    let reply = app.api.post(&format!("/tickets/{open}/notes"), json!({"body": " call back "})).await;
    let note = reply.data(201);
    assert_timestamp(&note["createdAt"]);
    assert_eq!(
        note,
        &json!({
            "id": id(note), "jobId": null, "ticketId": open, "contactId": before["contact"]["id"],
            "channelId": app.company.phone, "direction": "internal", "type": "note", "body": "call back",
            "media": null, "template": null, "interactive": null, "content": null, "author": null, "editedAt": null, "edits": [], "deletedAt": null,
            "reactions": [], "quotedMessageId": null, "status": "sent",
            "error": null, "user": null, "integration": note["integration"], "source": "api", "via": null, "app": null,
            "createdAt": note["createdAt"], "sentAt": note["createdAt"],
            "deliveredAt": null, "readAt": null, "updatedAt": note["createdAt"],
        })
    );
    assert_eq!(app.api.all(&format!("/tickets/{open}/messages")).await, std::slice::from_ref(note));
    let after = ticket(&app.api, open).await;
    assert_eq!(after["lastMessage"], Value::Null);
    assert_eq!(after["firstResponseAt"], Value::Null);
    assert_eq!(after["unreadCount"], 0);
    let to = json!({"messageId": id(note)});
    assert_eq!(history(&app.api, open).await[1..], [event("note_added", Value::Null, to)]);
    app.stop().await;
}

#[actix_web::test]
async fn marking_a_ticket_as_read_twice_adds_one_event() {
    let app = TestApp::shared().await;
    let (session, _) = app.session("visitor").await;
    let path = format!("/webchat/sessions/{session}/messages");
    let first = app.api.post(&path, json!({"body": "one"})).await.data(201).clone();
    let second = app.api.post(&path, json!({"body": "two"})).await.data(201).clone();
    let open = first["ticketId"].as_i64().expect("ticket");
    let unread = ticket(&app.api, open).await;
    assert_eq!(unread["unreadCount"], 2);
    assert_eq!(unread["creationSource"], "contact");
    assert_eq!(
        unread["lastMessage"],
        json!({"id": id(&second), "body": "two", "direction": "inbound", "createdAt": second["createdAt"]})
    );

    for _ in 0..2 {
        let reply = app.api.post(&format!("/tickets/{open}/read"), json!({})).await;
        assert_eq!(reply.data(200)["unreadCount"], 0);
    }
    let read = event("read", json!({"unreadCount": 2}), json!({"unreadCount": 0}));
    assert_eq!(history(&app.api, open).await[1..], [read]);
    for message in app.api.all(&format!("/tickets/{open}/messages")).await {
        assert_timestamp(&message["readAt"]);
        assert_eq!(message["status"], "received");
    }
    app.stop().await;
}
