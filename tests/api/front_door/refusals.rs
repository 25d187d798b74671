//! Errors outside of handlers have the envelope too: unknown methods and routes, bad bodies, defects.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use hotline::openapi::Operation;
use reqwest::Method;
use serde_json::json;

use super::table::{example_path, filled, method, name, operations, paths};
use crate::steps::lingering;
use crate::support::{OwnApp, Reply, TestApp};

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"];

/// The most bytes of a JSON body.
const MEBIBYTE: usize = 1 << 20;

/// Asserts that this is an error as the API writes it, with the headers of every answer.
#[track_caller]
fn assert_error(reply: &Reply, status: u16, code: &str, what: &str) {
    assert_eq!(reply.status, status, "{what}: {}", reply.body);
    assert_eq!(reply.body["error"]["code"], code, "{what}: {}", reply.body);
    assert!(reply.body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {}", reply.body);
    assert_eq!(reply.headers["content-type"], "application/json", "{what}");
    assert!(reply.headers.contains_key("x-request-id"), "{what}: no x-request-id");
    // No company here has a rate limit.
    assert!(!reply.headers.contains_key("ratelimit-limit"), "{what}");
}

/// Operations that take a body.
fn operations_with_body() -> Vec<Operation> {
    let all: Vec<Operation> = operations().into_iter().filter(|operation| operation.body.is_some()).collect();
    assert!(all.len() >= 10, "hardly any operation takes a body");
    all
}

#[actix_web::test]
async fn a_405_lists_the_methods_of_its_path() {
    let app = TestApp::shared().await;
    let checks = paths().into_iter().map(async |(path, methods)| {
        // A path with `GET` has `HEAD` too.
        let allowed: BTreeSet<&str> =
            if methods.contains("GET") { methods.into_iter().chain(["HEAD"]).collect() } else { methods };
        for other in METHODS.iter().filter(|other| !allowed.contains(**other)) {
            let what = format!("{other} {path}");
            let request = app.api.request(method(other), &filled(&path, "1"));
            let reply = Reply::of(request).await;
            if *other == "HEAD" {
                assert_eq!(reply.status, 405, "{what}");
                assert!(reply.bytes.is_empty(), "{what}");
            } else {
                assert_error(&reply, 405, "ERR_API_METHOD_NOT_ALLOWED", &what);
            }
            let allow = reply.headers["allow"].to_str().expect("text");
            assert_eq!(allow.split(", ").collect::<BTreeSet<_>>(), allowed, "{what}");
            // The body does not matter, however bad it is.
            let request = app.api.request(method(other), &filled(&path, "1")).header("idempotency-key", "k k");
            let refused = Reply::of(request.header("content-type", "text/plain").body("{")).await;
            assert!([400, 405].contains(&refused.status.as_u16()), "{what}: {}", refused.body);
        }
    });
    join_all(checks).await;
    app.stop().await;
}

#[actix_web::test]
async fn an_unknown_route_is_a_404_in_the_envelope() {
    let app = TestApp::shared().await;
    let unknown_paths = [
        "",
        "/",
        "/nothing",
        "/tickets/",
        "/tickets/1/",
        "/tickets//1",
        "/Tickets",
        "/tickets/1/nothing",
        "/v1/tickets",
    ];
    for name in METHODS.iter().filter(|name| **name != "HEAD") {
        for path in unknown_paths {
            let what = format!("{name} {path}");
            let reply = Reply::of(app.api.request(method(name), path)).await;
            assert_error(&reply, 404, "ERR_API_NOT_FOUND", &what);
            assert_eq!(reply.body["error"]["message"], "no such endpoint", "{what}");
            let anonymous = app.api.anonymous(method(name), &format!("/api/v1{path}"));
            assert_error(&Reply::of(anonymous).await, 401, "ERR_API_UNAUTHORIZED", &what);
        }
        for path in ["/", "/nothing", "/api", "/api/", "/api/v2", "/api/v2/tickets", "/api/v1x", "/tickets", "/health"]
        {
            let what = format!("{name} {path}");
            let reply = Reply::of(app.api.anonymous(method(name), path)).await;
            assert_error(&reply, 404, "ERR_API_NOT_FOUND", &what);
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn paths_without_a_token_allow_only_reads() {
    let app = TestApp::shared().await;
    for path in ["/health/live", "/health/ready", "/api/v1/openapi.json", "/docs"] {
        for other in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let reply = Reply::of(app.api.anonymous(method(other), path)).await;
            assert_error(&reply, 405, "ERR_API_METHOD_NOT_ALLOWED", &format!("{other} {path}"));
            assert_eq!(reply.headers["allow"], "GET, HEAD", "{other} {path}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_body_of_another_media_type_is_refused_by_every_endpoint() {
    let app = TestApp::shared().await;
    let kinds = ["text/plain", "application/x-www-form-urlencoded", "application/xml", "application/octet-stream"];
    let checks = operations_with_body().into_iter().map(async |operation| {
        let path = example_path(&operation);
        for kind in kinds.into_iter().chain(["application/jsonp", "text/json", "json", "*/*", ""]) {
            let request = app.api.request(method(operation.method), &path).header("content-type", kind);
            let what = format!("{} with {kind}", name(&operation));
            assert_error(&Reply::of(request.body("{}")).await, 415, "ERR_API_UNSUPPORTED_MEDIA_TYPE", &what);
        }
    });
    join_all(checks).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_body_that_is_not_json_is_refused_by_every_endpoint() {
    let app = TestApp::shared().await;
    let checks = operations_with_body().into_iter().map(async |operation| {
        let path = example_path(&operation);
        let mut broken: Vec<&[u8]> =
            vec![b"{", b"nonsense", b"{'a': 1}", b"{} {}", b"\xff\xfe{}", b"{\"a\": 1,}", b"[1"];
        if !operation.body_is_optional {
            broken.push(b"");
        }
        for bytes in broken {
            let request = app.api.request(method(operation.method), &path).header("content-type", "application/json");
            let reply = Reply::of(request.body(bytes.to_vec())).await;
            let what = format!("{} with {}", name(&operation), String::from_utf8_lossy(bytes));
            assert_error(&reply, 400, "ERR_API_BAD_REQUEST", &what);
        }
    });
    join_all(checks).await;
    app.stop().await;
}

#[actix_web::test]
async fn a_body_above_a_mebibyte_is_refused_by_every_endpoint_but_the_import() {
    let app = OwnApp::start_with(lingering()).await;
    let of_size = |size: usize| format!(r#"{{"filler":"{}"}}"#, "x".repeat(size - r#"{"filler":""}"#.len()));
    for operation in operations_with_body() {
        // An operation that states a limit in the document has that one.
        let bytes_max = operation.body_bytes_max.unwrap_or(MEBIBYTE);
        assert_eq!(bytes_max > MEBIBYTE, operation.path == "/contacts/import", "{}", name(&operation));
        let body = of_size(bytes_max + 1);
        for key in [None, Some("k")] {
            let request = app.api.request(method(operation.method), &example_path(&operation));
            let request = request.header("content-type", "application/json").body(body.clone());
            let request = key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
            let reply = Reply::of(request).await;
            assert_error(&reply, 413, "ERR_API_PAYLOAD_TOO_LARGE", &name(&operation));
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_refusal_reaches_a_client_whose_body_nobody_reads() {
    let app = OwnApp::start_with(lingering()).await;
    let body = "x".repeat(MEBIBYTE);
    let stranger = app.api.with_key("none");
    for round in 0..20 {
        for (api, method, path, status) in [
            (&stranger, Method::POST, "/tickets", 401),
            (&stranger, Method::POST, "/nothing", 401),
            (&app.api, Method::POST, "/nothing", 404),
            (&app.api, Method::PATCH, "/tickets", 405),
        ] {
            let what = format!("{round}: {method} {path}");
            let reply = Reply::try_of(api.request(method, path).body(body.clone())).await;
            assert_eq!(reply.unwrap_or_else(|| panic!("{what}: no answer")).status, status, "{what}");
        }
    }
    app.stop().await;
}

#[actix_web::test]
async fn a_defect_shows_the_request_id_and_nothing_else() {
    let app = OwnApp::start().await;
    let ticket = app.ticket("5511900000001").await;
    let path = format!("/tickets/{ticket}/transfer");
    for (request_id, key) in [(None, None), (Some("order-7"), None), (None, Some("k1")), (Some("order-8"), Some("k2"))]
    {
        fail::cfg("ticket_decided", "1*panic(a secret defect)").expect("failpoint");
        let mut request = app.api.request(Method::POST, &path).json(&json!({"queueId": app.company.sales}));
        for (header, value) in [("x-request-id", request_id), ("idempotency-key", key)] {
            if let Some(value) = value {
                request = request.header(header, value);
            }
        }
        let reply = Reply::of(request).await;
        assert_error(&reply, 500, "ERR_API_INTERNAL", &format!("{request_id:?} {key:?}"));
        let id = reply.headers["x-request-id"].to_str().expect("text");
        assert!(request_id.is_none_or(|sent| sent == id), "{id}");
        assert_eq!(
            reply.body,
            json!({"error": {
                "code": "ERR_API_INTERNAL",
                "message": format!("internal error; request {id}"),
            }})
        );
    }
    app.stop().await;
}
