//! A body, as its handler declares it.

use std::borrow::Cow;

use serde_json::Value;

use super::Fields;
use crate::web::bounds::JSON_BYTES_MAX;

/// A body that is read field by field.
pub trait Input: Sized {
    /// What its schema is called in the API document.
    fn name() -> Cow<'static, str>;

    /// What is said of it unless there is more to say.
    fn text() -> Option<String> {
        None
    }

    /// Whether no body at all means an empty object.
    const MAY_BE_EMPTY: bool = false;

    /// Bytes of the body.
    const BYTES_MAX: usize = JSON_BYTES_MAX;

    /// Whether a `422` may say more than which fields are wrong.
    const MAY_BE_REFUSED: bool = false;

    /// Reads every field, then builds the value. `None` when a required field failed; the reason is in `fields`.
    ///
    /// Every field is asked for whatever the others hold: what is asked for is what is documented.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;

    /// Bodies that show what there is, by name; none where the fields' own examples do.
    fn examples() -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The same of bodies with files.
    fn form_examples() -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}
