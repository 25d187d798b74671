//! What providers report besides messages: edits, deletions, reactions and notices.

use std::time::Duration;

use hotline_actors::clock;
use hotline_persistence::tables::channels::ChannelType::{Instagram, Messenger, Whatsapp};
use serde_json::{Value, json};

use super::statuses::sent;
use super::{MARIA, ProviderChannel, Setup, all_taken, messages, tickets};
use crate::check_list::check_list;
use crate::steps::{close, history, restarted, ticket};
use crate::support::events::check_events;
use crate::support::provider::Provider;
use crate::support::provider::hooks::{Message, edit, events, image, reaction, revoke, text};
use crate::support::{OwnApp, TestApp, eventually};

const PSID: &str = "6548123456784821";
const PNG: &[u8] = &[
    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1F, 0x15, 0xC4, 0x89,
];

fn raw_message(id: &str, kind: &str, part: Value) -> Message {
    Message(json!({"id": id, "type": kind, kind: part}))
}

async fn deliver_messages(app: &TestApp, channel: &ProviderChannel, messages: Vec<Message>) -> super::Tally {
    channel.deliver(&app.api, &channel.phone_account().messages(MARIA, "Maria", messages)).await
}

/// The types of the company's message events, oldest first.
async fn message_event_types(app: &TestApp) -> Vec<String> {
    let events = app.api.get("/events?limit=1000").await;
    let kinds = events.data(200).as_array().expect("events").iter();
    let kinds = kinds.map(|event| event["type"].as_str().expect("a type").to_owned());
    kinds.filter(|kind| kind.starts_with("message.")).collect()
}

#[actix_web::test]
async fn notes_and_notices_are_listed_together_as_internal_messages() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "hello")]).await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    for index in 0..3 {
        let notice = json!({"type": "customer_identity_changed", "body": "code changed"});
        deliver_messages(&app, &channel, vec![raw_message(&format!("wamid.s{index}"), "system", notice)]).await;
        app.api.post(&format!("/tickets/{}/notes", opened["id"]), json!({"body": "note"})).await.data(201);
    }
    let all = messages(&app.api, channel.id).await;
    let internal: Vec<&Value> = all.iter().filter(|message| message["direction"] == "internal").collect();
    let types: Vec<&Value> = internal.iter().map(|message| &message["type"]).collect();
    assert_eq!(types, ["system", "note", "system", "note", "system", "note"]);
    let internal: Vec<i64> = internal.iter().filter_map(|message| message["id"].as_i64()).collect();
    check_list(&app, "/messages?direction=internal", &internal, &["created", "updated"]).await;
    app.stop().await;
}

