//! Visitor sessions: who a visitor is, what they write and see, and how a session ends.

mod ends;
mod messages;
mod openings;
mod shown;

use serde_json::{Value, json};

use crate::steps::{id, listed};
use crate::support::{Api, TestApp};

/// Opens a session of a visitor. Returns the session. Under load, some of many concurrent openings are refused as busy
/// at first, so they are retried.
async fn open(app: &TestApp, visitor: Value) -> Value {
    let body = json!({"channelId": app.company.webchat, "visitor": visitor});
    app.api.post_while_busy("/webchat/sessions", &body).await.data(201).clone()
}

/// The id of the contact of a session.
fn contact_of(session: &Value) -> i64 {
    id(&session["contact"])
}

/// The id of a session.
fn session_id(session: &Value) -> String {
    session["id"].as_str().expect("id").to_owned()
}

async fn say(api: &Api, session: &str, body: Value) -> Value {
    api.post(&format!("/webchat/sessions/{session}/messages"), body).await.data(201).clone()
}

/// The ids of the messages that the visitor sees.
async fn visible_ids(api: &Api, session: &str) -> Vec<i64> {
    listed(api, &format!("/webchat/sessions/{session}/messages")).await
}

/// Inserts an interactive message with this id into the ticket of a message. Returns the id.
async fn ask(app: &TestApp, message: &Value, question_id: i64, action: Value) -> i64 {
    app.api.get("/messages").await.data(200); // Answered once the tables have the ticket.
    sqlx::query(
        "insert into messages (company_id, id, ticket_id, contact_id, channel_id, direction, type, interactive, status,
             source, created_at)
         values ($1, $2, $3, $4, $5, 'outbound', 'interactive', $6, 'sent', 'api', now())",
    )
    .bind(app.company.id)
    .bind(question_id)
    .bind(message["ticketId"].as_i64())
    .bind(message["contactId"].as_i64())
    .bind(message["channelId"].as_i64())
    .bind(json!({"body": {"text": "Which?"}, "action": action}))
    .execute(&app.db)
    .await
    .expect("a question");
    question_id
}
