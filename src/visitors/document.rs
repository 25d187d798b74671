//! The parts of the API document that all operations on a webchat share.

use serde_json::json;

use crate::openapi::Operation;

/// Adds the public key in the path, and the errors of an unknown key, of a forbidden page and of an exceeded rate.
pub(super) fn describe_webchat(operation: &mut Operation) {
    if operation.path_ids.is_empty() {
        operation.path_ids.push(json!({
            "type": "string",
            "description": "The webchat's public key, as `hotline channel list` shows it.",
            "example": "ch_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP",
        }));
    }
    operation.is_rate_limited = true;
    operation.errors.extend([403, 404, 429, 500, 503]);
}
