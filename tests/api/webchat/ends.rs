//! How a session ends, and how sessions of one visitor relate to each other.

use futures_util::future::join_all;
use hotline_actors::clock;
use hotline_persistence::tables::channels::ChannelType;
use serde_json::{Value, json};

use super::{contact_of, open, say, session_id, visible_ids};
use crate::steps::{assert_timestamp, channel, id, restarted, sent, ticket};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, TestApp, eventually};

#[actix_web::test]
async fn a_session_ends_once_and_then_refuses_messages() {
    let app = OwnApp::start().await;
    let opened = open(&app, json!({})).await;
    let session = session_id(&opened);
    let message = say(&app.api, &session, json!({"body": "hello"})).await;
    let end = async || app.api.post(&format!("/webchat/sessions/{session}/end"), json!({})).await.data(200).clone();
    let ended = end().await;
    assert_eq!(ended["status"], "ended");
    assert_timestamp(&ended["endedAt"]);
    assert!(ended.get("token").is_none(), "the token is shown again");
    assert_eq!(end().await, ended);
    assert!(join_all((0..8).map(|_| end())).await.iter().all(|again| again == &ended));
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.data(200), &ended);

    for body in [json!({"body": "too late"}), json!({"body": "too late", "clientId": "c-1"})] {
        app.api.post(&format!("/webchat/sessions/{session}/messages"), body).await.error(409, "ERR_API_CONFLICT");
    }
    assert_eq!(visible_ids(&app.api, &session).await, [id(&message)]);
    let ticket = ticket(&app.api, message["ticketId"].as_i64().expect("id")).await;
    assert_eq!((&ticket["status"], &ticket["unreadCount"]), (&json!("open"), &json!(1)));
    let app = restarted(app).await;
    assert_eq!(app.api.get(&format!("/webchat/sessions/{session}")).await.data(200), &ended);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_nobody_uses_ends_by_itself_and_its_ticket_stays_open() {
    let options = TestOptions::default();
    let idle_after = options.engine.session_idle_after;
    let app = OwnApp::start_with(options).await;
    let silent = session_id(&open(&app, json!({})).await);
    let opened = open(&app, json!({})).await;
    let session = session_id(&opened);
    let message = say(&app.api, &session, json!({"body": "hello"})).await;
    let shown = async |session: &str| app.api.get(&format!("/webchat/sessions/{session}")).await.data(200).clone();
    clock::advance(idle_after);
    for session in [&silent, &session] {
        eventually("the session has ended", || async { shown(session).await["status"] == "ended" }).await;
    }
    let ended = shown(&session).await;
    assert_timestamp(&ended["endedAt"]);
    assert!(ended["endedAt"].as_str() > ended["lastSeenAt"].as_str(), "{ended}");
    app.api
        .post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "x"}))
        .await
        .error(409, "ERR_API_CONFLICT");
    let ticket = ticket(&app.api, message["ticketId"].as_i64().expect("id")).await;
    assert_eq!((&ticket["status"], &ticket["closedAt"]), (&json!("open"), &Value::Null));
    sent(&app.api, json!({"ticketId": id(&ticket), "type": "text", "body": "still there?"})).await;
    app.stop().await;
}

#[actix_web::test]
async fn sessions_in_two_webchats_are_two_conversations() {
    let app = TestApp::shared().await;
    let another = channel(&app, "Another website", ChannelType::Webchat).await;
    let here = open(&app, json!({"externalId": "v-1"})).await;
    let body = json!({"channelId": another, "visitor": {"externalId": "v-1"}});
    let there = app.api.post("/webchat/sessions", body).await.data(201).clone();
    assert_eq!(contact_of(&here), contact_of(&there));
    let message_here = say(&app.api, &session_id(&here), json!({"body": "here"})).await;
    let message_there = say(&app.api, &session_id(&there), json!({"body": "there"})).await;
    assert_ne!(message_here["ticketId"], message_there["ticketId"]);
    assert_eq!(visible_ids(&app.api, &session_id(&here)).await, [id(&message_here)]);
    assert_eq!(visible_ids(&app.api, &session_id(&there)).await, [id(&message_there)]);
    app.stop().await;
}
