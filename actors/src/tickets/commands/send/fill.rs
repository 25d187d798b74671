//! Fills in the variables of a text.

use crate::Refusal;
use crate::variables::{Values, render};

/// Maximum bytes of a body with its variables filled in: the same limit as without them.
pub(super) const BODY_BYTES_MAX: usize = 65_536;

/// Fills in the variables of a field's text.
pub(super) fn fill(text: String, field: &str, values: &Values<'_>) -> Result<String, Refusal> {
    if !text.contains("{{") {
        return Ok(text);
    }
    render(&text, BODY_BYTES_MAX, |name| values.get(name)).ok_or_else(|| {
        Refusal::invalid(field, &format!("must have at most {BODY_BYTES_MAX} bytes once its variables are filled in"))
    })
}

/// The refusal of a field that is blank once it is filled in.
pub(super) fn blank_error(field: &str) -> Refusal {
    Refusal::invalid(field, "must not be blank once its variables are filled in")
}
