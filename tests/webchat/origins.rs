//! Which pages may embed a webchat.

use hotline_persistence::Error;
use hotline_persistence::tables::channels::{self, ChannelRow, ChannelSettings};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::support::{Reply, TestApp, eventually, keys};
use crate::visitor::{Browser, PAGE};

const ALLOW_ORIGIN: &str = "access-control-allow-origin";

fn preflight(browser: &Browser, path: &str) -> RequestBuilder {
    browser.request(Method::OPTIONS, path).header("access-control-request-method", "POST")
}

#[actix_web::test]
async fn a_page_that_is_not_allowed_is_refused_and_changes_nothing() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let contacts = app.api.all("/contacts").await.len();
    for origin in [
        "https://evil.example",
        "http://shop.example",
        "https://shop.example:8443",
        "https://shop.example.evil.example",
        "null",
    ] {
        let other_page = browser.from(origin);
        let mut refusals = vec![other_page.try_open(json!({"externalId": "other"})).await];
        for path in ["/messages", "/end"] {
            refusals.push(other_page.post(&session, path, json!({"body": "x"})).await);
        }
        for path in ["/messages", "/session", "/config"] {
            refusals.push(other_page.get(&session, path).await);
        }
        refusals.push(Reply::of(preflight(&other_page, "/messages")).await);
        for refused in refusals {
            refused.error(403, "ERR_API_FORBIDDEN_ORIGIN");
            assert!(!refused.headers.contains_key(ALLOW_ORIGIN), "{origin}: {:?}", refused.headers);
            assert_eq!(refused.headers["vary"], "Origin");
        }
        let (status, body) = other_page.try_socket(&session.token).await.err().expect("refused");
        assert_eq!((status, &body["error"]["code"]), (403, &json!("ERR_API_FORBIDDEN_ORIGIN")), "{origin}");
    }
    assert_eq!(app.api.all("/contacts").await.len(), contacts);
    assert_eq!(app.api.all("/messages").await.len(), 0);
    assert_eq!(browser.get(&session, "/session").await.data(200)["status"], "active");
    app.stop().await;
}

#[actix_web::test]
async fn requests_without_an_origin_may_read_but_not_change() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let bare = |method, path| browser.bare(method, path).bearer_auth(&session.token);
    for path in ["/session", "/messages", "/config"] {
        let reply = Reply::of(bare(Method::GET, path)).await;
        reply.data(200);
        assert!(!reply.headers.contains_key(ALLOW_ORIGIN), "{:?}", reply.headers);
    }
    for path in ["/sessions", "/messages", "/end"] {
        let refused = Reply::of(bare(Method::POST, path).json(&json!({"body": "x"}))).await;
        refused.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    }
    let mut handshake = browser.handshake(Some(&session.token));
    handshake.headers_mut().remove("origin");
    let refused = crate::visitor::Socket::open(browser.address, handshake, None).await.err().expect("refused");
    assert_eq!(refused.0, 403);
    app.stop().await;
}

#[actix_web::test]
async fn every_answer_to_an_allowed_page_allows_its_origin() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let session = browser.open("v").await;
    let preflight = Reply::of(preflight(&browser, "/messages")).await;
    assert_eq!(preflight.status, 204, "{}", preflight.body);
    assert_eq!(preflight.headers["access-control-allow-methods"], "GET, POST, OPTIONS");
    assert_eq!(preflight.headers["access-control-allow-headers"], "Authorization, Content-Type, X-Request-Id");
    assert_eq!(preflight.headers["access-control-max-age"], "600");
    let refused = Reply::of(browser.request(Method::GET, "/messages")).await;
    refused.error(401, "ERR_API_UNAUTHORIZED");
    let listed = browser.get(&session, "/messages").await;
    for reply in [preflight, refused, listed] {
        assert_eq!(reply.headers[ALLOW_ORIGIN], PAGE);
        assert_eq!(reply.headers["vary"], "Origin");
        assert_eq!(reply.headers["access-control-expose-headers"], "Retry-After, X-Request-Id");
        assert!(!reply.headers.contains_key("access-control-allow-credentials"));
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_webchat_without_allowed_pages_allows_none() {
    let app = TestApp::shared().await;
    let (other, _) = app.another_company().await;
    let key: String = sqlx::query_scalar("select public_key from channels where company_id = $1 and id = $2")
        .bind(other.id)
        .bind(other.webchat)
        .fetch_one(&app.db)
        .await
        .expect("key");
    Browser::at(app.address, &key).try_open(json!({})).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
    app.stop().await;
}

#[actix_web::test]
async fn a_wildcard_allows_every_subdomain_but_not_the_domain() {
    let app = TestApp::shared().await;
    let browser = Browser::of(&app).await;
    let allow = |_: &mut ChannelRow, settings: &mut ChannelSettings| -> Result<(), Error> {
        settings.allowed_origins = vec!["https://*.shop.example".to_owned()];
        Ok(())
    };
    channels::update(&app.db, &keys(), app.company.id, app.company.webchat, allow)
        .await
        .expect("the channel is changed");
    let subdomain = browser.from("https://www.shop.example");
    eventually("the subdomain is allowed", || async { subdomain.try_open(json!({})).await.status == 201 }).await;
    let session = subdomain.open("v").await;
    assert_eq!(subdomain.get(&session, "/session").await.headers[ALLOW_ORIGIN], "https://www.shop.example");
    subdomain.socket(&session).await;
    browser.from("https://a.b.shop.example").try_open(json!({})).await.data(201);
    for page in [
        "https://shop.example",
        "https://evilshop.example",
        "https://www.shop.example.evil.example",
        "https://user@www.shop.example",
        "https://www.shop.example:8443",
        "http://www.shop.example",
        "https://*.shop.example",
    ] {
        let refused_page = browser.from(page);
        refused_page.try_open(json!({})).await.error(403, "ERR_API_FORBIDDEN_ORIGIN");
        assert_eq!(refused_page.try_socket(&session.token).await.err().expect("refused").0, 403, "{page}");
    }
    app.stop().await;
}
