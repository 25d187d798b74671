//! What the API document says of everything behind the door.

use serde_json::json;

use crate::openapi::Operation;

/// The public key in the path, and what is answered to one that is nobody's, to a page that is not allowed, and to an
/// address that asks too much: all that is behind the door has them.
pub(super) fn behind_the_door(operation: &mut Operation) {
    if operation.path_ids.is_empty() {
        operation.path_ids.push(json!({
            "type": "string",
            "description": "The webchat's public key, as `hotline channel list` shows it.",
            "example": "ch_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP",
        }));
    }
    operation.is_limited = true;
    operation.errors.extend([403, 404, 429, 500, 503]);
}
