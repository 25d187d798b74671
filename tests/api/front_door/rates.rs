//! How many requests a company may make in a minute, and how every answer says so.

use std::time::Duration;

use futures_util::future::join_all;
use hotline_actors::clock;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reply, eventually};

/// A service with this limit, whose clock stands still so that no allowance returns by itself.
async fn limited_to(rate_per_minute: u32) -> OwnApp {
    let app = OwnApp::start_with(TestOptions { rate_per_minute, ..TestOptions::default() }).await;
    clock::stop();
    app
}

/// Limit, remaining requests and seconds until reset, from the headers.
#[track_caller]
fn allowance(headers: &HeaderMap) -> (u64, u64, u64) {
    let number = |name: &str| {
        assert_eq!(headers.get_all(name).iter().count(), 1, "{name} of {headers:?}");
        headers[name].to_str().ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name}: {headers:?}"))
    };
    let (limit, remaining, reset) =
        (number("ratelimit-limit"), number("ratelimit-remaining"), number("ratelimit-reset"));
    assert!(remaining <= limit, "{remaining} of {limit}");
    assert!(reset <= 60, "the reset is {reset} s away, which is more than a minute");
    (limit, remaining, reset)
}

async fn set_rate(app: &OwnApp, company: i64, rate: i32) {
    sqlx::query("update companies set rate_per_minute = $1 where id = $2")
        .bind(rate)
        .bind(company)
        .execute(&app.db)
        .await
        .expect("rate");
    let directory = app.service.app.engine.directory();
    let company = hotline_persistence::CompanyId::new(company);
    eventually(&format!("the limit of {rate}"), || async {
        directory.company(company).is_some_and(|seen| seen.company.rate_per_minute == Some(rate))
    })
    .await;
}

#[actix_web::test]
async fn the_remaining_requests_fall_by_one_until_none_is_left() {
    let app = limited_to(5).await;
    for (remaining, reset) in [(4, 12), (3, 24), (2, 36), (1, 48), (0, 60)] {
        let reply = app.api.get("/tags").await;
        reply.data(200);
        assert_eq!(allowance(&reply.headers), (5, remaining, reset));
        assert!(!reply.headers.contains_key("retry-after"));
    }
    for _ in 0..3 {
        let refused = app.api.get("/tags").await;
        refused.error(429, "ERR_API_RATE_LIMITED");
        assert_eq!(allowance(&refused.headers), (5, 0, 60));
        let wait: u64 = refused.headers["retry-after"].to_str().expect("text").parse().expect("seconds");
        assert_eq!(wait, 12, "seconds until one of five a minute");
    }
    app.stop().await;
}

#[actix_web::test]
async fn after_the_seconds_of_retry_after_a_company_is_served_again() {
    let app = limited_to(60).await;
    let refused = loop {
        let reply = app.api.get("/tags").await;
        if reply.status == 429 {
            break reply;
        }
    };
    assert_eq!(refused.headers["retry-after"], "1", "60 a minute are one a second");
    clock::advance(Duration::from_millis(999));
    app.api.get("/tags").await.error(429, "ERR_API_RATE_LIMITED");
    clock::advance(Duration::from_millis(1));
    app.api.get("/tags").await.data(200);
    app.api.get("/tags").await.error(429, "ERR_API_RATE_LIMITED");
    app.stop().await;
}

