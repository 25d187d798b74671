//! Whatever is sent, the answer is an envelope that says what is wrong: never an internal error, never silence.
//!
//! Bad values are derived from the schemas of bodies and parameters, so that a new operation is tested without being
//! named here. Those that the schemas do not imply are in `special.rs`.

mod bodies;
mod fields;
mod filters;
mod paths;
mod special;

use hotline::openapi::Operation;
use reqwest::Method;
use serde_json::Value;

use crate::front_door::world::World;
use crate::support::{Reply, TestApp};

/// A company with at least one record of every kind.
async fn world(app: &TestApp) -> World<'_> {
    World::create(app, app.company.clone(), app.api.clone(), "Own").await
}

/// Asserts what every answer has, whatever was asked, and returns the answer.
#[track_caller]
fn checked(reply: Reply) -> Reply {
    assert!(!reply.status.is_server_error(), "an internal error: {} {}", reply.status, reply.body);
    assert!(reply.headers.contains_key("x-request-id"), "no request id: {}", reply.body);
    if !reply.status.is_success() {
        let code = reply.body["error"]["code"].as_str();
        assert!(code.is_some_and(|code| code.starts_with("ERR_API_")), "{}", reply.body);
        assert!(reply.body["error"]["message"].is_string(), "{}", reply.body);
        assert_eq!(reply.headers["content-type"], "application/json", "{}", reply.body);
    }
    reply
}

/// A request that the API accepts: an operation with a body, a valid body, and a path with ids that exist.
struct ValidRequest<'a> {
    world: &'a World<'a>,
    operation: &'a Operation,
    path: String,
    body: Value,
}

impl<'a> ValidRequest<'a> {
    async fn of(world: &'a World<'a>, operation: &'a Operation) -> Self {
        let (targets, body) = world.body(operation, None).await;
        Self { world, operation, path: World::path(operation, &targets), body }
    }

    fn method(&self) -> Method {
        self.operation.method.parse().expect("a method")
    }

    async fn send(&self, body: &Value) -> Reply {
        checked(Reply::of(self.world.api.request(self.method(), &self.path).json(body)).await)
    }

    async fn send_raw(&self, kind: Option<&str>, body: impl Into<reqwest::Body>) -> Reply {
        let mut request = self.world.api.request(self.method(), &self.path).body(body);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        checked(Reply::of(request).await)
    }

    /// Asserts that the unchanged body is accepted, so that earlier refusals were for the change.
    async fn assert_accepted(&self) {
        let reply = self.send(&self.body).await;
        assert_eq!(reply.status.as_u16(), self.operation.success.0, "{self}: {}", reply.body);
    }
}

impl std::fmt::Display for ValidRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.operation.method, self.operation.path)
    }
}
