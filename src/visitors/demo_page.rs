//! The page of `hotline demo` and its settings.

use std::sync::OnceLock;

use hotline_actors::clock;
use hotline_persistence::tables::channels::Secret;
use serde_json::{Value, json};

use super::identity;
use crate::web::{ApiError, ApiResult};

/// How long the identity of the demo's visitor is valid, in seconds.
const IDENTITY_VALID_S: i64 = 12 * 3600;

/// The demo's page.
pub struct DemoPage {
    secret: Secret,
    /// The claims of the visitor's identity, without `exp`.
    visitor_claims: Value,
    settings: Value,
}

impl DemoPage {
    /// A page with these settings, which signs in the visitor with these claims, signed with `secret`.
    pub fn new(secret: Secret, visitor_claims: Value, settings: Value) -> Self {
        Self { secret, visitor_claims, settings }
    }

    /// The settings that a shop's server would embed in its page, with a freshly signed identity.
    pub(super) fn settings(&self) -> ApiResult<String> {
        let (mut settings, mut claims) = (self.settings.clone(), self.visitor_claims.clone());
        claims["exp"] = json!(clock::now().timestamp() + IDENTITY_VALID_S);
        let identity = identity::sign(&self.secret, &claims).ok_or_else(|| ApiError::internal("nothing is signed"))?;
        settings["identity"] = json!(identity);
        Ok(settings.to_string())
    }
}

/// The demo's page, once the demo has started; empty in a normal service.
#[derive(Default)]
pub struct Demo(OnceLock<DemoPage>);

impl Demo {
    /// Makes the page available. Called once: a process has at most one demo.
    pub fn publish(&self, page: DemoPage) {
        let _ = self.0.set(page);
    }

    /// The page.
    ///
    /// # Errors
    /// `404` where there is no demo.
    pub(super) fn page(&self) -> ApiResult<&DemoPage> {
        self.0.get().ok_or_else(ApiError::no_such_route)
    }
}
