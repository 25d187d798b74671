//! Objects whose shape somebody else has a say in.

use serde_json::{Map, Number as JsonNumber, Value, json};

use super::{BODY_BYTES_MAX, FromField};

/// Levels of an object that somebody else has a say in. What is read nests it a few levels deeper, and readers stop at
/// 128 of them; no provider has more than ten.
const OBJECT_DEPTH_MAX: usize = 64;

/// An object of a shape that somebody else has a say in: at most 65,536 bytes as it is stored, and only what can be
/// read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object(pub Map<String, Value>);

impl FromField for Object {
    fn from_json(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or("must be an object")?;
        let bytes = value.to_string().len() + stored(value, 1)?;
        if bytes > BODY_BYTES_MAX {
            return Err(format!("must have at most {BODY_BYTES_MAX} bytes"));
        }
        Ok(Self(object.clone()))
    }

    /// In a form an object is JSON text.
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_json(&serde_json::from_str(text).map_err(|_| "must be a JSON object")?)
    }

    fn schema() -> Value {
        json!({"type": "object", "description": "At most 65,536 bytes", "example": {}})
    }
}

/// Whether PostgreSQL can store a value, and we read it again: answers how many bytes more it takes there, where numbers
/// are written out.
fn stored(value: &Value, depth: usize) -> Result<usize, String> {
    if depth > OBJECT_DEPTH_MAX && matches!(value, Value::Array(_) | Value::Object(_)) {
        return Err(format!("must be at most {OBJECT_DEPTH_MAX} levels deep"));
    }
    let text = |text: &str| if text.contains('\0') { Err("must not contain U+0000".to_owned()) } else { Ok(0) };
    match value {
        Value::Null | Value::Bool(_) => Ok(0),
        Value::String(inner) => text(inner),
        Value::Number(number) => written_out(number).ok_or_else(|| format!("must not hold the number {number}")),
        Value::Array(items) => items.iter().map(|inner| stored(inner, depth + 1)).sum(),
        Value::Object(object) => object.iter().map(|(key, inner)| Ok(text(key)? + stored(inner, depth + 1)?)).sum(),
    }
}

/// How many bytes longer a number is when it is written out as PostgreSQL does, in digits without an exponent; none when
/// it is not the same once that is read.
fn written_out(number: &JsonNumber) -> Option<usize> {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return Some(0) };
    // The shortest digits that mean this number, without an exponent: `Display` has none.
    let digits = format!("{value}");
    let read: JsonNumber = serde_json::from_str(&digits).ok()?;
    // Reading rounds in the last place.
    let is_same = (read.as_f64()? - value).abs() <= value.abs() * 1e-12;
    is_same.then(|| digits.len().saturating_sub(number.to_string().len()))
}
