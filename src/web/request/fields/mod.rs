//! Reads a JSON object field by field, and reports all errors together. Run without an object, the same code describes
//! the fields: the API document is generated from this.

mod input;
mod nested;
mod patch;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::HashMap;

use hotline_actors::FieldError;
use hotline_persistence::controls;
use hotline_persistence::visible_text;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

pub use self::input::Input;
pub use self::patch::Patch;
use super::json;
use super::values::{CONTROLS_REFUSED, FromField};
use crate::web::response::error::{ApiError, ApiResult};
use crate::web::response::schema::{Shape, nullable, or_blank};

/// The fields of one object, and the errors found so far.
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// The original JSON text, where numbers have all their digits.
    source: Option<&'a [u8]>,
    /// The original JSON text of each member; parsed on first use.
    members: OnceCell<HashMap<String, &'a RawValue>>,
    /// In a form, where every field is text: the fields that contain a JSON object or list, parsed.
    nested: Option<&'a Map<String, Value>>,
    path: String,
    errors: Vec<FieldError>,
    /// Collects the schema while the fields are described; nothing is read then.
    shape: Option<Shape>,
}

impl<'a> Fields<'a> {
    fn of(object: &'a Map<String, Value>, source: Option<&'a [u8]>, path: String) -> Self {
        Self { object, source, members: OnceCell::new(), nested: None, path, errors: Vec::new(), shape: None }
    }

