//! A request with several defects is refused for the one that comes first in the order of the contract.

use chrono::TimeDelta;
use hotline_actors::clock;
use hotline_persistence::TokenId;
use hotline_persistence::tables::tokens::NewToken;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::table::{create_token, only, wait_until_known};
use crate::support::service::TestOptions;
use crate::support::{Api, OwnApp, Reply, TestApp, eventually};

/// Requests, and the status and code of each once its caller may make it.
const REQUESTS: [(&str, u16, &str); 7] = [
    ("no route", 404, "ERR_API_NOT_FOUND"),
    ("no method", 405, "ERR_API_METHOD_NOT_ALLOWED"),
    ("no record", 404, "ERR_API_NOT_FOUND"),
    ("no JSON type", 415, "ERR_API_UNSUPPORTED_MEDIA_TYPE"),
    ("no JSON", 400, "ERR_API_BAD_REQUEST"),
    ("no key", 400, "ERR_API_BAD_REQUEST"),
    ("no fields", 422, "ERR_API_VALIDATION"),
];

fn request(api: &Api, name: &str) -> RequestBuilder {
    let post = || api.request(Method::POST, "/tickets");
    match name {
        "no route" => api.request(Method::POST, "/tickets/1/nothing").body("{"),
        "no method" => api.request(Method::PUT, "/tickets").body("{"),
        "no record" => api.request(Method::POST, "/tickets/999999999/reopen"),
        "no JSON type" => post().header("content-type", "text/plain").body("{"),
        "no JSON" => post().header("content-type", "application/json").body("{"),
        "no key" => post().header("idempotency-key", "k k").json(&json!({})),
        _ => post().json(&json!({})),
    }
}

async fn sql(app: &TestApp, statement: &'static str) {
    sqlx::query(statement).execute(&app.db).await.expect(statement);
}

/// Waits until a request is answered with this code, then checks that all of them are.
async fn check_every_request(api: &Api, status: u16, code: &str) {
    eventually(code, || async { Reply::of(request(api, "no fields")).await.body["error"]["code"] == code }).await;
    for (name, ..) in REQUESTS {
        let reply = Reply::of(request(api, name)).await;
        assert_eq!(reply.status, status, "{name}: {}", reply.body);
        reply.error(status, code);
    }
}

/// Creates a token with every defect: expired, without permissions, of a company that is not active, has no API in its
/// plan, and has used up its minute. From here on the service's clock stands still, so that no allowance returns.
async fn create_defective_token(app: &OwnApp) -> (Api, TokenId) {
    clock::stop();
    sql(app, "update companies set rate_per_minute = 1").await;
    eventually("the rate is seen", || async {
        app.api.get("/tags").await.headers.get("ratelimit-limit").is_some_and(|value| value == "1")
    })
    .await;
    eventually("the minute is used up", || async { app.api.get("/tags").await.status == 429 }).await;
    let past = clock::now() - TimeDelta::seconds(1);
    let (row, key) =
        create_token(app, NewToken { name: "hopeless", expires_at: Some(past), ..NewToken::default() }).await;
    wait_until_known(app, &key).await;
    sql(app, "update companies set active = false, api_enabled = false").await;
    let is_inactive = || async { app.api.get("/tags").await.body["error"]["code"] == "ERR_API_COMPANY_INACTIVE" };
    eventually("the company is not active", is_inactive).await;
    (app.api.with_key(&key), row.id)
}

#[actix_web::test]
async fn the_checks_run_in_the_order_of_the_contract() {
    let app = OwnApp::start().await;
    let (api, token) = create_defective_token(&app).await;
    check_every_request(&api, 401, "ERR_API_UNAUTHORIZED").await;
    sql(&app, "update tokens set expires_at = null").await;
    check_every_request(&api, 403, "ERR_API_COMPANY_INACTIVE").await;
    sql(&app, "update companies set active = true").await;
    check_every_request(&api, 403, "ERR_API_NOT_ENABLED").await;
    sql(&app, "update companies set api_enabled = true").await;
    check_every_request(&api, 429, "ERR_API_RATE_LIMITED").await;
    sql(&app, "update companies set rate_per_minute = 0").await;
    check_every_request(&api, 403, "ERR_API_FORBIDDEN_SCOPE").await;
    sqlx::query("update tokens set permissions = $1 where id = $2")
        .bind(sqlx::types::Json(only("tickets", &["POST", "PUT"])))
        .bind(token)
        .execute(&app.db)
        .await
        .expect("permissions");
    let code = "ERR_API_VALIDATION";
    eventually(code, || async { Reply::of(request(&api, "no fields")).await.body["error"]["code"] == code }).await;
    for (name, status, code) in REQUESTS {
        Reply::of(request(&api, name)).await.error(status, code);
    }
    app.stop().await;
}

#[actix_web::test]
async fn the_plan_does_not_matter_on_premise_and_the_rest_does() {
    let app = OwnApp::start_with(TestOptions { on_premise: true, ..TestOptions::default() }).await;
    let (api, _) = create_defective_token(&app).await;
    check_every_request(&api, 401, "ERR_API_UNAUTHORIZED").await;
    sql(&app, "update tokens set expires_at = null").await;
    check_every_request(&api, 403, "ERR_API_COMPANY_INACTIVE").await;
    sql(&app, "update companies set active = true").await;
    check_every_request(&api, 429, "ERR_API_RATE_LIMITED").await;
    sql(&app, "update companies set rate_per_minute = 0").await;
    check_every_request(&api, 403, "ERR_API_FORBIDDEN_SCOPE").await;
    assert_eq!(app.api.get("/tickets").await.status, 200, "the plan was checked on premise");
    app.stop().await;
}
