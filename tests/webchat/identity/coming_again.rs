//! What a returning visitor is shown, and when the token of a visitor no longer works.

use std::time::Duration;

use futures_util::future::join_all;
use hotline_actors::webchat::{NewSession, ShowSession};
use hotline_actors::{Refusal, clock};
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings, ChannelType, NewChannel, Secret};
use hotline_persistence::tables::webchat_sessions::SessionRow;
use hotline_persistence::{ContactId, SessionId};
use reqwest::Method;
use serde_json::{Value, json};

use super::{bodies, messages_of, now_s, session_of};
use crate::door::answer;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp, eventually, keys};
use crate::visitor::{Browser, Session, sign_with, signed};

#[actix_web::test]
async fn what_is_sent_after_a_session_has_ended_is_shown_in_the_next() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open_unknown(json!({"name": "Vera"})).await;
    browser.say(&session, "hello").await;
    let before = session_of(&app, &session).await;
    let ticket = before["ticketId"].as_i64().expect("ticket");
    answer(&app.api, ticket, "yes?").await;
    assert_eq!(messages_of(&browser, &session).await.len(), 2);
    browser.post(&session, "/end", json!({})).await.data(200);
    answer(&app.api, ticket, "are you there?").await;

    // The holder of the old token is the same anonymous visitor; without it, a visitor is a new one.
    let stranger = browser.open_unknown(json!({"name": "Vera"})).await;
    assert_ne!(session_of(&app, &stranger).await["contact"]["id"], before["contact"]["id"]);
    let again = browser.with(&session, Method::POST, "/sessions").json(&json!({"visitor": {"name": "Vera"}}));
    let again = Session::of(Reply::of(again).await.data(201));
    assert_eq!(session_of(&app, &again).await["contact"]["id"], before["contact"]["id"]);
    let (mut socket, frames) = browser.socket_after(&again, None).await;
    assert_eq!(bodies(&frames), ["are you there?"]);
    eventually("the answers are delivered", || async {
        app.api.all("/messages?direction=outbound").await.iter().all(|message| message["status"] == "delivered")
    })
    .await;
    let sent = browser.say(&again, "back again").await;
    assert_eq!(socket.message().await["id"], sent["id"]);
    assert_eq!(session_of(&app, &again).await["ticketId"], json!(ticket), "another ticket was opened");

    // An old token does not open the contact once the contact is verified.
    browser.identify(&again, &signed("v-1", json!({}))).await.data(200);
    let old = browser.with(&session, Method::POST, "/sessions").json(&json!({}));
    let old = Session::of(Reply::of(old).await.data(201));
    assert_ne!(
        session_of(&app, &old).await["contact"]["id"],
        before["contact"]["id"],
        "an old token opens a verified contact"
    );
    // A verified contact is found by its identity.
    browser.post(&again, "/end", json!({})).await.data(200);
    answer(&app.api, ticket, "one more thing").await;
    let next = browser.open("v-1").await;
    assert_eq!(bodies(&messages_of(&browser, &next).await), ["one more thing"]);
    eventually("the last answer is delivered", || async {
        app.api.all("/messages?direction=outbound").await.iter().all(|message| message["status"] == "delivered")
    })
    .await;
    let beside = browser.open("v-1").await;
    assert_eq!(beside.id, next.id, "another session was opened");
    assert_eq!(bodies(&messages_of(&browser, &beside).await), ["one more thing"]);
    app.stop().await;
}

#[actix_web::test]
async fn a_visitor_with_an_identity_continues_in_their_active_session() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let here = browser.open("v-1").await;
    browser.say(&here, "from home").await;
    // Many browsers at the same time, none of which has a token.
    let all = join_all((0..8).map(|_| browser.open("v-1"))).await;
    for there in &all {
        assert_eq!(there.id, here.id);
        assert_eq!(bodies(&messages_of(&browser, there).await), ["from home"]);
    }
    browser.say(&all[3], "from the shop").await;
    assert_eq!(bodies(&messages_of(&browser, &here).await), ["from home", "from the shop"]);
    assert_eq!(app.api.all("/tickets").await.len(), 1);
    // Another identity does not get into this session, and once it has ended, a new one is opened.
    let other = browser.open("v-2").await;
    assert_ne!(other.id, here.id);
    assert_eq!(messages_of(&browser, &other).await.len(), 0);
    browser.post(&here, "/end", json!({})).await.data(200);
    let next = browser.open("v-1").await;
    assert!(next.id != here.id && next.id != other.id);

    // Of browsers that come at once when there is no session yet, one opens it.
    let first = join_all((0..8).map(|_| browser.open("v-3"))).await;
    assert!(first.iter().all(|session| session.id == first[0].id));
    app.stop().await;
}

