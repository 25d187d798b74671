//! What is pushed to a visitor, and what a visitor's browser sends.

use futures_util::future::join_all;
use hotline_actors::clock;
use hotline_actors::services::Recipient;
use hotline_actors::tickets::{Author, Send};
use hotline_persistence::TicketId;
use serde_json::{Value, json};

use crate::door::{answer, only_ticket};
use crate::support::{OwnApp, TestApp, eventually};
use crate::visitor::Browser;

#[actix_web::test]
async fn what_an_agent_says_is_pushed_delivered_and_read() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let (mut socket, frames) = browser.frames_after(&session, None).await;
    assert_eq!(frames, [json!({"type": "caughtUp", "lastId": null})]);
    let posted = browser.say(&session, "hello").await;
    assert_eq!(socket.next().await, json!({"type": "message", "message": posted}));

    let ticket = only_ticket(&app.api).await;
    let body = json!({"ticketId": ticket, "type": "text", "body": "<img src=x onerror=alert(1)>"});
    let job = app.api.post("/messages", body).await.data(202)["jobId"].as_str().expect("job").to_owned();
    let pushed = socket.message().await;
    assert_eq!(pushed["body"], "<img src=x onerror=alert(1)>");
    assert_eq!(
        (&pushed["direction"], &pushed["status"], &pushed["clientId"]),
        (&json!("outbound"), &json!("sent"), &Value::Null)
    );
    let status = socket.next_of("status").await;
    let id = &pushed["id"];
    assert_eq!(
        (&status["direction"], &status["status"], &status["upTo"]),
        (&json!("outbound"), &json!("delivered"), id)
    );
    let job = || async { app.api.get(&format!("/messages/jobs/{job}")).await.data(200)["status"].clone() };
    assert_eq!(job().await, "delivered");

    socket.send(json!({"type": "seen", "upTo": id})).await;
    let status = socket.next_of("status").await;
    assert_eq!((&status["direction"], &status["status"], &status["upTo"]), (&json!("outbound"), &json!("read"), id));
    assert_eq!(job().await, "read");
    let read = app.api.get(&format!("/messages/{id}")).await.data(200).clone();
    assert!(read["deliveredAt"].is_string() && read["readAt"].is_string(), "{read}");

    app.api.post(&format!("/tickets/{ticket}/read"), json!({})).await.data(200);
    let status = socket.next_of("status").await;
    assert_eq!((&status["direction"], &status["status"]), (&json!("inbound"), &json!("read")));
    assert!(status["upTo"].as_i64() >= posted["id"].as_i64(), "{status}");

    // A socket that opens later gets the current statuses.
    let (_late, mut frames) = browser.frames_after(&session, id.as_i64()).await;
    assert_eq!(frames.pop(), Some(json!({"type": "caughtUp", "lastId": id})));
    assert!(frames.iter().all(|frame| frame["type"] == "status"), "{frames:?}");
    let state_of = |frame: &Value| (frame["direction"].clone(), frame["status"].clone(), frame["upTo"].clone());
    let states: Vec<_> = frames.iter().map(state_of).collect();
    let state = |direction: &str, status: &str, up_to: &Value| (json!(direction), json!(status), up_to.clone());
    assert_eq!(
        states,
        [state("outbound", "delivered", id), state("outbound", "read", id), state("inbound", "read", &posted["id"])]
    );
    app.stop().await;
}

