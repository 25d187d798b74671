//! The declaration of a request body.

use std::borrow::Cow;

use serde_json::Value;

use super::Fields;
use crate::web::request::bounds::JSON_BYTES_MAX;

/// A body that is read field by field.
pub trait Input: Sized {
    /// The name of its schema in the API document.
    fn name() -> Cow<'static, str>;

    /// The description in the API document, unless texts.toml has a longer one.
    fn text() -> Option<String> {
        None
    }

    /// Whether a missing body counts as an empty object.
    const MAY_BE_EMPTY: bool = false;

    /// Maximum size of the body, in bytes.
    const BYTES_MAX: usize = JSON_BYTES_MAX;

    /// Whether a valid body may be refused with a `422` that names no field, such as for an unreachable contact.
    const MAY_BE_REFUSED: bool = false;

    /// Reads every field, then builds the value. Returns `None` when a required field is missing or invalid; the
    /// reason is in `fields`.
    ///
    /// Every field must be read regardless of the other values: the fields that are read become the documentation.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;

    /// Named examples of the body; empty where the fields' own examples suffice.
    fn examples() -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Named examples of bodies with files.
    fn form_examples() -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}
