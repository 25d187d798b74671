//! Message templates that a phone channel's provider has approved: fetched from the provider and cached. Sends are
//! built from them in the provider's format.

mod build;
mod cache;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use build::{Asked, Built};
pub use cache::{Options, Templates};

/// A message the provider has looked at before anybody sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    /// With the language it names one template of the channel.
    #[schema(example = "order_shipped")]
    pub name: String,
    /// As the provider writes languages.
    #[schema(example = "en_US")]
    pub language: String,
    /// What it may be used for.
    #[serde(default)]
    #[schema(required = true, example = "UTILITY")]
    pub category: String,
    /// What the provider thinks of it.
    #[serde(default)]
    #[schema(required = true, example = "APPROVED")]
    pub status: String,
    /// Its parts, as the provider describes them.
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
