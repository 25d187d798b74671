//! A visitor signs in during a session, or in a browser that another visitor has used.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use hotline_actors::EngineOptions;
use reqwest::Method;
use serde_json::{Value, json};

use super::{bodies, messages_of, session_of};
use crate::door::answer;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply, TestApp, eventually};
use crate::visitor::{Browser, Session, signed};

#[actix_web::test]
async fn signing_in_with_a_new_identity_keeps_session_and_contact() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open_unknown(json!({"name": "V", "email": "claimed@example.com"})).await;
    let mut socket = browser.socket(&session).await;
    let sent = browser.say(&session, "where is my order?").await;
    socket.message().await;
    let before = session_of(&app, &session).await;

    let identity = signed("v-1", json!({"name": "Vera", "email": "vera@example.com"}));
    let identified = browser.identify(&session, &identity).await;
    let identified = identified.data(200);
    assert_eq!((&identified["id"], &identified["verified"]), (&json!(session.id), &json!(true)));
    assert!(identified.get("token").is_none(), "{identified}");
    let after = session_of(&app, &session).await;
    assert_eq!(after["contact"]["id"], before["contact"]["id"]);
    assert_eq!(
        (&after["verified"], &after["status"], &after["contact"]["verified"]),
        (&json!(true), &json!("active"), &json!(true))
    );
    assert_eq!((&after["contact"]["name"], &after["contact"]["email"]), (&json!("Vera"), &json!("vera@example.com")));
    assert_eq!(after["claimed"]["email"], "claimed@example.com", "the claim was not kept");
    let tickets = app.api.all("/tickets").await;
    assert_eq!((&tickets[0]["verified"], &tickets[0]["contact"]["name"]), (&json!(true), &json!("Vera")));
    assert_eq!(app.api.all("/messages?type=note").await.len(), 0);
    // The conversation continues, in the same socket.
    answer(&app.api, tickets[0]["id"].as_i64().expect("id"), "On its way, Vera").await;
    assert_eq!(socket.message().await["body"], "On its way, Vera");

    // A second sign-in changes nothing; a new opening finds the same contact.
    assert_eq!(browser.identify(&session, &identity).await.data(200)["id"], json!(session.id));
    let mine = browser.open("v-1").await;
    assert_eq!(session_of(&app, &mine).await["contact"]["id"], before["contact"]["id"]);
    assert_eq!(app.api.get(&format!("/messages/{}", sent["id"])).await.data(200)["contactId"], before["contact"]["id"]);
    app.stop().await;
}

#[actix_web::test]
async fn signing_in_with_a_known_identity_moves_to_its_active_session() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let at_home = Session::of(browser.try_open_as(&signed("v-1", json!({"name": "Vera"}))).await.data(201));
    browser.say(&at_home, "from home").await;
    let known = session_of(&app, &at_home).await;

    let unknown = browser.open_unknown(json!({"name": "Somebody"})).await;
    let mut socket = browser.socket(&unknown).await;
    browser.say(&unknown, "where is my order?").await;
    socket.message().await;
    let ticket = session_of(&app, &unknown).await["ticketId"].clone();
    let identity = signed("v-1", json!({}));
    let identified = browser.identify(&unknown, &identity).await.data(200).clone();
    let mine = Session::of(&identified);
    assert_eq!((&mine.id, &identified["verified"]), (&at_home.id, &json!(true)), "it is not her active session");
    assert_ne!(mine.token, at_home.token);

    // The unknown visitor's session has ended, and its ticket says why.
    assert_eq!(socket.next_of("ended").await["type"], "ended");
    assert_eq!(socket.close_code().await, Some(4410));
    assert_eq!(session_of(&app, &unknown).await["status"], "ended");
    let notes = app.api.all("/messages?type=note").await;
    assert_eq!(notes.len(), 1, "{notes:?}");
    let body = notes[0]["body"].as_str().expect("body");
    assert!(body.contains("Vera") && body.contains(&known["contact"]["id"].to_string()), "{body}");
    assert_eq!((&notes[0]["ticketId"], &notes[0]["direction"]), (&ticket, &json!("internal")));
    assert_eq!(app.api.get(&format!("/tickets/{ticket}")).await.data(200)["verified"], false);

    // Both browsers are in one session.
    browser.say(&mine, "from the shop").await;
    for session in [&mine, &at_home] {
        assert_eq!(bodies(&messages_of(&browser, session).await), ["from home", "from the shop"]);
    }
    // A retry after a lost answer has the same result.
    let again = Session::of(browser.identify(&unknown, &identity).await.data(200));
    assert_eq!(again.id, mine.id);
    assert_eq!(app.api.all("/messages?type=note").await.len(), 1, "the note is there twice");
    assert_eq!(app.api.all("/contacts").await.len(), 2);
    assert_eq!(browser.get(&again, "/session").await.data(200)["id"], json!(mine.id));
    app.stop().await;
}