    /// Parses a whole body; `source` is the JSON text it was parsed from.
    ///
    /// # Errors
    /// `422` with every field that is missing or invalid.
    pub fn parse<T: Input>(body: &Value, source: &[u8]) -> ApiResult<T> {
        let Some(object) = body.as_object() else {
            let reason = "must be an object".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "body".to_owned(), reason }]));
        };
        Fields::of(object, Some(source), String::new()).finish()
    }

    /// Parses a form, whose fields are text: objects and lists are JSON, anything else is written as in a query.
    ///
    /// # Errors
    /// `422` with every field that is missing or invalid.
    pub fn parse_form<T: Input>(texts: &Map<String, Value>) -> ApiResult<T> {
        let nested = texts.iter().filter_map(|(name, text)| {
            let text = text.as_str().filter(|text| text.trim_start().starts_with(['{', '[']))?;
            Some((name.clone(), json::parse(text.as_bytes()).ok()?))
        });
        let nested = nested.collect();
        Fields { nested: Some(&nested), ..Fields::of(texts, None, String::new()) }.finish()
    }

    fn finish<T: Input>(mut self) -> ApiResult<T> {
        match T::read(&mut self) {
            Some(input) if self.errors.is_empty() => Ok(input),
            _ => Err(ApiError::validation(&self.errors)),
        }
    }

    /// The schema of a body.
    pub fn describe<T: Input>() -> Value {
        describe(|fields| drop(T::read(fields)))
    }

    /// A required field.
    pub fn required<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, T::schema(), true);
            return None;
        }
        match self.object.get(name) {
            None | Some(Value::Null) => {
                self.refuse(name, "is required");
                None
            }
            Some(value) => self.accept(name, value),
        }
    }

    /// An optional field; `null` and a blank string count as absent.
    pub fn optional<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, optional_schema::<T>(), false);
            return None;
        }
        match self.object.get(name) {
            None | Some(Value::Null) => None,
            Some(value) if T::IS_TEXT && is_blank(value) => None,
            Some(value) => self.accept(name, value),
        }
    }

    /// An optional field that must not be `null`: `PUT` can change it, but cannot clear it.
    pub fn non_null<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, T::schema(), false);
            return None;
        }
        match self.object.get(name) {
            None => None,
            Some(Value::Null) => {
                self.refuse(name, "must not be null");
                None
            }
            Some(value) => self.accept(name, value),
        }
    }

    /// A field for which absence and `null` differ. A blank string counts as `null`.
    pub fn patch<T: FromField>(&mut self, name: &str) -> Patch<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, optional_schema::<T>(), false);
            return Patch::Absent;
        }
        match self.object.get(name) {
            None => Patch::Absent,
            Some(Value::Null) => Patch::Null,
            Some(value) if T::IS_TEXT && is_blank(value) => Patch::Null,
            Some(value) => self.accept(name, value).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// Whether the field is in the body and not `null`.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Whether the field is `null` in the body.
    pub fn is_null(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(Value::is_null)
    }

    /// Whether the field is in the body, and is neither `null` nor a blank string.
    pub fn has_text(&self, name: &str) -> bool {
        self.has(name) && !self.object.get(name).is_some_and(is_blank)
    }

    /// Records that a field is invalid.
    pub fn refuse(&mut self, name: &str, reason: impl Into<String>) {
        self.errors.push(FieldError { field: format!("{}{name}", self.path), reason: reason.into() });
    }

    /// Where the object is in the body: a prefix of the names of its fields in errors.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Takes the errors found so far, for an input that reports them itself.
    pub fn take_errors(&mut self) -> Vec<FieldError> {
        std::mem::take(&mut self.errors)
    }

    /// Reads fields; the reasons of their errors begin with this prefix.
    pub fn with_prefix<T>(&mut self, prefix: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let errors_before = self.errors.len();
        let value = read(self);
        for error in self.errors.iter_mut().skip(errors_before) {
            error.reason = format!("{prefix} {}", error.reason);
        }
        value
    }

    /// The value of a field that may be an object or a list.
    fn structured(&self, name: &str) -> Option<&'a Value> {
        let nested = self.nested.and_then(|nested| nested.get(name));
        nested.or_else(|| self.object.get(name))
    }

    /// The original JSON text of a field.
    fn member(&self, name: &str) -> Option<&'a [u8]> {
        if self.nested.is_some() {
            return self.object.get(name).and_then(Value::as_str).map(str::as_bytes);
        }
        let source = self.source?;
        // If a field occurs twice, the last one wins, here as in the parsed object.
        let members = self.members.get_or_init(|| serde_json::from_slice(source).unwrap_or_default());
        members.get(name).map(|member| member.get().as_bytes())
    }

    /// The original JSON text of a list's items; empty if the `Value`s have all their digits.
    fn source_items(&self, name: &str, items: &[Value]) -> Vec<&'a RawValue> {
        let source = has_float(items).then(|| self.member(name)).flatten();
        source.and_then(|source| serde_json::from_slice(source).ok()).unwrap_or_default()
    }

    /// The digits of a number, as written; `None` when its JSON text is not available.
    fn digits(&self, name: &str, number: &Number) -> Option<String> {
        // An integer always has all its digits.
        if !number.is_f64() {
            return Some(number.to_string());
        }
        self.member(name).and_then(|source| str::from_utf8(source).ok()).map(str::to_owned)
    }

    /// Converts a value, or records why it is invalid.
    fn accept<T: FromField>(&mut self, name: &str, value: &Value) -> Option<T> {
        if controls::value_contains_refused(value) {
            self.refuse(name, CONTROLS_REFUSED);
            return None;
        }
        let result = match (self.nested, value) {
            (_, Value::Number(number)) if T::IS_DECIMAL => {
                self.digits(name, number).map_or_else(|| T::from_json(value), |digits| T::from_text(&digits))
            }
            (Some(nested), Value::String(text)) => T::from_text(text).or_else(|reason| {
                // A field that accepts text takes it literally; only if that fails is the text read as JSON.
                nested.get(name).map_or(Err(reason), T::from_json)
            }),
            _ => T::from_json(value),
        };
        result.map_err(|reason| self.refuse(name, reason)).ok()
    }
}

/// Whether one of the values contains a number that may have lost digits when it was parsed.
fn has_float<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    values.into_iter().any(|value| match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => has_float(items),
        Value::Object(object) => has_float(object.values()),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    })
}

fn is_blank(value: &Value) -> bool {
    // A string with a refused control character does not count as blank, so that it is refused.
    value.as_str().is_some_and(|text| visible_text::is_blank(text) && !controls::contains_refused(text))
}

/// The schema of an optional value.
fn optional_schema<T: FromField>() -> Value {
    let schema = nullable(T::schema());
    if T::IS_TEXT { or_blank(schema) } else { schema }
}

fn describe(read: impl FnOnce(&mut Fields<'_>)) -> Value {
    let empty = Map::new();
    let mut fields = Fields { shape: Some(Shape::default()), ..Fields::of(&empty, None, String::new()) };
    read(&mut fields);
    fields.shape.unwrap_or_default().into_schema()
}
