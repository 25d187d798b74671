//! Fills in the variables of a text, and of the texts of an object.

use serde_json::Value;

use crate::Refusal;
use crate::variables::{Values, render};

/// Maximum bytes of a body with its variables filled in: the same limit as without them.
pub(super) const BODY_BYTES_MAX: usize = 65_536;

/// Maximum bytes of an interactive object or a template, as JSON: many times what any provider accepts, and equal to
/// the limit of a body.
const OBJECT_BYTES_MAX: usize = 65_536;

/// Fills in the texts of one object, and counts their bytes. An object can have thousands of texts: all of them may take
/// gigabytes, and only then is the object found to be too long.
pub(super) struct ObjectFill<'a, 'v> {
    /// The object's field, for the refusal.
    field: &'static str,
    values: &'a Values<'v>,
    bytes_left: usize,
}

impl<'a, 'v> ObjectFill<'a, 'v> {
    /// Begins an object.
    pub(super) fn new(field: &'static str, values: &'a Values<'v>) -> Self {
        Self { field, values, bytes_left: OBJECT_BYTES_MAX }
    }

    /// Fills in the variables of one of the object's texts. `field` is the field of the text.
    ///
    /// # Errors
    /// When the text is too long, or all texts together are.
    pub(super) fn fill(&mut self, text: &str, field: &str) -> Result<String, Refusal> {
        let filled = render(text, BODY_BYTES_MAX, |name| self.values.get(name)).ok_or_else(|| text_too_long(field))?;
        self.bytes_left = self.bytes_left.checked_sub(filled.len()).ok_or_else(|| object_too_long(self.field))?;
        Ok(filled)
    }

    /// Checks the size of the whole object, once it is filled in.
    pub(super) fn check_size(&self, object: &Value) -> Result<(), Refusal> {
        if object.to_string().len() <= OBJECT_BYTES_MAX { Ok(()) } else { Err(object_too_long(self.field)) }
    }
}

/// Fills in the variables of a field's text.
pub(super) fn fill(text: String, field: &str, values: &Values<'_>) -> Result<String, Refusal> {
    if !text.contains("{{") {
        return Ok(text);
    }
    render(&text, BODY_BYTES_MAX, |name| values.get(name)).ok_or_else(|| text_too_long(field))
}

fn text_too_long(field: &str) -> Refusal {
    Refusal::invalid(field, &format!("must have at most {BODY_BYTES_MAX} bytes once its variables are filled in"))
}

fn object_too_long(field: &str) -> Refusal {
    Refusal::invalid(field, &format!("must have at most {OBJECT_BYTES_MAX} bytes"))
}

/// The refusal of a field that is blank once it is filled in.
pub(super) fn blank_error(field: &str) -> Refusal {
    Refusal::invalid(field, "must not be blank once its variables are filled in")
}
