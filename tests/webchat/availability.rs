//! When a visitor is shown that somebody is available to answer.

use std::time::Duration;

use hotline_actors::clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::door::{answer, only_ticket};
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Person, Reply, TestApp, eventually};
use crate::visitor::Browser;

/// Longer than the ten minutes for which a user counts as available.
const LONG_AFTER: Duration = Duration::from_secs(11 * 60);

async fn is_there(browser: &Browser) -> bool {
    Reply::of(browser.request(Method::GET, "/config")).await.data(200)["availability"] == json!({"now": true})
}

/// Puts the channel of the tests into this queue, or into none.
async fn put_into(app: &TestApp, admin: &Person, queue: Value) {
    let path = format!("/channels/{}/setup", app.company.webchat);
    admin.in_company(app.company.id).put(&path, json!({"queueId": queue})).await.data(200);
}

#[actix_web::test]
async fn nobody_is_there_before_anybody_has_shown_it() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    assert!(!is_there(&browser).await, "two active users alone answer nobody");
    let session = browser.open("v").await;
    let mut socket = browser.try_socket(&session.token).await.unwrap_or_else(|refused| panic!("{refused:?}"));
    assert_eq!(socket.next().await["available"], false);
    app.stop().await;
}

#[actix_web::test]
async fn who_uses_the_panel_is_there_for_ten_minutes_on_the_channels_of_their_queues() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    // The channel's queue is Support.
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    assert!(!is_there(&browser).await, "signing in is no use of it yet");
    ana.get("/contacts").await.data(200);
    assert!(is_there(&browser).await);
    clock::advance(LONG_AFTER);
    assert!(!is_there(&browser).await);
    ana.get("/account").await.data(200);
    assert!(is_there(&browser).await, "whatever page it is");

    // A user who is deactivated is no longer available.
    app.api.put(&format!("/users/{}", app.company.ana), json!({"active": false})).await.data(200);
    eventually("nobody is there", || async { !is_there(&browser).await }).await;
    app.api.put(&format!("/users/{}", app.company.ana), json!({"active": true})).await.data(200);
    eventually("she is there again", || async { is_there(&browser).await }).await;

    // Only Ben is in Sales.
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    put_into(&app, &admin, json!(app.company.sales)).await;
    // The admin who changes the queue does not count either.
    eventually("it is another queue's", || async { !is_there(&browser).await }).await;
    put_into(&app, &admin, Value::Null).await;
    eventually("it is the company's", || async { is_there(&browser).await }).await;
    ana.cookie = None;
    clock::advance(LONG_AFTER);
    ana.get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
    assert!(!is_there(&browser).await);
    app.stop().await;
}

#[actix_web::test]
async fn an_administrator_of_the_installation_answers_nobody() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let (admin, _) = Person::admin(&app, &format!("{}@example.com", app.company.id)).await;
    admin.in_company(app.company.id).get("/contacts").await.data(200);
    assert!(!is_there(&browser).await);
    app.stop().await;
}

#[actix_web::test]
async fn an_answer_by_a_token_counts_and_nothing_else_that_leaves() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    browser.say(&session, "hello").await;
    let ticket = only_ticket(&app.api).await;
    app.api.get("/tickets").await.data(200);
    app.api.post(&format!("/tickets/{ticket}/notes"), json!({"body": "a note"})).await.data(201);
    app.api
        .post("/messages", json!({"ticketId": ticket, "type": "text", "body": ""}))
        .await
        .error(422, "ERR_API_VALIDATION");
    assert!(!is_there(&browser).await, "reading, a note and what is refused are no answer");
    answer(&app.api, ticket, "an answer").await;
    assert!(is_there(&browser).await);
    clock::advance(LONG_AFTER);
    assert!(!is_there(&browser).await);
    app.stop().await;
}

#[actix_web::test]
async fn what_changes_while_a_socket_is_open_is_said_in_it() {
    let mut options = TestOptions::default();
    options.visitors.heartbeat = Duration::from_millis(100);
    // On a slow machine pings pile up, and a socket that answered all of them would send too many frames.
    options.visitors.silence_max = Duration::from_secs(3600);
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.try_socket(&session.token).await.unwrap_or_else(|refused| panic!("{refused:?}"));
    socket.answers = false;
    assert_eq!(socket.next().await["available"], false);
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    ana.get("/contacts").await.data(200);
    assert_eq!(socket.next_of("presence").await, json!({"type": "presence", "available": true}));
    for user in [app.company.ana, app.company.ben] {
        app.api.put(&format!("/users/{user}"), json!({"active": false})).await.data(200);
    }
    assert_eq!(socket.next_of("presence").await, json!({"type": "presence", "available": false}));
    app.stop().await;
}

#[actix_web::test]
async fn nothing_is_known_of_a_company_that_was_dropped_from_memory() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    ana.get("/contacts").await.data(200);
    assert!(is_there(&browser).await);
    app.service.forget(app.company.id).await.expect("nothing is under way");
    assert!(!is_there(&browser).await);
    app.stop().await;
}
