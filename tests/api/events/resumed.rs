//! A stream that resumes while another stays open: both share what was read, but not what was removed since.

use hotline_persistence::ContactId;
use hotline_persistence::tables::erasures;
use serde_json::json;

use super::{after, newest};
use crate::hooks::{MARIA, ProviderChannel, all_taken, tickets};
use crate::steps::{close, id};
use crate::support::provider::hooks::{Message, revoke, text};
use crate::support::{OwnApp, Reader, TestApp, eventually};

/// The contact's name, which nothing else contains.
const NAME: &str = "Zeldaquux";

async fn deliver(app: &TestApp, channel: &ProviderChannel, message: Message) {
    let call = channel.phone_account().messages(MARIA, NAME, vec![message]);
    assert_eq!(channel.deliver(&app.api, &call).await, all_taken(1));
}

/// Reads a stream up to the next event of a type.
async fn read_to(stream: &mut Reader, kind: &str) {
    while stream.next().await.expect("the stream continues")["type"] != kind {}
}

/// Asserts that a stream that resumes after an event shows what the log shows, and nothing with this text.
async fn assert_not_shown(app: &TestApp, last: i64, removed: &str) {
    let logged = after(&app.api, last).await;
    let mut resumed = Reader::open(&app.api, "", Some(last)).await;
    let shown = resumed.take(logged.len()).await;
    assert_eq!(shown, logged, "the stream differs from the log");
    assert!(!json!(shown).to_string().contains(removed), "`{removed}` is shown: {shown:?}");
}

#[actix_web::test]
async fn a_stream_that_resumes_shows_nothing_that_was_deleted_or_erased_meanwhile() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    // What this stream has read stays in memory for streams that are slightly behind.
    let mut open = Reader::open(&app.api, "", None).await;
    let last = newest(&app.api).await;
    deliver(&app, &channel, text("wamid.1", "revoked text")).await;
    read_to(&mut open, "message.received").await;
    deliver(&app, &channel, revoke("wamid.2", "wamid.1")).await;
    assert_not_shown(&app, last, "revoked text").await;

    deliver(&app, &channel, text("wamid.3", "deleted text")).await;
    read_to(&mut open, "message.received").await;
    let ticket = tickets(&app.api, channel.id).await.remove(0);
    close(&app.api, id(&ticket)).await;
    read_to(&mut open, "ticket.closed").await;
    let contact = id(&ticket["contact"]);
    assert_eq!(app.api.delete(&format!("/contacts/{contact}")).await.status, 204);
    assert_not_shown(&app, last, "deleted text").await;

    read_to(&mut open, "contact.deleted").await;
    let (db, company, contact) = (&app.db, app.company.id, ContactId::new(contact));
    erasures::request(db, company, contact).await.expect("it is requested");
    eventually("the contact is erased", || async {
        let erasure = erasures::find(db, company, contact).await.expect("it is read");
        erasure.expect("it exists").done_at.is_some()
    })
    .await;
    assert_not_shown(&app, last, NAME).await;
    // The open stream continues where it was.
    app.api.post("/contacts", json!({"name": "Maria"})).await.data(201);
    read_to(&mut open, "contact.created").await;
    app.stop().await;
}