#[actix_web::test]
async fn the_tokens_of_a_session_outlive_its_actor() {
    let engine = EngineOptions {
        idle_after: Duration::from_millis(50),
        sweep_every: Duration::from_millis(20),
        ..TestOptions::default().engine
    };
    let app = OwnApp::start_with(TestOptions { engine, ..TestOptions::default() }).await;
    let browser = Browser::of(&app).await;
    let first = browser.open("v-1").await;
    let unknown = browser.open_unknown(json!({})).await;
    let second = Session::of(browser.identify(&unknown, &signed("v-1", json!({}))).await.data(200));
    eventually("no session is in memory", || async { app.service.app.engine.hot().1 == 0 }).await;
    for session in [&first, &second] {
        let found = browser.get(session, "/session").await;
        assert_eq!((&found.data(200)["id"], &found.data(200)["verified"]), (&json!(first.id), &json!(true)));
    }
    app.stop().await;
}

#[actix_web::test]
async fn signing_in_with_a_known_identity_without_a_session_opens_one() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let earlier = browser.open("v-1").await;
    browser.say(&earlier, "hello").await;
    let ticket = session_of(&app, &earlier).await["ticketId"].as_i64().expect("ticket");
    browser.post(&earlier, "/end", json!({})).await.data(200);
    answer(&app.api, ticket, "too late?").await;
    let unknown = browser.open_unknown(json!({})).await;
    let identified = browser.identify(&unknown, &signed("v-1", json!({}))).await.data(200).clone();
    let mine = Session::of(&identified);
    assert!(mine.id != earlier.id && mine.id != unknown.id);
    assert_eq!(bodies(&messages_of(&browser, &mine).await), ["too late?"]);
    assert_eq!(app.api.all("/messages?type=note").await.len(), 0, "a note was written although there was no ticket");
    assert_eq!(session_of(&app, &unknown).await["status"], "ended");
    app.stop().await;
}

