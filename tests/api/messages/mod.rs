//! Sending: whom a message reaches, what it may say, what else a send does, and what is refused.

mod effects;
mod interactive;
mod jobs;
mod lists;
mod recipients;
mod refused;
pub mod templates;
mod texts;
mod variables;
mod window;

use serde_json::{Value, json};

use crate::support::TestApp;

/// The body of a request that sends a text to this recipient.
pub fn text(recipient: Value) -> Value {
    let mut body = json!({"type": "text", "body": "hello"});
    body.as_object_mut().expect("object").extend(recipient.as_object().expect("object").clone());
    body
}

/// Opens a visitor's session, and a ticket by its first message. Returns the ids of session, contact and ticket.
pub async fn visited(app: &TestApp, visitor: &str) -> (String, i64, i64) {
    let (session, contact) = app.session(visitor).await;
    let message = app.api.post(&format!("/webchat/sessions/{session}/messages"), json!({"body": "hi"})).await;
    (session.0, contact.0, message.data(201)["ticketId"].as_i64().expect("ticket"))
}