#[actix_web::test]
async fn messages_sent_while_no_visitor_was_connected_are_shown_in_the_next_session_that_is_read() {
    let options = TestOptions::default();
    let idle_after = options.engine.session_idle_after;
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v-1").await;
    browser.say(&session, "hello").await;
    let ticket = session_of(&app, &session).await["ticketId"].as_i64().expect("ticket");
    // The visitor has left, and their session has not ended yet.
    answer(&app.api, ticket, "sent to nobody").await;
    clock::advance(idle_after);
    eventually("the first session ends", || async { session_of(&app, &session).await["status"] == "ended" }).await;
    // The answer to this opening is lost.
    let lost = browser.open("v-1").await;
    clock::advance(idle_after);
    eventually("the second session ends", || async { session_of(&app, &lost).await["status"] == "ended" }).await;
    let next = browser.open("v-1").await;
    assert_eq!(bodies(&messages_of(&browser, &next).await), ["sent to nobody"]);
    app.stop().await;
}

#[actix_web::test]
async fn the_token_of_an_ended_session_does_not_read_the_next_one() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let vera = browser.open("v-1").await;
    browser.say(&vera, "one").await;
    let ticket = session_of(&app, &vera).await["ticketId"].as_i64().expect("ticket");
    browser.post(&vera, "/end", json!({})).await.data(200);
    // Until the next session begins, the visitor may return to this one.
    answer(&app.api, ticket, "are you there?").await;
    assert_eq!(bodies(&messages_of(&browser, &vera).await), ["one", "are you there?"]);

    let again = browser.open("v-1").await;
    assert_ne!(again.id, vera.id);
    browser.say(&again, "in confidence").await;
    answer(&app.api, ticket, "for you alone").await;
    assert_eq!(bodies(&messages_of(&browser, &vera).await), ["one", "are you there?"]);
    let of_company = app.api.all(&format!("/webchat/sessions/{}/messages", vera.id)).await;
    assert_eq!(bodies(&of_company), ["one", "are you there?"]);
    assert_eq!(status_of(&app, "for you alone").await, "sent", "the ended session has received it");
    // The session that shows it still does, after its end too.
    for _ in 0..2 {
        let shown = messages_of(&browser, &again).await;
        assert!(bodies(&shown).ends_with(&["in confidence", "for you alone"]), "{shown:?}");
        browser.post(&again, "/end", json!({})).await.data(200);
    }
    eventually("it is delivered", || async { status_of(&app, "for you alone").await == "delivered" }).await;
    app.stop().await;
}

#[actix_web::test]
async fn the_token_of_an_ended_session_does_not_read_one_that_was_open_beside_it() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let (at_home, away) = (browser.open("v-1").await, Browser::open_beside(&app, "v-1").await);
    assert_ne!(at_home.id, away.id);
    browser.say(&at_home, "one").await;
    assert_eq!(bodies(&messages_of(&browser, &away).await), ["one"]);
    // Times have milliseconds.
    clock::advance(Duration::from_millis(1));
    browser.post(&away, "/end", json!({})).await.data(200);
    browser.say(&at_home, "in confidence").await;
    assert_eq!(bodies(&messages_of(&browser, &away).await), ["one"]);
    assert_eq!(bodies(&messages_of(&browser, &at_home).await), ["one", "in confidence"]);
    app.stop().await;
}

#[actix_web::test]
async fn what_no_session_shows_is_neither_delivered_nor_read() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v-1").await;
    browser.say(&session, "hello").await;
    let ticket = session_of(&app, &session).await["ticketId"].as_i64().expect("ticket");
    answer(&app.api, ticket, "sent to nobody").await;
    // Times have milliseconds.
    clock::advance(Duration::from_millis(1));
    browser.post(&session, "/end", json!({})).await.data(200);

    let again = browser.open("v-1").await;
    answer(&app.api, ticket, "welcome back").await;
    let (mut socket, shown) = browser.socket_after(&again, None).await;
    assert_eq!(bodies(&shown), ["welcome back"]);
    socket.send(json!({"type": "seen", "upTo": shown[0]["id"]})).await;
    eventually("the message that is shown is read", || async { status_of(&app, "welcome back").await == "read" }).await;
    assert_eq!(status_of(&app, "sent to nobody").await, "sent");
    // Once a session shows it, it is delivered.
    assert_eq!(bodies(&messages_of(&browser, &session).await), ["hello", "sent to nobody"]);
    eventually("it is delivered", || async { status_of(&app, "sent to nobody").await == "delivered" }).await;
    app.stop().await;
}

/// The status of the message with this text.
async fn status_of(app: &TestApp, body: &str) -> Value {
    let messages = app.api.all("/messages?direction=outbound").await;
    let message = messages.iter().find(|message| message["body"] == body);
    message.expect("a message")["status"].clone()
}

