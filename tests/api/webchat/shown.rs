//! The messages of a conversation that visitors see.

use serde_json::{Value, json};

use super::{ask, open, say, session_id, visible_ids};
use crate::check_list::check_list;
use crate::steps::{assert_timestamp, id, listed, sent};
use crate::support::{TestApp, eventually};

#[actix_web::test]
async fn a_visitor_sees_both_sides_of_the_conversation_and_no_notes() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let message = say(&app.api, &session, json!({"body": "hello"})).await;
    let open_ticket = message["ticketId"].clone();
    app.api.post(&format!("/tickets/{open_ticket}/notes"), json!({"body": "difficult"})).await.data(201);
    let answer = sent(&app.api, json!({"ticketId": open_ticket, "type": "text", "body": "welcome"})).await;
    let more = say(&app.api, &session, json!({"body": "thanks"})).await;
    app.api.post(&format!("/tickets/{open_ticket}/notes"), json!({"body": "very difficult"})).await.data(201);

    let shown = [id(&message), id(&answer), id(&more)];
    let path = format!("/webchat/sessions/{session}/messages");
    assert_eq!(listed(&app.api, &format!("{path}?after={}", shown[0])).await, shown[1..]);
    assert_eq!(listed(&app.api, &format!("{path}?after={}", shown[2])).await, [0; 0]);
    assert_eq!(listed(&app.api, &format!("{path}?after=0")).await, shown);
    assert_eq!(listed(&app.api, &format!("{path}?after={}&order=desc", shown[0])).await, [shown[2], shown[1]]);
    check_list(&app, &path, &shown, &[]).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_messages_of_a_visitor_are_filtered_by_time_like_every_list() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    for body in ["one", "two", "three"] {
        say(&app.api, &session, json!({"body": body})).await;
    }
    for span in ["created", "updated"] {
        crate::check_list::check_span(&app, &format!("/webchat/sessions/{session}/messages"), span).await;
    }
    app.stop().await;
}

#[actix_web::test]
async fn nothing_from_before_the_session_is_shown_in_it() {
    let app = TestApp::shared().await;
    let visitor = json!({"externalId": "v-1"});
    let before = session_id(&open(&app, visitor.clone()).await);
    let message = say(&app.api, &before, json!({"body": "my secret"})).await;
    let ticket = message["ticketId"].clone();
    let answer = sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "your secret"})).await;
    let buttons = json!({"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}]});
    let question = ask(&app, &message, 1_000_000_000, buttons).await;
    app.api.post(&format!("/webchat/sessions/{before}/end"), json!({})).await.data(200);

    let now = session_id(&open(&app, visitor).await);
    assert_eq!(visible_ids(&app.api, &now).await, [0; 0]);
    let reply = json!({"reply": {"messageId": question, "id": "y"}});
    app.api.post(&format!("/webchat/sessions/{now}/messages"), reply).await.error(404, "ERR_API_NOT_FOUND");
    let again = say(&app.api, &now, json!({"body": "it is me"})).await;
    assert_eq!(again["ticketId"], ticket, "the message opened another ticket");
    let reply = sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "welcome back"})).await;
    assert_eq!(visible_ids(&app.api, &now).await, [id(&again), id(&reply)]);
    // The visitor has received the reply, and still not the answer before it.
    let status = async |message: i64| app.api.get(&format!("/messages/{message}")).await.data(200).clone();
    eventually("the reply is delivered", || async { status(id(&reply)).await["status"] == "delivered" }).await;
    assert_eq!(status(id(&answer)).await["status"], "sent", "a message that no session shows was delivered");
    // The session before shows what it has shown, and nothing of this one.
    let shown_before = visible_ids(&app.api, &before).await;
    assert!(shown_before.starts_with(&[id(&message), id(&answer)]), "{shown_before:?}");
    assert!(!shown_before.contains(&id(&again)) && !shown_before.contains(&id(&reply)), "{shown_before:?}");
    let everything = listed(&app.api, &format!("/tickets/{ticket}/messages")).await;
    assert!(everything.contains(&id(&message)) && everything.contains(&id(&answer)), "the company lost its history");
    app.stop().await;
}

#[actix_web::test]
async fn a_message_is_delivered_once_the_visitor_has_listed_it() {
    let app = TestApp::shared().await;
    let session = session_id(&open(&app, json!({})).await);
    let ticket = say(&app.api, &session, json!({"body": "hello"})).await["ticketId"].clone();
    let first = id(&sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "one"})).await);
    let second = id(&sent(&app.api, json!({"ticketId": ticket, "type": "text", "body": "two"})).await);
    // A page that ends with the first message does not deliver the second.
    app.api.get(&format!("/webchat/sessions/{session}/messages?perPage=2")).await.data(200);
    let status = async |message: i64| app.api.get(&format!("/messages/{message}")).await.data(200).clone();
    eventually("the first is delivered", || async { status(first).await["status"] == "delivered" }).await;
    let delivered = status(first).await;
    assert_timestamp(&delivered["deliveredAt"]);
    assert_timestamp(&delivered["sentAt"]);
    assert_eq!(delivered["readAt"], Value::Null);
    assert_eq!(status(second).await["status"], "sent");
    let job = delivered["jobId"].as_str().expect("job");
    assert_eq!(app.api.get(&format!("/messages/jobs/{job}")).await.data(200)["status"], "delivered");

    assert_eq!(visible_ids(&app.api, &session).await.len(), 3);
    eventually("the second is delivered", || async { status(second).await["status"] == "delivered" }).await;
    assert_eq!(status(first).await, delivered, "the first message changed when the second was delivered");
    app.stop().await;
}
