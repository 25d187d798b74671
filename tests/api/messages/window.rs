//! The window of phone channels: anything may be sent for a day after the contact's last message, else only templates.

use chrono::TimeDelta;
use hotline_actors::clock;
use hotline_actors::tickets::{Execute, Receive};
use hotline_persistence::{ChannelId, ContactId};
use serde_json::json;

use super::templates::{Phone, plain};
use super::text;
use crate::steps::{close, id, listed, sent};
use crate::support::{OwnApp, Provider};

/// Records a message that the contact wrote on the phone channel `ago` before now.
async fn receive_on_phone(app: &OwnApp, contact: i64, ago: TimeDelta) {
    receive_on(app, app.company.phone, contact, ago).await;
}

async fn receive_on(app: &OwnApp, channel: ChannelId, contact: i64, ago: TimeDelta) {
    let hello = Receive { written_at: Some(clock::now() - ago), ..Receive::text("hi") };
    let engine = &app.service.app.engine;
    let message = engine.inbound.receive(app.company.id, channel, ContactId::new(contact), Execute::from(hello)).await;
    message.expect("the message is accepted");
}

#[actix_web::test]
async fn a_text_to_a_contact_that_has_never_written_is_accepted() {
    let app = OwnApp::start().await;
    let phone = app.company.phone;
    let new = sent(&app.api, text(json!({"channelId": phone, "number": "5511900000001"}))).await;
    let contact = app.contact("5511900000002").await.0;
    let open = app.api.post("/tickets", json!({"channelId": phone, "contactId": contact})).await;
    let open = id(open.data(201));
    for recipient in [json!({"ticketId": open}), json!({"channelId": phone, "contactId": contact})] {
        assert_eq!(sent(&app.api, text(recipient)).await["ticketId"], open);
    }
    assert_ne!(new["ticketId"], open);
    app.stop().await;
}

#[actix_web::test]
async fn for_a_day_after_the_contacts_last_message_anything_may_be_sent() {
    let app = OwnApp::start().await;
    let phone = app.company.phone;
    let contact = app.contact("5511900000001").await.0;
    receive_on_phone(&app, contact, TimeDelta::hours(24) + TimeDelta::seconds(1)).await;
    let open = listed(&app.api, "/tickets").await[0];
    for recipient in [json!({"ticketId": open}), json!({"channelId": phone, "contactId": contact})] {
        app.api.post("/messages", text(recipient)).await.error(422, "ERR_API_WINDOW_CLOSED");
    }
    receive_on_phone(&app, contact, TimeDelta::hours(24) - TimeDelta::minutes(2)).await;
    for recipient in [
        json!({"ticketId": open}),
        json!({"channelId": phone, "contactId": contact}),
        json!({"channelId": phone, "number": "5511900000001"}),
    ] {
        assert_eq!(sent(&app.api, text(recipient)).await["ticketId"], open);
    }
    // The window belongs to the contact and the channel, not to the ticket.
    close(&app.api, open).await;
    let next = sent(&app.api, text(json!({"channelId": phone, "contactId": contact}))).await;
    assert_ne!(next["ticketId"], open);
    close(&app.api, next["ticketId"].as_i64().expect("a ticket")).await;
    sent(&app.api, text(json!({"ticketId": open, "reopenTicket": true}))).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_closed_window_leaves_a_closed_ticket_closed() {
    let app = OwnApp::start().await;
    let contact = app.contact("5511900000001").await.0;
    receive_on_phone(&app, contact, TimeDelta::hours(25)).await;
    let closed = listed(&app.api, "/tickets").await[0];
    close(&app.api, closed).await;
    let body = text(json!({"ticketId": closed, "reopenTicket": true}));
    app.api.post("/messages", body).await.error(422, "ERR_API_WINDOW_CLOSED");
    // A send that does not reopen the ticket is refused because it is closed.
    app.api.post("/messages", text(json!({"ticketId": closed}))).await.error(409, "ERR_API_TICKET_CLOSED");
    assert_eq!(listed(&app.api, "/tickets?status=open").await, [0; 0]);
    app.stop().await;
}

#[actix_web::test]
async fn a_template_is_sent_at_any_time() {
    let app = OwnApp::start().await;
    let provider = Provider::start().await;
    let channel = Phone::connect(&app, &provider).await;
    provider.has_templates(&channel.account, vec![plain("hello", "en_US", "Hello!")]);
    let body =
        json!({"channelId": channel.id, "number": "5511900000001", "type": "template", "template": {"name": "hello"}});
    let message = sent(&app.api, body).await;
    assert_eq!((&message["type"], &message["body"]), (&json!("template"), &json!("Hello!")));
    let contact = message["contactId"].as_i64().expect("an id");
    receive_on(&app, ChannelId::new(channel.id), contact, TimeDelta::hours(25)).await;
    let after = text(json!({"ticketId": message["ticketId"]}));
    app.api.post("/messages", after).await.error(422, "ERR_API_WINDOW_CLOSED");
    let again = json!({"ticketId": message["ticketId"], "type": "template", "template": {"name": "hello"}});
    sent(&app.api, again).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_webchat_has_no_window() {
    let app = OwnApp::start().await;
    // The visitor has opened a session, and written nothing.
    let (_, visitor) = app.session("visitor").await;
    sent(&app.api, text(json!({"channelId": app.company.webchat, "contactId": visitor}))).await;
    app.stop().await;
}
