//! The limits of an address, a session and a company.

use hotline::visitors::{UploadOptions, VisitorOptions};
use hotline_actors::clock;
use reqwest::Method;
use serde_json::json;

use crate::support::form::Form;
use crate::support::service::TestOptions;
use crate::support::{OwnApp, Reply};
use crate::visitor::{Browser, Session, Socket};

/// A service with these limits. Its clock stands still, so that no limit recovers during a test.
async fn start_with_limits(visitors: VisitorOptions) -> OwnApp {
    let trusted_proxies = vec!["127.0.0.1/32".parse().expect("range")];
    let app = OwnApp::start_with(TestOptions { visitors, trusted_proxies, ..TestOptions::default() }).await;
    clock::stop();
    app
}

const UNLIMITED: VisitorOptions = VisitorOptions {
    sessions_per_minute: 0,
    messages_per_minute: 0,
    requests_per_minute: 0,
    sockets_per_address: 0,
    uploads: UploadOptions::NONE,
    ..VisitorOptions::DEFAULT
};

#[actix_web::test]
async fn session_openings_are_limited_for_each_address() {
    let app = start_with_limits(VisitorOptions { sessions_per_minute: 2, ..UNLIMITED }).await;
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
    // With IPv6, a whole network counts as one address.
    open("2001:db8:1:2::1").await.data(201);
    open("2001:db8:1:2:ffff::9").await.data(201);
    open("2001:db8:1:2:3::7").await.error(429, "ERR_API_RATE_LIMITED");
    open("2001:db8:1:3::1").await.data(201);
    app.stop().await;
}

#[actix_web::test]
async fn messages_and_other_requests_have_separate_limits() {
    let visitors = VisitorOptions { messages_per_minute: 2, requests_per_minute: 3, ..UNLIMITED };
    let app = start_with_limits(visitors).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    for _ in 0..2 {
        browser.say(&session, "x").await;
    }
    browser.post(&session, "/messages", json!({"body": "x"})).await.error(429, "ERR_API_RATE_LIMITED");
    browser.get(&session, "/messages").await.data(200);
    // A guessed token counts as a request, too.
    let guess = Session { id: String::new(), token: "vt_00000000000000000000000000000000".to_owned() };
    browser.get(&guess, "/session").await.error(401, "ERR_API_UNAUTHORIZED");
    assert_eq!(browser.try_socket(&guess.token).await.err().expect("refused").0, 401);
    browser.get(&guess, "/session").await.error(429, "ERR_API_RATE_LIMITED");
    assert_eq!(browser.try_socket(&session.token).await.err().expect("refused").0, 429);
    assert_eq!(app.api.all("/messages").await.len(), 2);
    app.stop().await;
}

#[actix_web::test]
async fn sockets_are_limited_for_a_session_and_for_an_address() {
    let app = start_with_limits(VisitorOptions { sockets_per_address: 12, ..UNLIMITED }).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let mut sockets: Vec<Socket> = Vec::new();
    for _ in 0..10 {
        sockets.push(browser.socket(&session).await);
    }
    let (status, body) =
        browser.try_socket(&session.token).await.err().expect("the eleventh socket of a session is refused");
    assert_eq!((status, &body["error"]["code"]), (429, &json!("ERR_API_RATE_LIMITED")));
    assert_eq!(body["error"]["message"], "too many sockets are open");
    let other = browser.open("w").await;
    for _ in 0..2 {
        sockets.push(browser.socket(&other).await);
    }
    assert_eq!(
        browser.try_socket(&other.token).await.err().expect("the thirteenth socket of the address is refused").0,
        429
    );
    // Closed sockets make room.
    sockets.truncate(5);
    crate::support::eventually("there is room again", || async { browser.try_socket(&session.token).await.is_ok() })
        .await;
    app.stop().await;
}

/// A picture of this many bytes.
fn picture(bytes: usize) -> Form {
    let mut content = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89".to_vec();
    content.resize(bytes, 0);
    Form::default().file("a.png", "image/png", &content)
}

