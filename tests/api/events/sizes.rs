//! The size of pages, streams and deliveries of events is bounded, however long the texts are.

use std::time::Duration;

use hotline::api::events::BYTES_MAX;
use hotline::webhooks::WebhookOptions;
use hotline_persistence::tables::events::{self, After, ReadLimits};
use hotline_persistence::tables::messages;
use hotline_persistence::{LoggedEventId, MessageId};
use serde_json::{Value, json};

use super::{after, ids, newest, types};
use crate::hooks::{MARIA, ProviderChannel, all_taken};
use crate::support::provider::hooks::{edit, text};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reader, Reply, eventually};

/// Notes of a few megabytes in total. Each is nearly as long as allowed, and twice as long in JSON.
const NOTES: usize = 30;
const NOTE_BYTES: usize = 60_000;

/// Maximum bytes of a response besides its events.
const ENVELOPE_BYTES: usize = 1_000;

/// Writes long notes in one ticket. Returns the id of the newest event before them.
async fn write_notes(app: &OwnApp) -> i64 {
    let ticket = app.ticket("5511900000001").await;
    let begin = newest(&app.api).await;
    let body = "\"".repeat(NOTE_BYTES);
    for _ in 0..NOTES {
        app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": body})).await.data(201);
    }
    let count = i64::try_from(NOTES).expect("few");
    eventually("the notes have events", || async {
        let last = events::last_id(app.service.app.db(app.company.id), app.company.id).await.expect("an id");
        last.0 == begin + count
    })
    .await;
    begin
}

fn last_id(reply: &Reply) -> i64 {
    reply.body["meta"]["lastId"].as_i64().expect("an id")
}

#[actix_web::test]
async fn a_page_of_long_events_ends_early_and_the_next_continues_there() {
    let app = OwnApp::start().await;
    let begin = write_notes(&app).await;
    let (mut last, mut seen, mut pages) = (begin, Vec::new(), 0);
    loop {
        let reply = app.api.get(&format!("/events?after={last}&limit=1000")).await;
        let page = reply.data(200).as_array().expect("a list");
        let bytes = reply.body.to_string().len();
        assert!(bytes < BYTES_MAX + 2 * NOTE_BYTES + ENVELOPE_BYTES, "{bytes} bytes in a page");
        assert_eq!(page.last().map(|event| event["id"].clone()), Some(json!(last_id(&reply))));
        assert!(page.iter().all(|event| event["data"]["body"].as_str().map(str::len) == Some(NOTE_BYTES)));
        seen.extend(ids(page));
        (last, pages) = (last_id(&reply), pages + 1);
        if reply.body["meta"]["hasMore"] == json!(false) {
            break;
        }
    }
    assert!((2..NOTES).contains(&pages), "{pages} pages");
    let expected: Vec<i64> = (begin + 1..).take(NOTES).collect();
    assert_eq!(seen, expected);

    // Two streams that share their reads, and one with a filter.
    let mut streams = Vec::new();
    for query in ["", "", "?types=note.added"] {
        streams.push(Reader::open(&app.api, query, Some(begin)).await);
    }
    for stream in &mut streams {
        assert_eq!(ids(&stream.take(NOTES).await), expected);
    }
    drop(streams);
    app.stop().await;
}