#[actix_web::test]
async fn news_opens_no_ticket_and_becomes_a_notice_in_an_open_one() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let changed =
        || raw_message("wamid.s", "system", json!({"type": "customer_identity_changed", "body": "code changed"}));
    let news = vec![
        changed(),
        raw_message("wamid.w", "request_welcome", json!({})),
        raw_message("wamid.p", "poll_creation", json!({"name": "Pizza?"})),
    ];
    let tally = deliver_messages(&app, &channel, news).await;
    assert_eq!((tally.taken, tally.ignored), (0, 3));
    assert_eq!(app.api.all("/contacts").await.len(), 0, "a notice created a contact");

    deliver_messages(&app, &channel, vec![text("wamid.1", "hello")]).await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    for expected in [(1, 0), (0, 1)] {
        let tally = deliver_messages(&app, &channel, vec![changed()]).await;
        assert_eq!((tally.taken, tally.ignored), expected);
    }
    let all = messages(&app.api, channel.id).await;
    let notice = &all[1];
    assert_eq!(
        (all.len(), &notice["type"], &notice["direction"], &notice["body"]),
        (2, &json!("system"), &json!("internal"), &json!("code changed"))
    );
    let after = ticket(&app.api, opened["id"].as_i64().expect("an id")).await;
    for field in ["unreadCount", "lastMessage", "waitingSince", "updatedAt", "assignedTo"] {
        assert_eq!(after[field], opened[field], "{field}");
    }
    assert_eq!(history(&app.api, opened["id"].as_i64().expect("an id")).await.len(), 1, "more than the opening");
    assert_eq!(app.api.all("/messages?direction=internal").await.len(), 1);
    close(&app.api, opened["id"].as_i64().expect("an id")).await;
    assert_eq!(
        deliver_messages(&app, &channel, vec![raw_message("wamid.t", "system", json!({"body": "x"}))]).await.ignored,
        1
    );
    assert_eq!(tickets(&app.api, channel.id).await.len(), 1);
    assert_eq!(message_event_types(&app).await, ["message.received", "message.created"]);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn an_edit_changes_its_message_once_and_keeps_the_earlier_text() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "old text").at(1_700_000_000)]).await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    let id = opened["id"].as_i64().expect("an id");
    let edited = || edit("wamid.2", "wamid.1", "new text").at(1_700_000_100);
    assert_eq!(deliver_messages(&app, &channel, vec![edited()]).await, all_taken(1));
    assert_eq!(deliver_messages(&app, &channel, vec![edited()]).await.repeated, 1);
    assert_eq!(ticket(&app.api, id).await["lastMessage"]["body"], "new text");
    close(&app.api, id).await;
    assert_eq!(
        deliver_messages(&app, &channel, vec![edit("wamid.3", "wamid.1", "newer text").at(1_700_000_200)]).await,
        all_taken(1)
    );
    let all = messages(&app.api, channel.id).await;
    let [message] = all.as_slice() else { panic!("not exactly one message: {all:?}") };
    assert_eq!((&message["body"], &message["editedAt"]), (&json!("newer text"), &json!("2023-11-14T22:16:40.000Z")));
    assert_eq!(
        message["edits"],
        json!([
            {"body": "old text", "at": "2023-11-14T22:15:00.000Z"},
            {"body": "new text", "at": "2023-11-14T22:16:40.000Z"},
        ])
    );
    assert_eq!(tickets(&app.api, channel.id).await.len(), 1, "an edit opened a ticket");
    assert_eq!(ticket(&app.api, id).await["unreadCount"], opened["unreadCount"]);

    let logged = app.api.get("/events?types=message.received,message.updated").await;
    let logged: Vec<(Value, Value)> = logged
        .data(200)
        .as_array()
        .expect("events")
        .iter()
        .map(|event| (event["data"]["body"].clone(), event["previous"].clone()))
        .collect();
    assert_eq!(
        logged,
        [
            (json!("old text"), Value::Null),
            (json!("new text"), json!({"editedAt": null, "body": "old text"})),
            (json!("newer text"), json!({"editedAt": "2023-11-14T22:15:00.000Z", "body": "new text"})),
        ]
    );
    let log = app.api.get("/events?types=message.received,message.updated").await;
    let log = log.data(200).as_array().expect("events");
    assert_eq!(log[0]["data"]["updatedAt"], message["createdAt"], "the edits changed the event of the receipt");
    let updated: Vec<_> = log.iter().filter_map(|event| event["data"]["updatedAt"].as_str()).collect();
    assert!(updated.len() == 3 && updated[0] < updated[1] && updated[1] <= updated[2], "{updated:?}");
    assert_eq!(Some(updated[2]), message["updatedAt"].as_str());
    check_events(&app.db, app.company.id).await;
    let app = restarted(app).await;
    assert_eq!(messages(&app.api, channel.id).await, all, "the restart changed the messages");
    app.stop().await;
}

/// In the past, every event showed the last text: the time of an earlier event, written while another clock was ahead,
/// was also theirs, and all edits seemed to come before it.
#[actix_web::test]
async fn an_edit_has_its_own_text_in_its_event_also_after_an_event_with_a_later_time() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "first").at(1_700_000_000)]).await;
    assert_eq!(message_event_types(&app).await, ["message.received"]);
    let ahead = "update event_counters set last_at = now() + interval '1 hour' where company_id = $1";
    let ahead = sqlx::query(ahead).bind(app.company.id).execute(&app.db).await.expect("the time of the last event");
    assert_eq!(ahead.rows_affected(), 1);
    for message in [
        edit("wamid.2", "wamid.1", "second").at(1_700_000_100),
        reaction("wamid.3", "wamid.1", Some("\u{1F44D}")),
        edit("wamid.4", "wamid.1", "third").at(1_700_000_200),
    ] {
        assert_eq!(deliver_messages(&app, &channel, vec![message]).await, all_taken(1));
        // The resolution of times: the next change has a later one.
        clock::advance(Duration::from_millis(1));
    }
    let events = app.api.get("/events?types=message.updated,message.reaction").await;
    let events = events.data(200).as_array().expect("events");
    assert_eq!(events[0]["createdAt"], events[2]["createdAt"], "their times were not raised");
    let bodies: Vec<&Value> = events.iter().map(|event| &event["data"]["body"]).collect();
    // The event of an edit has its own text; any other at least the text of the moment.
    assert_eq!(bodies, ["second", "third", "third"]);
    let previous: Vec<&Value> = events.iter().map(|event| &event["previous"]["body"]).collect();
    assert_eq!(previous, [&json!("first"), &Value::Null, &json!("second")]);
    app.stop().await;
}

