//! What every endpoint has in common: the token, the envelope, routes and methods, the request's id.

mod news;
mod order;
mod rates;
mod refusals;
pub mod samples;
mod scopes;
pub mod table;
mod tenants;
mod tokens;
mod uses;
pub mod world;

use reqwest::Method;
use serde_json::json;

use crate::support::{Reply, TestApp};

#[actix_web::test]
async fn every_refused_token_gets_the_same_401() {
    let app = TestApp::shared().await;
    let mut bodies = Vec::new();
    for authorization in [None, Some("Bearer"), Some("Bearer sk_live_x"), Some("Basic abc"), Some("sk_live_x")] {
        let mut request = app.api.anonymous(Method::GET, "/api/v1/tickets");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let reply = Reply::of(request).await;
        reply.error(401, "ERR_API_UNAUTHORIZED");
        bodies.push(reply.body.to_string());
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "the answers show the reason: {bodies:?}");
    app.stop().await;
}

#[actix_web::test]
async fn the_token_is_checked_before_the_route_and_the_body() {
    let app = TestApp::shared().await;
    let anonymous = app.api.with_key("sk_live_00000000000000000000000000000000");
    anonymous.get("/no-such-route").await.error(401, "ERR_API_UNAUTHORIZED");
    Reply::of(anonymous.request(Method::POST, "/tickets").body("{")).await.error(401, "ERR_API_UNAUTHORIZED");
    app.api.get("/no-such-route").await.error(404, "ERR_API_NOT_FOUND");
    app.stop().await;
}

#[actix_web::test]
async fn a_token_does_what_it_permits_and_nothing_else() {
    let app = TestApp::shared().await;
    let permissions = [("tickets".to_owned(), ["GET".to_owned()].into())].into();
    let new = hotline_persistence::tables::tokens::NewToken { name: "reader", permissions, ..Default::default() };
    let (_, key) = hotline_persistence::tables::tokens::insert(&app.db, app.company.id, new).await.expect("token");
    let reader = app.api.with_key(&key);
    crate::support::eventually("the token is seen", || async { reader.get("/tickets").await.status == 200 }).await;
    let refused = reader.post("/tickets", json!("not even an object")).await;
    refused.error(403, "ERR_API_FORBIDDEN_SCOPE");
    let message = refused.body["error"]["message"].as_str().expect("message");
    assert!(message.contains("POST") && message.contains("tickets"), "{message}");
    reader.get("/contacts").await.error(403, "ERR_API_FORBIDDEN_SCOPE");
    app.stop().await;
}

#[actix_web::test]
async fn company_and_plan_are_checked_after_the_token() {
    let app = TestApp::shared().await;
    for (change, code) in [
        ("update companies set api_enabled = false where id = $1", "ERR_API_NOT_ENABLED"),
        ("update companies set active = false where id = $1", "ERR_API_COMPANY_INACTIVE"),
    ] {
        sqlx::query(change).bind(app.company.id).execute(&app.db).await.expect(change);
        crate::support::eventually(code, || async { app.api.get("/tickets").await.body["error"]["code"] == code })
            .await;
        app.api.get("/tickets").await.error(403, code);
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_wrong_method_is_answered_with_the_allowed_ones() {
    let app = TestApp::shared().await;
    let reply = Reply::of(app.api.request(Method::DELETE, "/tickets")).await;
    reply.error(405, "ERR_API_METHOD_NOT_ALLOWED");
    assert_eq!(reply.headers["allow"], "GET, HEAD, POST");
    app.stop().await;
}

#[actix_web::test]
async fn a_plain_request_id_comes_back_and_any_other_is_replaced() {
    let app = TestApp::shared().await;
    let ask = async |id: &str| {
        let reply = Reply::of(app.api.request(Method::GET, "/channels").header("x-request-id", id)).await;
        reply.headers["x-request-id"].to_str().expect("text").to_owned()
    };
    assert_eq!(ask("order-7.retry_2").await, "order-7.retry_2");
    for bad in ["has blanks", "<script>", &"x".repeat(65)] {
        assert_ne!(ask(bad).await, bad);
    }
    let refused = Reply::of(app.api.anonymous(Method::GET, "/api/v1/tickets")).await;
    assert!(refused.headers.contains_key("x-request-id"), "a refusal has no id");
    app.stop().await;
}

#[actix_web::test]
async fn health_shows_that_the_service_and_its_database_are_ready() {
    let app = TestApp::shared().await;
    assert_eq!(Reply::of(app.api.anonymous(Method::GET, "/health/live")).await.status, 200);
    let ready = Reply::of(app.api.anonymous(Method::GET, "/health/ready")).await;
    assert_eq!(ready.status, 200, "{}", ready.body);
    assert_eq!(ready.body["parts"]["database"], "ready");
    app.stop().await;
}