#[actix_web::test]
async fn events_beyond_the_limit_are_not_loaded_but_one_always_is() {
    let app = OwnApp::start().await;
    let begin = After::event(LoggedEventId::new(write_notes(&app).await));
    let (company, db) = (app.company.id, || app.service.app.db(app.company.id));
    let statement = "select id from messages where company_id = $1 order by id";
    let notes: Vec<MessageId> = sqlx::query_scalar(statement).bind(company).fetch_all(&app.db).await.expect("ids");
    for (bytes, count) in [(1, 1), (NOTE_BYTES, 1), (NOTE_BYTES + 1, 2), (NOTE_BYTES * NOTES, NOTES)] {
        let (rows, is_complete) = messages::find_within(db(), company, &notes, bytes).await.expect("messages");
        assert_eq!((rows.len(), is_complete), (count, count == NOTES), "{bytes} bytes");
        assert!(rows.iter().map(|row| row.id).eq(notes[..count].iter().copied()), "not the first notes");
    }
    // An id that is given twice counts twice. An id without a message does not count.
    let repeated = [notes[0], MessageId::new(1), notes[0], notes[1]];
    let (rows, is_complete) = messages::find_within(db(), company, &repeated, NOTE_BYTES + 1).await.expect("messages");
    assert_eq!((rows.len(), is_complete), (2, false));

    // Each contact is one event. A row of the log may have several events, and is always read completely.
    let long = "x".repeat(7_900);
    let rows: Vec<Value> = (0..40).map(|number| json!({"name": format!("{number}"), "headline": long})).collect();
    app.api.post("/contacts/import", json!({"contacts": rows})).await.data(200);
    let (mut after, mut seen, mut has_more) = (begin, 0, true);
    while has_more {
        let read =
            events::read(db(), company, after, &[], ReadLimits { events: 1_000, bytes: 1 }).await.expect("events");
        assert!(!read.events.is_empty(), "a read returned no event");
        seen += read.events.len();
        assert!(read.events.len() < NOTES + 40, "one read returned all events");
        (after, has_more) = (read.next, read.has_more);
    }
    assert_eq!(seen, NOTES + 40);
    app.stop().await;
}

/// With its earlier texts, the edited message is larger than what a stream reads at once.
#[actix_web::test]
async fn a_message_between_an_event_and_the_edits_of_a_long_message_is_not_shown_as_deleted() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let begin = newest(&app.api).await;
    let (phone, long) = (channel.phone_account(), "x".repeat(5_000));
    let first = text("wamid.1", &long).at(1_700_000_000);
    assert_eq!(channel.deliver(&app.api, &phone.message(MARIA, "Maria", first)).await, all_taken(1));
    let second = phone.message("5511900000002", "Ana", text("wamid.2", "second"));
    assert_eq!(channel.deliver(&app.api, &second).await, all_taken(1));
    for number in 1..=20 {
        let edited = edit(&format!("wamid.e{number}"), "wamid.1", &format!("{number} {long}"));
        let edited = phone.message(MARIA, "Maria", edited.at(1_700_000_000 + number));
        assert_eq!(channel.deliver(&app.api, &edited).await, all_taken(1));
    }
    let expected = after(&app.api, begin).await;
    let mut stream = Reader::open(&app.api, "", Some(begin)).await;
    let streamed = stream.take(expected.len()).await;
    assert_eq!(ids(&streamed), ids(&expected));
    assert!(types(&streamed).contains(&"message.updated"));
    for events in [&expected, &streamed] {
        let received = events.iter().filter(|event| event["type"] == "message.received");
        let bodies: Vec<&Value> = received.map(|event| &event["data"]["body"]).collect();
        assert_eq!(bodies, [long.as_str(), "second"]);
        assert!(events.iter().all(|event| event["data"]["deleted"].is_null()));
    }
    drop(stream);
    app.stop().await;
}

#[actix_web::test]
async fn long_events_are_delivered_each_once_and_in_order() {
    // However long a busy machine takes for an answer, no delivery is repeated.
    let defaults = TestOptions::default();
    let webhooks = WebhookOptions { response_time_max: Duration::from_secs(3_600), ..defaults.webhooks.clone() };
    let app = OwnApp::start_with(TestOptions { webhooks, ..defaults }).await;
    let receiver = crate::support::Receiver::start().await;
    let hook = json!({"url": receiver.url(), "types": ["note.added"]});
    let webhook = crate::steps::id(app.api.post("/webhooks", hook).await.data(201));
    // The webhook is inactive meanwhile, so that all deliveries become due at once: reading them is bounded as well.
    app.api.put(&format!("/webhooks/{webhook}"), json!({"active": false})).await.data(200);
    let begin = write_notes(&app).await;
    app.api.put(&format!("/webhooks/{webhook}"), json!({"active": true})).await.data(200);
    receiver.has(NOTES).await;
    let expected: Vec<i64> = (begin + 1..).take(NOTES).collect();
    assert_eq!(receiver.ids(), expected);
    app.stop().await;
}
