//! How much one address may ask.

use hotline::webchat::VisitorOptions;
use reqwest::Method;
use serde_json::json;

use crate::support::service::TestOptions;
use crate::support::{Reply, TestApp};
use crate::visitor::{Browser, Session, Socket};

fn options(visitors: VisitorOptions) -> TestOptions {
    let trusted_proxies = vec!["127.0.0.1/32".parse().expect("range")];
    TestOptions { visitors, trusted_proxies, ..TestOptions::default() }
}

const NONE: VisitorOptions = VisitorOptions {
    sessions_per_minute: 0,
    messages_per_minute: 0,
    requests_per_minute: 0,
    sockets_per_address: 0,
    ..VisitorOptions::DEFAULT
};

#[actix_web::test]
async fn an_address_opens_so_many_sessions_and_another_its_own() {
    let app = TestApp::start_with(options(VisitorOptions { sessions_per_minute: 2, ..NONE })).await;
    let browser = Browser::of(&app).await;
    let open = |address: &str| {
        let request = browser.request(Method::POST, "/sessions").header("x-forwarded-for", address);
        Reply::of(request.json(&json!({})))
    };
    let first = open("192.0.2.1").await;
    first.data(201);
    assert_eq!(
        (&first.headers["ratelimit-limit"], &first.headers["ratelimit-remaining"]),
        (&"2".parse().expect("header"), &"1".parse().expect("header"))
    );
    open("192.0.2.1").await.data(201);
    let contacts = app.api.all("/contacts").await.len();
    let refused = open("192.0.2.1").await;
    refused.error(429, "ERR_API_RATE_LIMITED");
    let seconds: u64 = refused.headers["retry-after"].to_str().expect("text").parse().expect("seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(app.api.all("/contacts").await.len(), contacts, "a refused visitor left a contact");
    open("192.0.2.2").await.data(201);
    // A customer has a network of IPv6.
    open("2001:db8:1:2::1").await.data(201);
    open("2001:db8:1:2:ffff::9").await.data(201);
    open("2001:db8:1:2:3::7").await.error(429, "ERR_API_RATE_LIMITED");
    open("2001:db8:1:3::1").await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn messages_and_other_requests_are_counted_by_themselves() {
    let visitors = VisitorOptions { messages_per_minute: 2, requests_per_minute: 3, ..NONE };
    let app = TestApp::start_with(options(visitors)).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    for _ in 0..2 {
        browser.say(&session, "x").await;
    }
    browser.post(&session, "/messages", json!({"body": "x"})).await.error(429, "ERR_API_RATE_LIMITED");
    browser.get(&session, "/messages").await.data(200);
    // Guessing tokens costs as much.
    let guess = Session { id: String::new(), token: "vt_00000000000000000000000000000000".to_owned() };
    browser.get(&guess, "/session").await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(browser.try_socket(&guess.token).await.err().expect("refused").0, 401);
    browser.get(&guess, "/session").await.error(429, "ERR_API_RATE_LIMITED");
    assert_eq!(browser.try_socket(&session.token).await.err().expect("refused").0, 429);
    assert_eq!(app.api.all("/messages").await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn a_session_and_an_address_have_so_many_sockets() {
    let app = TestApp::start_with(options(VisitorOptions { sockets_per_address: 12, ..NONE })).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut sockets: Vec<Socket> = Vec::new();
    for _ in 0..10 {
        sockets.push(browser.socket(&session).await);
    }
    let (status, body) = browser.try_socket(&session.token).await.err().expect("the eleventh of a session");
    assert_eq!((status, &body["error"]["code"]), (429, &json!("ERR_API_RATE_LIMITED")));
    let other = browser.open("w").await;
    for _ in 0..2 {
        sockets.push(browser.socket(&other).await);
    }
    assert_eq!(browser.try_socket(&other.token).await.err().expect("the thirteenth of the address").0, 429);
    // Those that go make room.
    sockets.truncate(5);
    crate::support::eventually("there is room again", || async { browser.try_socket(&session.token).await.is_ok() })
        .await;
    app.stop().await;
}
