//! Validates interactive messages of the webchat by the format and limits of the official cloud API. On other channels
//! the provider validates them.

mod field_value;
mod kinds;
#[cfg(test)]
mod tests;

use hotline_actors::FieldError;
use serde_json::Value;

use field_value::{Errors, FieldValue};

/// Every error of an interactive object, with its path in the request body.
pub fn check(interactive: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    kinds::check(&FieldValue::of(interactive), &mut errors);
    errors.into_fields()
}
