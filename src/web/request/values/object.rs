//! JSON objects whose shape is partly defined by third parties.

use hotline_persistence::controls;
use serde_json::{Map, Number as JsonNumber, Value, json};

use super::{BODY_BYTES_MAX, CONTROLS_REFUSED, FromField};

/// Maximum nesting depth of an [`Object`]. It is stored inside a few more levels, and JSON readers stop at 128; no
/// provider uses more than ten.
const OBJECT_DEPTH_MAX: usize = 64;

/// An object whose shape is partly defined by third parties: at most 65,536 bytes when its numbers are written as
/// PostgreSQL writes them, with only values that can be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object(pub Map<String, Value>);

impl FromField for Object {
    fn from_json(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or("must be an object")?;
        let bytes = value.to_string().len() + extra_bytes(value, 1)?;
        if bytes > BODY_BYTES_MAX {
            return Err(format!("must have at most {BODY_BYTES_MAX} bytes"));
        }
        Ok(Self(object.clone()))
    }

    /// In a form, an object is JSON text.
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_json(&serde_json::from_str(text).map_err(|_| "must be a JSON object")?)
    }

    fn schema() -> Value {
        json!({"type": "object", "description": "At most 65,536 bytes", "example": {}})
    }
}

/// Checks that PostgreSQL can store a value and that it can be read back. Returns how many bytes longer its
/// numbers are in PostgreSQL, which writes them without an exponent.
fn extra_bytes(value: &Value, depth: usize) -> Result<usize, String> {
    if depth > OBJECT_DEPTH_MAX && matches!(value, Value::Array(_) | Value::Object(_)) {
        return Err(format!("must be at most {OBJECT_DEPTH_MAX} levels deep"));
    }
    let check_text =
        |text: &str| if controls::contains_refused(text) { Err(CONTROLS_REFUSED.to_owned()) } else { Ok(0) };
    match value {
        Value::Null | Value::Bool(_) => Ok(0),
        Value::String(text) => check_text(text),
        Value::Number(number) => extra_digits(number).ok_or_else(|| format!("must not contain the number {number}")),
        Value::Array(items) => items.iter().map(|inner| extra_bytes(inner, depth + 1)).sum(),
        Value::Object(object) => {
            object.iter().map(|(key, inner)| Ok(check_text(key)? + extra_bytes(inner, depth + 1)?)).sum()
        }
    }
}

/// How many bytes longer a number is as PostgreSQL writes it, in digits without an exponent; `None` when reading these
/// digits gives a different number.
fn extra_digits(number: &JsonNumber) -> Option<usize> {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return Some(0) };
    // The shortest digits of this number without an exponent: `Display` never writes one.
    let digits = format!("{value}");
    let parsed: JsonNumber = serde_json::from_str(&digits).ok()?;
    // Parsing may round the last digit.
    let is_same = (parsed.as_f64()? - value).abs() <= value.abs() * 1e-12;
    is_same.then(|| digits.len().saturating_sub(number.to_string().len()))
}
