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

async fn is_available(browser: &Browser) -> bool {
    Reply::of(browser.request(Method::GET, "/config")).await.data(200)["availability"] == json!({"now": true})
}

/// Assigns the company's webchat to this queue, or to none.
async fn set_queue(app: &TestApp, admin: &Person, queue: Value) {
    let path = format!("/channels/{}/setup", app.company.webchat);
    admin.in_company(app.company.id).put(&path, json!({"queueId": queue})).await.data(200);
}

#[actix_web::test]
async fn no_user_is_available_before_one_has_used_the_panel() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    assert!(!is_available(&browser).await, "active users count although they have not used the panel");
    let session = browser.open("v").await;
    let mut socket = browser.try_socket(&session.token).await.unwrap_or_else(|refused| panic!("{refused:?}"));
    assert_eq!(socket.next().await["available"], false);
    app.stop().await;
}

#[actix_web::test]
async fn a_user_of_the_panel_is_available_for_ten_minutes_on_the_channels_of_their_queues() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    // The channel's queue is Support.
    let mut ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    assert!(!is_available(&browser).await, "signing in counts as use of the panel");
    ana.get("/contacts").await.data(200);
    assert!(is_available(&browser).await);
    clock::advance(LONG_AFTER);
    assert!(!is_available(&browser).await);
    ana.get("/account").await.data(200);
    assert!(is_available(&browser).await, "a request for this page does not count");

    // A user who is deactivated is no longer available.
    app.api.put(&format!("/users/{}", app.company.ana), json!({"active": false})).await.data(200);
    eventually("no user is available", || async { !is_available(&browser).await }).await;
    app.api.put(&format!("/users/{}", app.company.ana), json!({"active": true})).await.data(200);
    eventually("Ana is available again", || async { is_available(&browser).await }).await;

    // Only Ben is in Sales.
    let (admin, _) = Person::admin(&app, "root@example.com").await;
    set_queue(&app, &admin, json!(app.company.sales)).await;
    // The admin who changes the queue does not count either.
    eventually("the channel is in the queue that only Ben has", || async { !is_available(&browser).await }).await;
    set_queue(&app, &admin, Value::Null).await;
    eventually("the channel has no queue, and every user counts", || async { is_available(&browser).await }).await;
    ana.cookie = None;
    clock::advance(LONG_AFTER);
    ana.get("/contacts").await.error(401, "ERR_API_UNAUTHORIZED");
    assert!(!is_available(&browser).await);
    app.stop().await;
}

#[actix_web::test]
async fn an_admin_of_the_installation_does_not_count_as_available() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let (admin, _) = Person::admin(&app, &format!("{}@example.com", app.company.id)).await;
    admin.in_company(app.company.id).get("/contacts").await.data(200);
    assert!(!is_available(&browser).await);
    app.stop().await;
}

#[actix_web::test]
async fn an_answer_by_a_token_counts_and_no_other_request_does() {
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
    assert!(!is_available(&browser).await, "reading, a note or a refused message counts as an answer");
    answer(&app.api, ticket, "an answer").await;
    assert!(is_available(&browser).await);
    clock::advance(LONG_AFTER);
    assert!(!is_available(&browser).await);
    app.stop().await;
}

#[actix_web::test]
async fn a_change_of_availability_is_pushed_to_open_sockets() {
    let mut options = TestOptions::default();
    options.visitors.heartbeat = Duration::from_millis(100);
    // On a slow machine pings pile up, and a socket that answered all of them would send too many frames.
    options.visitors.silence_max = Duration::from_secs(3600);
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut socket = browser.try_socket(&session.token).await.unwrap_or_else(|refused| panic!("{refused:?}"));
    socket.answers_pings = false;
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
async fn a_company_that_was_dropped_from_memory_has_no_available_user() {
    let app = OwnApp::start().await;
    let browser = Browser::of(&app).await;
    let ana = Person::user(&app, app.company.ana, "ana@example.com").await;
    ana.get("/contacts").await.data(200);
    assert!(is_available(&browser).await);
    // A drop is given up when something takes ten seconds, as on a slow machine; then it is repeated.
    eventually("the company is dropped", || async { app.service.forget(app.company.id).await.is_ok() }).await;
    assert!(!is_available(&browser).await);
    app.stop().await;
}
