//! Message templates that a phone channel's provider has approved: fetched from the provider and cached. Sends are
//! built from them in the provider's format.

mod build;
mod cache;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use build::{BuiltTemplate, TemplateRequest};
pub use cache::{Options, Templates};

/// A message template approved by the provider.
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
    /// Whether it may be sent.
    pub fn is_approved(&self) -> bool {
        self.status.eq_ignore_ascii_case("approved")
    }
}