#[actix_web::test]
async fn two_tabs_are_shown_the_same_messages_once_each() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut tabs = [browser.socket(&session).await, browser.socket(&session).await];
    let sent = json!({"body": "from the first tab", "clientId": "tab-1-1"});
    let posted = browser.post(&session, "/messages", sent.clone()).await.data(201).clone();
    // Sending it again does not make a second message.
    assert_eq!(browser.post(&session, "/messages", sent).await.data(201), &posted);
    answer(&app.api, only_ticket(&app.api).await, "an answer").await;
    for tab in &mut tabs {
        assert_eq!(tab.message().await, posted);
        assert_eq!(tab.message().await["body"], "an answer");
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_message_that_only_another_tab_has_received_is_read_once_it_is_seen() {
    let app = OwnApp::start().await;
    // The clock stands still, so that the service never closes a socket because its `after` is late.
    clock::stop();
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let mut first = browser.socket(&session).await;
    answer(&app.api, only_ticket(&app.api).await, "an answer").await;
    let id = first.message().await["id"].clone();
    assert_eq!(first.next_of("status").await["status"], "delivered");
    let mut second = browser.raw_socket(&session).await;
    second.send(json!({"type": "after", "id": id})).await;
    second.send(json!({"type": "seen", "upTo": id})).await;
    assert_eq!(first.next_of("status").await["status"], "read");
    app.stop().await;
}

#[actix_web::test]
async fn notes_and_other_peoples_conversations_are_never_pushed() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let mut socket = browser.socket(&session).await;
    // Another visitor, another company's visitor of the same name, and the same contact on the phone channel.
    let stranger = browser.open("w").await;
    browser.say(&stranger, "of somebody else").await;
    let (other, _) = app.another_company().await;
    let elsewhere = Browser::on(&app, &other, other.webchat).await;
    let namesake = elsewhere.open("v").await;
    let mut theirs = elsewhere.socket(&namesake).await;
    elsewhere.say(&namesake, "of another company").await;
    let contact = app.api.get(&format!("/tickets/{ticket}")).await.data(200)["contact"]["id"].clone();
    app.api.put(&format!("/contacts/{contact}"), json!({"number": "5511999990001"})).await.data(200);
    let by_phone = json!({"channelId": app.company.phone, "contactId": contact, "type": "text", "body": "by phone"});
    app.api.post("/messages", by_phone).await.data(202);
    app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "a note"})).await.data(201);
    answer(&app.api, ticket, "the only one").await;
    assert_eq!(socket.message().await["body"], "the only one");
    assert_eq!(theirs.message().await["body"], "of another company");
    app.stop().await;
}

#[actix_web::test]
async fn a_session_shows_what_was_said_since_it_began_and_no_more() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let first = browser.open("v").await;
    browser.say(&first, "a secret").await;
    answer(&app.api, only_ticket(&app.api).await, "another one").await;
    // Another session of the same visitor.
    let second = Browser::open_beside(&app, "v").await;
    let (mut socket, shown) = browser.socket_after(&second, None).await;
    assert_eq!(shown, [0; 0]);
    let news = browser.say(&first, "from now on").await;
    let pushed = socket.message().await;
    assert_eq!((&pushed["id"], &pushed["body"]), (&news["id"], &json!("from now on")));
    app.stop().await;
}

#[actix_web::test]
async fn messages_of_a_burst_are_pushed_in_order_and_once_each() {
    const MESSAGES: usize = 60;
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    let mut socket = browser.socket(&session).await;
    let texts: Vec<String> = (0..MESSAGES).map(|number| format!("m-{number}")).collect();
    let (_, shown) =
        futures_util::future::join(join_all(texts.iter().map(|text| answer(&app.api, ticket, text))), async {
            let mut shown = Vec::new();
            while shown.len() < MESSAGES {
                shown.push(socket.message().await);
            }
            shown
        })
        .await;
    let ids: Vec<i64> = shown.iter().filter_map(|message| message["id"].as_i64()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    let mut bodies: Vec<&str> = shown.iter().filter_map(|message| message["body"].as_str()).collect();
    bodies.sort_unstable();
    let mut expected: Vec<&str> = texts.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
    eventually("all are delivered", || async {
        let sent = app.api.all(&format!("/messages?ticketId={ticket}&direction=outbound")).await;
        sent.iter().all(|message| message["status"] == "delivered")
    })
    .await;
    app.stop().await;
}

#[actix_web::test]
async fn a_message_says_which_agent_wrote_it() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let mut socket = browser.socket(&session).await;
    let ticket = only_ticket(&app.api).await;
    answer(&app.api, ticket, "from the integration").await;
    assert_eq!(socket.message().await["agent"], Value::Null);
    let author = Author { user: Some((app.company.ana, "Ana".to_owned())), ..Author::API };
    let send = Send::text("from Ana", author);
    let sending = &app.service.app.engine.sending;
    let target = sending.resolve(app.company.id, Recipient::Ticket(TicketId::new(ticket))).await.expect("the ticket");
    sending.send(&target, send).await.expect("the message is sent");
    let pushed = socket.message().await;
    assert_eq!((&pushed["body"], &pushed["agent"]), (&json!("from Ana"), &json!({"name": "Ana"})));
    let listed = browser.get(&session, "/messages").await;
    assert_eq!(listed.data(200)[2]["agent"], json!({"name": "Ana"}));
    app.stop().await;
}