#[actix_web::test]
async fn parallel_sign_ins_have_one_result() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    // One session, many sign-ins at once: the identity has no contact yet.
    let session = browser.open_unknown(json!({})).await;
    browser.say(&session, "hello").await;
    let identity = signed("v-1", json!({"name": "Vera"}));
    let replies = join_all((0..16).map(|_| browser.identify(&session, &identity))).await;
    assert!(replies.iter().all(|reply| reply.data(200)["id"] == json!(session.id)));
    assert_eq!(app.api.all("/contacts").await.len(), 1);
    // Many sessions, one identity: one of them, or a new one, is the visitor's; all others have ended.
    let sessions = join_all((0..16).map(|_| browser.open_unknown(json!({})))).await;
    for session in &sessions {
        browser.say(session, "hello").await;
    }
    let identity = signed("v-2", json!({"name": "Nils"}));
    let replies = join_all(sessions.iter().map(|session| browser.identify(session, &identity))).await;
    let ids: Vec<&Value> = replies.iter().map(|reply| &reply.data(200)["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let mut active = 0;
    for session in &sessions {
        active += usize::from(session_of(&app, session).await["status"] == "active");
    }
    assert_eq!(active, usize::from(sessions.iter().any(|session| json!(session.id) == *ids[0])));
    let notes = app.api.all("/messages?type=note").await;
    assert_eq!(notes.len(), 16 - active, "each other ticket has one note");
    // One session, many sign-ins at once: the identity has a session, which all get, and one note is written.
    let unknown = browser.open_unknown(json!({})).await;
    browser.say(&unknown, "hello").await;
    let replies = join_all((0..16).map(|_| browser.identify(&unknown, &identity))).await;
    assert!(replies.iter().all(|reply| reply.data(200)["id"] == *ids[0]));
    assert_eq!(app.api.all("/messages?type=note").await.len(), notes.len() + 1);
    app.stop().await;
}

#[actix_web::test]
async fn another_visitor_in_the_same_browser_gets_nothing_of_the_first() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let vera = browser.open("v-1").await;
    browser.say(&vera, "my secret").await;
    let nils = Session::of(browser.identify(&vera, &signed("v-2", json!({"name": "Nils"}))).await.data(200));
    assert_ne!(nils.id, vera.id);
    assert_ne!(session_of(&app, &nils).await["contact"]["id"], session_of(&app, &vera).await["contact"]["id"]);
    assert_eq!(messages_of(&browser, &nils).await.len(), 0);
    assert_eq!(
        session_of(&app, &vera).await["status"],
        "active",
        "her session has ended, although she may use it elsewhere"
    );
    app.stop().await;
}

#[actix_web::test]
async fn opening_again_with_an_identity_continues_its_session() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let mine = browser.open("v-1").await;
    browser.say(&mine, "where is my order?").await;
    let other = browser.open("v-2").await;
    assert_ne!(other.id, mine.id);
    // Back on the first account, and in a second tab at the same moment.
    let twins = join_all((0..4).map(|_| browser.open("v-1"))).await;
    for again in &twins {
        assert_eq!(again.id, mine.id);
        assert_ne!(again.token, mine.token);
        assert_eq!(bodies(&messages_of(&browser, again).await), ["where is my order?"]);
    }
    browser.say(&twins[0], "it is a lamp").await;
    assert_eq!(bodies(&messages_of(&browser, &mine).await), ["where is my order?", "it is a lamp"]);
    assert_eq!(messages_of(&browser, &other).await.len(), 0);
    assert_eq!(app.api.all("/tickets").await.len(), 1);

    // Once the session has ended, another is opened. An unknown visitor never continues any session.
    browser.post(&mine, "/end", json!({})).await.data(200);
    let next = browser.open("v-1").await;
    assert_ne!(next.id, mine.id);
    assert_eq!(browser.open("v-1").await.id, next.id);
    assert_ne!(browser.open_unknown(json!({"externalId": "v-1"})).await.id, next.id);
    app.stop().await;
}

/// Visitors have no idempotency keys: an answer with a token is not recorded.
#[actix_web::test]
async fn an_opening_repeated_with_an_idempotency_key_gets_another_token_of_the_session() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let mine = browser.open("v-1").await;
    let identity = signed("v-1", json!({}));
    let again = || async {
        let request = browser.request(Method::POST, "/sessions").header("idempotency-key", "opening-2");
        let reply = Reply::of(request.json(&json!({"identity": identity}))).await;
        assert!(!reply.is_replay(), "an opening was recorded: {}", reply.body);
        Session::of(reply.data(201))
    };
    let (first, second) = (again().await, again().await);
    let tokens: BTreeSet<&str> = [&mine, &first, &second].map(|session| session.token.as_str()).into();
    assert_eq!(tokens.len(), 3, "two openings have the same token");
    for session in [&mine, &first, &second] {
        assert_eq!(session.id, mine.id, "a repeated opening began another session");
        assert_eq!(browser.get(session, "/session").await.data(200)["id"], json!(mine.id), "a token is not valid");
    }
    app.stop().await;
}