#[actix_web::test]
async fn a_revoked_message_loses_its_text_and_its_file() {
    let provider = Provider::start().await;
    let app = OwnApp::start().await;
    let setup = Setup { provider_url: Some(&provider.url), ..Setup::default() };
    let channel = ProviderChannel::create(&app, &app.company, Whatsapp, setup).await;
    let picture = provider.offer("image/png", PNG);
    deliver_messages(&app, &channel, vec![text("wamid.0", "first"), image("wamid.1", &picture, Some("a secret"))])
        .await;
    let last = async || messages(&app.api, channel.id).await.pop().unwrap_or_default();
    eventually("the file is there", || async { last().await["media"].is_object() }).await;
    let url = last().await["media"]["url"].as_str().expect("an address").to_owned();
    let status = async || app.api.anonymous(reqwest::Method::GET, &url).send().await.expect("an answer").status();
    assert_eq!(status().await, 200);
    deliver_messages(&app, &channel, vec![edit("wamid.2", "wamid.1", "another secret")]).await;
    assert_eq!(deliver_messages(&app, &channel, vec![revoke("wamid.3", "wamid.1")]).await, all_taken(1));
    let revoked = last().await;
    assert_eq!((&revoked["body"], &revoked["media"], &revoked["edits"]), (&Value::Null, &Value::Null, &json!([])));
    assert!(revoked["deletedAt"].is_string(), "no trace is left: {revoked}");
    eventually("the file is gone", || async { status().await == 404 }).await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    assert_eq!(opened["lastMessage"]["body"], Value::Null);
    let log = app.api.get("/events?types=message.received,message.updated,message.deleted").await;
    assert!(!log.body.to_string().contains("secret"), "{}", log.body);
    assert_eq!(message_event_types(&app).await.pop().as_deref(), Some("message.deleted"));
    assert_eq!(deliver_messages(&app, &channel, vec![revoke("wamid.3", "wamid.1")]).await.repeated, 1);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_text_of_a_revoked_message_is_gone_from_the_events_of_its_ticket() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "a secret")]).await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    close(&app.api, opened["id"].as_i64().expect("an id")).await;
    let last_messages = async || -> Vec<Value> {
        let events = app.api.get("/events?types=ticket.opened,ticket.closed").await;
        let events = events.data(200).as_array().expect("events").iter();
        events.map(|event| event["data"]["lastMessage"].clone()).collect()
    };
    let before = last_messages().await;
    assert_eq!(before.iter().map(|message| &message["body"]).collect::<Vec<_>>(), ["a secret"; 2]);
    assert_eq!(deliver_messages(&app, &channel, vec![revoke("wamid.2", "wamid.1")]).await, all_taken(1));
    for (mut message, earlier) in last_messages().await.into_iter().zip(before) {
        assert_eq!(message["body"].take(), Value::Null);
        message["body"] = earlier["body"].clone();
        assert_eq!(message, earlier, "more than the body has changed");
    }
    let log = app.api.get("/events").await;
    assert!(!log.body.to_string().contains("secret"), "{}", log.body);
    app.stop().await;
}

