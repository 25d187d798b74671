//! The settings of the demo's page.

use std::sync::OnceLock;

use hotline_actors::clock;
use hotline_persistence::tables::channels::Secret;
use serde_json::{Value, json};

use super::identity;
use crate::web::{ApiError, ApiResult};

/// How long the identity of the demo's visitor is good, in seconds: as long as somebody looks at a page.
const IDENTITY_VALID_S: i64 = 12 * 3600;

/// The demo's page, once the demo is there.
pub struct DemoPage {
    secret: Secret,
    visitor: Value,
    settings: Value,
}

impl DemoPage {
    /// With what the page needs to know, and the visitor it may sign in.
    pub fn new(secret: Secret, visitor: Value, settings: Value) -> Self {
        Self { secret, visitor, settings }
    }

    /// What a shop's server would put into its page, with the identity it has just signed.
    pub(super) fn settings(&self) -> ApiResult<String> {
        let (mut settings, mut claims) = (self.settings.clone(), self.visitor.clone());
        claims["exp"] = json!(clock::now().timestamp() + IDENTITY_VALID_S);
        let identity = identity::sign(&self.secret, &claims).ok_or_else(|| ApiError::internal("nothing is signed"))?;
        settings["identity"] = json!(identity);
        Ok(settings.to_string())
    }
}

/// The page, once there is a demo; a service that is none has none.
#[derive(Default)]
pub struct Demo(OnceLock<DemoPage>);

impl Demo {
    /// Shows the page from now on. Once: there is one demo in a process.
    pub fn show(&self, page: DemoPage) {
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
