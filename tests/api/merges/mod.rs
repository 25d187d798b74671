//! Merges of contacts that are one person, and of tickets that are one conversation.

mod answered;
mod contacts;
mod moved;
mod races;
mod replayed;
mod tickets;
mod unfinished;

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use crate::hooks::ProviderChannel;
use crate::steps::id;
use crate::support::provider::hooks::text;
use crate::support::{Api, PATIENCE, Reply, TestApp, patience};

/// Merges a contact into another. The request is sent again while it is answered `503`: on a busy machine, merges that
/// wait for each other get it.
async fn merge(api: &Api, into: i64, from: i64) -> Reply {
    api.post_while_busy(&format!("/contacts/{into}/merge"), &json!({"fromContactId": from})).await
}

/// As [`merge`], but for tickets.
async fn merge_tickets(api: &Api, into: i64, from: i64) -> Reply {
    api.post_while_busy(&format!("/tickets/{into}/merge"), &json!({"fromTicketId": from})).await
}

async fn create_contact(api: &Api, body: Value) -> i64 {
    id(api.post("/contacts", body).await.data(201))
}

/// A contact as the API shows it.
async fn shown(api: &Api, contact: i64) -> Value {
    api.get(&format!("/contacts/{contact}")).await.data(200).clone()
}

/// The texts of a ticket's messages, without notes, in order.
async fn texts(api: &Api, ticket: i64) -> Vec<String> {
    let messages = api.all(&format!("/tickets/{ticket}/messages")).await;
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Delivers a contact's text to a phone channel; repeats the call until it is taken.
async fn deliver_text(api: &Api, channel: &ProviderChannel, number: &str, body: &str) {
    let call = channel.phone_account().message(number, "Somebody", text(&format!("wamid.{number}.{body}"), body));
    // A provider repeats a call after `503`. The refused call may have been taken all the same, hence `repeated`.
    let deadline = Instant::now() + patience(PATIENCE);
    let mut reply = channel.call_signed(api, &call).await;
    while reply.status == 503 && Instant::now() < deadline {
        reply = channel.call_signed(api, &call).await;
    }
    let received = reply.data(200);
    let sum = received["taken"].as_u64().zip(received["repeated"].as_u64()).map(|(taken, repeated)| taken + repeated);
    assert_eq!(sum, Some(1));
}

/// Asserts that every request with the merged contact's id is answered with the id of the one that stays.
async fn assert_is_gone(app: &TestApp, contact: i64, into: i64) {
    let (api, channel) = (&app.api, app.company.phone);
    let board = id(api.post("/crm/boards", json!({"name": "Sales"})).await.data(201));
    let list = id(api.post("/contact-lists", json!({"name": "All"})).await.data(201));
    let path = format!("/contacts/{contact}");
    let body = |more: Value| {
        let mut body = json!({"channelId": channel, "contactId": contact});
        body.as_object_mut().expect("fields").extend(more.as_object().cloned().expect("more"));
        body
    };
    for (method, path, body) in [
        (Method::GET, path.clone(), json!({})),
        (Method::PUT, path.clone(), json!({"name": "x"})),
        (Method::DELETE, path.clone(), json!({})),
        (Method::POST, format!("{path}/merge"), json!({"fromContactId": into})),
        (Method::POST, format!("/contacts/{into}/merge"), json!({"fromContactId": contact})),
        (Method::GET, format!("/tickets?contactId={contact}"), json!({})),
        (Method::POST, "/tickets".to_owned(), body(json!({}))),
        (Method::POST, "/schedules".to_owned(), body(json!({"body": "x", "sendAt": "2099-01-31T12:00:00Z"}))),
        (Method::POST, "/messages".to_owned(), body(json!({"type": "text", "body": "x"}))),
        (Method::GET, format!("/messages?contactId={contact}"), json!({})),
        (Method::POST, "/webchat/sessions".to_owned(), body(json!({"channelId": app.company.webchat}))),
        (Method::GET, format!("/crm/cards?contactId={contact}"), json!({})),
        (
            Method::POST,
            "/crm/cards".to_owned(),
            json!({"boardId": board, "name": "Deal", "contactIds": [into, contact]}),
        ),
        (Method::POST, format!("/contact-lists/{list}/contacts"), json!({"contactIds": [into, contact]})),
        (Method::DELETE, format!("/contact-lists/{list}/contacts/{contact}"), json!({})),
    ] {
        let request = api.request(method.clone(), &path);
        let request = if method == Method::GET || method == Method::DELETE { request } else { request.json(&body) };
        let reply = Reply::of(request).await;
        assert_eq!(reply.status, 404, "{method} {path}: {}", reply.body);
        assert_eq!(reply.body["error"]["details"], json!({"mergedInto": into}), "{method} {path}");
    }
}