#[actix_web::test]
async fn edits_revocations_and_reactions_may_arrive_before_their_message() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    let early = vec![
        edit("wamid.e", "wamid.1", "new text"),
        revoke("wamid.r", "wamid.2"),
        reaction("wamid.l", "wamid.1", Some("\u{1F44D}")),
    ];
    assert_eq!(deliver_messages(&app, &channel, early).await, all_taken(3));
    assert_eq!(app.api.all("/contacts").await.len(), 0);
    let app = restarted(app).await;
    let originals = vec![text("wamid.1", "old text"), text("wamid.2", "a secret")];
    assert_eq!(deliver_messages(&app, &channel, originals).await, all_taken(2));
    let all = messages(&app.api, channel.id).await;
    assert_eq!((&all[0]["body"], &all[0]["edits"][0]["body"]), (&json!("new text"), &json!("old text")));
    assert_eq!(all[0]["reactions"][0]["emoji"], "\u{1F44D}");
    assert_eq!(all[1]["body"], Value::Null);
    assert!(all[1]["deletedAt"].is_string(), "{}", all[1]);
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn all_files_of_a_revoked_social_message_are_gone() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::create(&app, &app.company, Messenger, Setup::default()).await;
    let page = channel.page("page");
    let call = |event: Value| page.call_body(PSID, 1_700_000_000_000, vec![event]);
    let revocation = |mid: &str| call(json!({"message": {"mid": mid, "is_deleted": true}}));
    // The revocation arrives before its message, and before a restart.
    assert_eq!(channel.deliver(&app.api, &revocation("m_1")).await, all_taken(1));
    let app = restarted(app).await;
    let file = json!({"type": "image", "payload": {"url": "https://cdn.example/1.png"}});
    let three = call(json!({"message": {"mid": "m_1", "attachments": [file, file, file]}}));
    assert_eq!(channel.deliver(&app.api, &three).await, all_taken(3));
    // As if an earlier call had failed between the first message and its next part.
    channel.deliver(&app.api, &call(events::text("m_2", "first"))).await;
    assert_eq!(channel.deliver(&app.api, &revocation("m_2")).await, all_taken(1));
    channel.deliver(&app.api, &call(events::text("m_2#2", "second"))).await;
    assert_eq!(channel.deliver(&app.api, &revocation("m_2")).await, all_taken(1));
    let all = messages(&app.api, channel.id).await;
    assert_eq!(all.len(), 5);
    for message in all {
        assert!(message["deletedAt"].is_string() && message["media"].is_null(), "{message}");
    }
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_message_has_at_most_one_reaction_per_person() {
    let app = OwnApp::start().await;
    let channel = ProviderChannel::phone(&app).await;
    deliver_messages(&app, &channel, vec![text("wamid.1", "hello")]).await;
    let contact = messages(&app.api, channel.id).await[0]["contactId"].clone();
    let ours = sent(&app, &channel, &contact, "our answer", "wamid.ours").await;
    let opened = tickets(&app.api, channel.id).await.remove(0);
    close(&app.api, opened["id"].as_i64().expect("an id")).await;
    let shown = async || {
        let message = app.api.get(&format!("/messages/{ours}")).await.data(200)["reactions"].clone();
        let reactions = message.as_array().expect("reactions").iter();
        reactions
            .map(|reaction| (reaction["emoji"].clone(), reaction["by"].clone(), reaction["name"].clone()))
            .collect::<Vec<_>>()
    };
    for (id, emoji) in [("wamid.a", "\u{1F44D}"), ("wamid.b", "\u{2764}")] {
        assert_eq!(deliver_messages(&app, &channel, vec![reaction(id, "wamid.ours", Some(emoji))]).await, all_taken(1));
        assert_eq!(shown().await, [(json!(emoji), json!("contact"), json!("Maria"))]);
    }
    assert_eq!(deliver_messages(&app, &channel, vec![reaction("wamid.c", "wamid.ours", None)]).await, all_taken(1));
    assert!(shown().await.is_empty());
    assert_eq!(messages(&app.api, channel.id).await.len(), 2, "a reaction is stored as a message");
    assert_eq!(tickets(&app.api, channel.id).await[0]["status"], "closed");
    let log = app.api.get("/events?types=message.created,message.reaction").await;
    let of_event = |event: &Value| -> Value {
        let reactions = event["data"]["reactions"].as_array().expect("reactions").iter();
        reactions.map(|reaction| reaction["emoji"].clone()).collect()
    };
    let reactions: Vec<Value> = log.data(200).as_array().expect("events").iter().map(of_event).collect();
    let expected = [json!([]), json!(["\u{1F44D}"]), json!(["\u{2764}"]), json!([])];
    assert_eq!(reactions, expected, "not as of each event");
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}

#[actix_web::test]
async fn contacts_on_social_channels_edit_revoke_and_react_too() {
    let app = OwnApp::start().await;
    for (kind, object) in [(Messenger, "page"), (Instagram, "instagram")] {
        let channel = ProviderChannel::create(&app, &app.company, kind, Setup::default()).await;
        let page = channel.page(object);
        let deliver =
            async |event: Value| channel.deliver(&app.api, &page.call_body(PSID, 1_700_000_000_000, vec![event])).await;
        deliver(events::text("m_1", "old text")).await;
        let edited = json!({"message_edit": {"mid": "m_1", "text": "new text", "num_edit": 1}});
        assert_eq!(deliver(edited.clone()).await, all_taken(1));
        assert_eq!(deliver(edited).await.repeated, 1);
        assert_eq!(deliver(events::reaction("m_1", "\u{2764}")).await, all_taken(1));
        let all = messages(&app.api, channel.id).await;
        assert_eq!((all.len(), &all[0]["body"]), (1, &json!("new text")), "{object}");
        assert_eq!(all[0]["reactions"][0]["emoji"], "\u{2764}");
        assert_eq!(deliver(json!({"message": {"mid": "m_1", "is_deleted": true}})).await, all_taken(1));
        let all = messages(&app.api, channel.id).await;
        assert_eq!((all.len(), &all[0]["body"], &all[0]["reactions"]), (1, &Value::Null, &json!([])));
        // An event of an unknown kind is a notice.
        assert_eq!(deliver(json!({"optin": {"ref": "x"}})).await, all_taken(1));
        assert_eq!(messages(&app.api, channel.id).await[1]["body"], "[optin]");
    }
    check_events(&app.db, app.company.id).await;
    app.stop().await;
}
