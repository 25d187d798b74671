//! What a webchat shows of the interactive objects of the official cloud API, and where their limits are. On other
//! channels the provider looks at them.

mod kinds;
mod place;
#[cfg(test)]
mod tests;

use hotline_actors::FieldError;
use serde_json::Value;

use place::{Errors, FieldPath};

/// Everything that is wrong with an interactive object, by its place in the body of the send.
pub fn check(interactive: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    kinds::check(&FieldPath::of(interactive), &mut errors);
    errors.into_fields()
}
