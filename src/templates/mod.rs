//! The message templates of phone channels: fetched from their providers and cached. Sends are built from approved
//! templates, in the provider's format.

mod build;
mod cache;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use build::{BuiltTemplate, TemplateRequest};
pub use cache::{Options, Templates};

/// A message template of the channel's account at the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    /// The name; unique in the channel together with the language.
    #[schema(example = "order_shipped")]
    pub name: String,
    /// The language, in the provider's format.
    #[schema(example = "en_US")]
    pub language: String,
    /// The category of use.
    #[serde(default)]
    #[schema(required = true, example = "UTILITY")]
    pub category: String,
    /// The provider's review status.
    #[serde(default)]
    #[schema(required = true, example = "APPROVED")]
    pub status: String,
    /// The components, in the provider's format.
    #[serde(default)]
    #[schema(required = true, value_type = Vec<Object>)]
    pub components: Vec<Value>,
}

impl Template {
    /// Whether the provider has approved the template, so that it may be sent.
    pub fn is_approved(&self) -> bool {
        self.status.eq_ignore_ascii_case("approved")
    }
}