#[actix_web::test]
async fn each_company_has_its_own_limit_and_allowance() {
    let app = limited_to(4).await;
    let (other, api) = app.another_company().await;
    assert_eq!(allowance(&app.api.get("/tags").await.headers), (4, 3, 15));
    set_rate(&app, other.id.0, 3).await;
    let left = async |api: &Api| {
        let reply = api.get("/tags").await;
        (reply.status.as_u16(), allowance(&reply.headers).1)
    };
    assert_eq!(left(&api).await, (200, 2));
    assert_eq!(left(&api).await, (200, 1));
    assert_eq!(left(&app.api).await, (200, 2));
    assert_eq!(left(&api).await, (200, 0));
    assert_eq!(left(&api).await, (429, 0));
    assert_eq!(left(&app.api).await, (200, 1), "a company's requests used another's allowance");
    // All tokens of a company share one allowance.
    let new = hotline_persistence::tables::tokens::NewToken {
        name: "second",
        permissions: hotline::cli::everything(),
        ..Default::default()
    };
    let (_, second) = super::table::create_token_of(&app, app.company.id, new).await;
    // Waits without a request, which would use the allowance.
    super::table::wait_until_known(&app, &second).await;
    assert_eq!(left(&app.api.with_key(&second)).await, (200, 0));
    // Another limit applies at once; 0 means no limit.
    set_rate(&app, other.id.0, 1000).await;
    assert_eq!(left(&api).await, (200, 999));
    set_rate(&app, other.id.0, 0).await;
    for _ in 0..20 {
        let reply = api.get("/tags").await;
        reply.data(200);
        let has_header = reply.headers.keys().any(|name| name.as_str().starts_with("ratelimit-"));
        assert!(!has_header, "headers of a limit, although there is none: {:?}", reply.headers);
    }
    app.stop().await;
}

#[actix_web::test]
async fn every_answer_shows_the_remaining_requests() {
    let app = limited_to(20).await;
    let ask = async |method: Method, path: &str, kind: &str, body: &'static str, status: u16| {
        let request = app.api.request(method, path).header("content-type", kind).body(body);
        let reply = Reply::of(request).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
        allowance(&reply.headers)
    };
    const JSON: &str = "application/json";
    for (index, (method, path, kind, body, status)) in [
        (Method::GET, "/tags", JSON, "", 200),
        (Method::POST, "/tags", JSON, r#"{"name": "VIP"}"#, 201),
        (Method::DELETE, "/tags/1", JSON, "", 204),
        (Method::GET, "/tags/999999999", JSON, "", 404),
        (Method::GET, "/nothing", JSON, "", 404),
        (Method::PATCH, "/tags", JSON, "", 405),
        (Method::POST, "/tags", "text/plain", "{}", 415),
        (Method::POST, "/tags", JSON, "{", 400),
        (Method::POST, "/tags", JSON, "{}", 422),
        (Method::GET, "/tags?order=up", JSON, "", 422),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{method} {path}");
        let left = ask(method, path, kind, body, status).await;
        assert_eq!((left.0, left.1), (20, 19 - index as u64), "{name}");
    }
    // A request of no company uses no company's allowance.
    for path in ["/health/live", "/health/ready", "/nothing", "/api/v1/tags", "/api/v1/nothing"] {
        let reply = Reply::of(app.api.anonymous(Method::GET, path)).await;
        assert_eq!(allowance(&reply.headers), (20, 20, 0), "{path}");
    }
    let reply = app.api.anonymous(Method::GET, "/docs/").send().await.expect("the service answers");
    assert_eq!(allowance(reply.headers()), (20, 20, 0));
    // A replayed answer uses the allowance as any other.
    let keyed = || app.api.request(Method::POST, "/tags").header("idempotency-key", "k").json(&json!({"name": "A"}));
    for left in [9, 8] {
        let reply = Reply::of(keyed()).await;
        reply.data(201);
        assert_eq!(allowance(&reply.headers).1, left);
    }
    while app.api.get("/tags").await.status == 200 {}
    let refused = Reply::of(keyed()).await;
    refused.error(429, "ERR_API_RATE_LIMITED");
    assert_eq!(allowance(&refused.headers), (20, 0, 60));
    app.stop().await;
}

#[actix_web::test]
async fn many_requests_at_once_get_no_more_than_the_limit() {
    let app = limited_to(51).await;
    // A ticket is shown from memory, and opening it uses one request. Under load, some of fifty simultaneous
    // reads of the tables would wait too long for a connection.
    let path = format!("/tickets/{}", app.ticket("5511900000001").await);
    let replies = join_all((0..200).map(|_| app.api.get(&path))).await;
    let served = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(served, 50);
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        refused.error(429, "ERR_API_RATE_LIMITED");
        assert_eq!(allowance(&refused.headers).0, 51);
    }
    app.stop().await;
}