/// The bytes that a session sends, in files and texts, count toward the limits of the session, its address and its
/// company. A refused file leaves nothing.
#[actix_web::test]
async fn bytes_per_hour_are_limited_for_a_session_an_address_and_a_company() {
    const MIB: usize = 1 << 20;
    let uploads = UploadOptions { session_mib_per_hour: 2, address_mib_per_hour: 3, company_mib_per_hour: 4 };
    let app = start_with_limits(VisitorOptions { uploads, ..UNLIMITED }).await;
    let browser = Browser::of(&app).await;
    let attach = async |session: &Session, address: &str, form: Form| {
        let request = browser.with(session, Method::POST, "/messages").header("x-forwarded-for", address);
        Reply::of(request.header("content-type", Form::content_type()).body(form.bytes())).await
    };
    let check_refused = |reply: &Reply| {
        reply.error(429, "ERR_API_RATE_LIMITED");
        let seconds: u64 = reply.headers["retry-after"].to_str().expect("text").parse().expect("seconds");
        assert!((1..=3600).contains(&seconds), "{seconds}");
    };
    let half = || picture(MIB / 2);
    let first = browser.open("first").await;
    for _ in 0..3 {
        attach(&first, "192.0.2.1", half()).await.data(201);
    }
    // More than the session has left in this hour, which shows only during the upload.
    check_refused(&attach(&first, "192.0.2.1", picture(MIB)).await);
    check_refused(&attach(&first, "192.0.2.2", half()).await);
    // Texts are bytes as well.
    let words = json!({"body": "x".repeat(60_000)});
    let mut sent = 0;
    while browser.post(&first, "/messages", words.clone()).await.status == 201 {
        sent += 1;
        assert!(sent < 100, "the bytes of texts are not counted");
    }
    let second = browser.open("second").await;
    attach(&second, "192.0.2.1", half()).await.data(201);
    check_refused(&attach(&second, "192.0.2.1", picture(MIB)).await);
    attach(&second, "192.0.2.3", half()).await.data(201);
    let third = browser.open("third").await;
    check_refused(&attach(&third, "192.0.2.4", picture(MIB)).await);
    assert_eq!((app.stored_files().len(), app.arriving_files().len()), (5, 0));
    // Another company has limits of its own.
    let (other, api) = app.another_company().await;
    let elsewhere = Browser::on(&app, &other, other.webchat).await;
    let fourth = elsewhere.open("fourth").await;
    let request = elsewhere.with(&fourth, Method::POST, "/messages").header("x-forwarded-for", "192.0.2.9");
    Reply::of(request.header("content-type", Form::content_type()).body(half().bytes())).await.data(201);
    assert_eq!(api.all("/messages").await.len(), 1);
    app.stop().await;
}

/// What a page says about itself is stored with the session, so its bytes count before there is a session. A refused
/// opening leaves nothing.
#[actix_web::test]
async fn bytes_of_openings_per_hour_are_limited_for_an_address_and_a_company() {
    // Two openings of an address, and five of a company.
    const BYTES: usize = 400 << 10;
    let uploads = UploadOptions { session_mib_per_hour: 0, address_mib_per_hour: 1, company_mib_per_hour: 2 };
    let app = start_with_limits(VisitorOptions { uploads, ..UNLIMITED }).await;
    let browser = Browser::of(&app).await;
    let body = json!({"page": {"title": "x".repeat(BYTES)}});
    let open = |address: &str| {
        let request = browser.request(Method::POST, "/sessions").header("x-forwarded-for", address);
        Reply::of(request.json(&body))
    };
    for (address, is_opened) in [
        ("192.0.2.1", true),
        ("192.0.2.1", true),
        ("192.0.2.1", false),
        ("192.0.2.2", true),
        ("192.0.2.2", true),
        ("192.0.2.3", true),
        ("192.0.2.4", false),
    ] {
        let contacts = app.api.all("/contacts").await.len();
        let opened = open(address).await;
        if is_opened {
            opened.data(201);
            continue;
        }
        opened.error(429, "ERR_API_RATE_LIMITED");
        assert_eq!(app.api.all("/contacts").await.len(), contacts, "a refused visitor at {address} left a contact");
    }
    // Another company has limits of its own.
    let (other, _) = app.another_company().await;
    let elsewhere = Browser::on(&app, &other, other.webchat).await;
    let request = elsewhere.request(Method::POST, "/sessions").header("x-forwarded-for", "192.0.2.4");
    Reply::of(request.json(&body)).await.data(201);
    app.stop().await;
}

/// On a nearly full disk, files of visitors and of companies are refused, and texts are still accepted.
#[actix_web::test]
async fn while_the_disk_is_nearly_full_files_are_refused_and_texts_are_not() {
    let mut options = TestOptions::default();
    // More than any disk has.
    options.media.free_bytes_min = 1 << 60;
    let app = OwnApp::start_with(options).await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let check_disk_full = |reply: &Reply| {
        reply.error(503, "ERR_API_UNAVAILABLE");
        assert_eq!(reply.headers["retry-after"], "60");
    };
    let request = browser.with(&session, Method::POST, "/messages");
    check_disk_full(
        &Reply::of(request.header("content-type", Form::content_type()).body(picture(100_000).bytes())).await,
    );
    browser.say(&session, "words").await;

    let contact = app.contact("5511987654321").await;
    for key in [None, Some("a-key")] {
        let form = picture(100_000).text("channelId", app.company.phone);
        let form = form.text("type", "media").text("contactId", contact);
        let mut request = app.api.request(Method::POST, "/messages").header("content-type", Form::content_type());
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        check_disk_full(&Reply::of(request.body(form.bytes())).await);
    }
    let sent = json!({"channelId": app.company.phone, "contactId": contact, "type": "text", "body": "words"});
    app.api.post("/messages", sent).await.data(202);
    assert_eq!(app.api.all("/messages").await.len(), 2);
    assert_eq!((app.stored_files().len(), app.arriving_files().len()), (0, 0));
    app.stop().await;
}