#[actix_web::test]
async fn an_unverified_visitor_loses_their_session_when_the_company_verifies_the_contact() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let attacker = browser.open_unknown(json!({"email": "vera@example.com"})).await;
    browser.say(&attacker, "I am Vera").await;
    let contact = session_of(&app, &attacker).await["contact"]["id"].clone();
    // An agent believes the claim.
    app.api.put(&format!("/contacts/{contact}"), json!({"email": "vera@example.com"})).await.data(200);
    let open = json!({"channelId": app.company.webchat, "visitor": {"email": "vera@example.com"}});
    let opened = app.api.post("/webchat/sessions", open).await.data(201).clone();
    assert_eq!(opened["contact"]["id"], contact, "the company's token vouches for what it says");
    assert_eq!((&opened["verified"], &opened["contact"]["verified"]), (&json!(true), &json!(true)));
    assert_eq!(session_of(&app, &attacker).await["status"], "ended");
    browser.post(&attacker, "/messages", json!({"body": "as Vera"})).await.error(401, "ERR_API_UNAUTHORIZED");
    browser.get(&attacker, "/messages").await.error(401, "ERR_API_UNAUTHORIZED");
    let continued = browser.with(&attacker, Method::POST, "/sessions").json(&json!({}));
    let continued = Session::of(Reply::of(continued).await.data(201));
    assert_ne!(session_of(&app, &continued).await["contact"]["id"], contact);
    // The same with the contact's id.
    let other = browser.open_unknown(json!({})).await;
    let contact = session_of(&app, &other).await["contact"]["id"].clone();
    let open = json!({"channelId": app.company.webchat, "contactId": contact});
    assert_eq!(app.api.post("/webchat/sessions", open).await.data(201)["verified"], true);
    assert_eq!(session_of(&app, &other).await["status"], "ended");
    app.stop().await;
}

#[actix_web::test]
async fn an_unverified_visitor_does_not_read_what_a_verified_one_writes_after_a_merge() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let stranger = browser.open_unknown(json!({})).await;
    browser.say(&stranger, "hello").await;
    let contact = session_of(&app, &stranger).await["contact"]["id"].clone();
    browser.post(&stranger, "/end", json!({})).await.data(200);
    assert_eq!(bodies(&messages_of(&browser, &stranger).await), ["hello"]);
    let vera = browser.open("v-1").await;
    let into = session_of(&app, &vera).await["contact"]["id"].clone();
    app.api.post(&format!("/contacts/{into}/merge"), json!({"fromContactId": contact})).await.data(200);
    browser.say(&vera, "in confidence").await;
    for path in ["/messages", "/session"] {
        browser.get(&stranger, path).await.error(401, "ERR_API_UNAUTHORIZED");
    }
    // The stranger is a new visitor, and the verified one can still read.
    let next = browser.with(&stranger, Method::POST, "/sessions").json(&json!({}));
    let next = Session::of(Reply::of(next).await.data(201));
    assert_ne!(session_of(&app, &next).await["contact"]["id"], into);
    assert!(bodies(&messages_of(&browser, &vera).await).contains(&"in confidence"));
    app.stop().await;
}

#[actix_web::test]
async fn no_session_of_an_unverified_visitor_begins_with_a_verified_contact() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let (stranger, vera) = (browser.open_unknown(json!({})).await, browser.open("v-1").await);
    let contact = session_of(&app, &vera).await["contact"]["id"].as_i64().expect("a contact");
    let sessions = &app.service.app.engine.sessions;
    let row = sessions.ask(app.company.id, &SessionId(stranger.id.clone()), ShowSession).await.expect("a session");
    // As if a merge had verified the contact just before.
    let row = SessionRow { id: SessionId::random(), contact_id: ContactId::new(contact), ..row };
    let begun = sessions.begin(NewSession { row, attached: None }).await;
    assert!(matches!(begun, Err(Refusal::NotFound)), "{begun:?}");
    app.stop().await;
}

#[actix_web::test]
async fn an_identity_is_valid_only_in_the_webchat_whose_secret_signed_it() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let settings = ChannelSettings { allowed_origins: vec![browser.origin.clone()], ..ChannelSettings::default() };
    let new = NewChannel { name: "Another", kind: ChannelType::Webchat, number: None, queue_id: None, settings };
    let there = channels::insert(&app.db, &keys(), app.company.id, new).await.expect("a webchat");
    let there = Browser::on(&app, &app.company, there.id).await;
    let set_secret = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), hotline_persistence::Error> {
        settings.identity_secrets = vec![Secret("ids_of that one".to_owned())];
        Ok(())
    };
    let key = there.key.clone();
    let id: i64 = sqlx::query_scalar("select id from channels where public_key = $1")
        .bind(&key)
        .fetch_one(&app.db)
        .await
        .expect("id");
    let id = hotline_persistence::ChannelId::new(id);
    channels::update(&app.db, &keys(), app.company.id, id, set_secret).await.expect("a secret");
    let own = sign_with("ids_of that one", &json!({"sub": "v-1", "exp": now_s() + 3600}));
    eventually("its secret is seen", || async { there.try_open_as(&own).await.status == 201 }).await;
    there.try_open_as(&signed("v-1", json!({}))).await.error(401, "ERR_API_UNAUTHORIZED");
    browser.try_open_as(&own).await.error(401, "ERR_API_UNAUTHORIZED");
    // The company has one contact for one external id, whichever of its webchats the visitor uses.
    let (here, elsewhere) = (browser.open("v-1").await, Session::of(there.try_open_as(&own).await.data(201)));
    assert_eq!(session_of(&app, &here).await["contact"]["id"], session_of(&app, &elsewhere).await["contact"]["id"]);
    app.stop().await;
}
