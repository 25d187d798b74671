//! Reads a JSON object field by field, and collects everything that is wrong with it before saying so. The same code,
//! run without an object, says which fields there are: the API document is made of it.

mod input;
mod nested;
mod patch;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::HashMap;

use hotline_actors::FieldError;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

pub use self::input::Input;
pub use self::patch::Patch;
use super::schema::{Shape, nullable, or_blank};
use super::values::FromField;
use super::{ApiError, ApiResult};

/// The fields of one object, and what was wrong with those that were read.
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// The same as it was written, where numbers have all their digits.
    written: Option<&'a [u8]>,
    /// Its members as they were written, once one of them is looked for.
    members: OnceCell<HashMap<String, &'a RawValue>>,
    /// In a form, where every field is text: what of that text is a JSON object or list.
    nested: Option<&'a Map<String, Value>>,
    path: String,
    errors: Vec<FieldError>,
    /// What was asked for, when that is all that is wanted.
    shape: Option<Shape>,
}

impl<'a> Fields<'a> {
    fn of(object: &'a Map<String, Value>, written: Option<&'a [u8]>, path: String) -> Self {
        Self { object, written, members: OnceCell::new(), nested: None, path, errors: Vec::new(), shape: None }
    }

    /// Reads a whole body; `written` is the JSON it was read from.
    ///
    /// # Errors
    /// `422` with every field that is missing or not accepted.
    pub fn parse<T: Input>(body: &Value, written: &[u8]) -> ApiResult<T> {
        let Some(object) = body.as_object() else {
            let reason = "must be an object".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "body".to_owned(), reason }]));
        };
        Fields::of(object, Some(written), String::new()).finish()
    }

    /// Reads a form, whose fields are text: objects and lists as JSON, anything else as a query would write it.
    ///
    /// # Errors
    /// `422` with every field that is missing or not accepted.
    pub fn parse_form<T: Input>(texts: &Map<String, Value>) -> ApiResult<T> {
        let nested = texts.iter().filter_map(|(name, text)| {
            let text = text.as_str().filter(|text| text.trim_start().starts_with(['{', '[']))?;
            Some((name.clone(), serde_json::from_str(text).ok()?))
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

    /// A field that must be there.
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

    /// A field that may be absent; `null` means the same, and so does a blank text.
    pub fn optional<T: FromField>(&mut self, name: &str) -> Option<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, clearable::<T>(), false);
            return None;
        }
        match self.object.get(name) {
            None | Some(Value::Null) => None,
            Some(value) if T::IS_TEXT && is_blank(value) => None,
            Some(value) => self.accept(name, value),
        }
    }

    /// A field that may be absent, but not `null`: what `PUT` changes and cannot clear.
    pub fn changed<T: FromField>(&mut self, name: &str) -> Option<T> {
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

    /// A field whose absence and `null` mean different things. A blank text is `null`.
    pub fn patch<T: FromField>(&mut self, name: &str) -> Patch<T> {
        if let Some(shape) = &mut self.shape {
            shape.property(name, clearable::<T>(), false);
            return Patch::Absent;
        }
        match self.object.get(name) {
            None => Patch::Absent,
            Some(Value::Null) => Patch::Null,
            Some(value) if T::IS_TEXT && is_blank(value) => Patch::Null,
            Some(value) => self.accept(name, value).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// Whether the field is in the body, with any value but `null`.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Whether a text is in the body, and says something.
    pub fn has_text(&self, name: &str) -> bool {
        self.has(name) && !self.object.get(name).is_some_and(is_blank)
    }

    /// Notes that a field is not accepted.
    pub fn refuse(&mut self, name: &str, reason: impl Into<String>) {
        self.errors.push(FieldError { field: format!("{}{name}", self.path), reason: reason.into() });
    }

    /// A field that may be an object or a list.
    fn structured(&self, name: &str) -> Option<&'a Value> {
        let nested = self.nested.and_then(|nested| nested.get(name));
        nested.or_else(|| self.object.get(name))
    }

    /// A field as it was written.
    fn member(&self, name: &str) -> Option<&'a [u8]> {
        if self.nested.is_some() {
            return self.object.get(name).and_then(Value::as_str).map(str::as_bytes);
        }
        let written = self.written?;
        // Of a field that is there twice the last one counts here as there.
        let members = self.members.get_or_init(|| serde_json::from_slice(written).unwrap_or_default());
        members.get(name).map(|member| member.get().as_bytes())
    }

    /// The items of a list as they were written; none where a `Value` has all there is to know of them.
    fn written_items(&self, name: &str, items: &[Value]) -> Vec<&'a RawValue> {
        let written = has_fraction(items).then(|| self.member(name)).flatten();
        written.and_then(|written| serde_json::from_slice(written).ok()).unwrap_or_default()
    }

    /// The digits of a number.
    fn digits(&self, name: &str, number: &Number) -> Option<String> {
        // An integer has all of them in any case.
        if !number.is_f64() {
            return Some(number.to_string());
        }
        self.member(name).and_then(|written| str::from_utf8(written).ok()).map(str::to_owned)
    }

    fn accept<T: FromField>(&mut self, name: &str, value: &Value) -> Option<T> {
        let read = match (self.nested, value) {
            (_, Value::Number(number)) if T::IS_DECIMAL => {
                self.digits(name, number).map_or_else(|| T::from_json(value), |digits| T::from_text(&digits))
            }
            (Some(nested), Value::String(text)) => T::from_text(text).or_else(|reason| {
                // A text is taken as it is, whatever it looks like; only what cannot be one is read as JSON.
                nested.get(name).map_or(Err(reason), T::from_json)
            }),
            _ => T::from_json(value),
        };
        read.map_err(|reason| self.refuse(name, reason)).ok()
    }
}

/// Whether there is a number of which a `Value` may not hold every digit.
fn has_fraction<'v>(values: impl IntoIterator<Item = &'v Value>) -> bool {
    values.into_iter().any(|value| match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => has_fraction(items),
        Value::Object(object) => has_fraction(object.values()),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    })
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The schema of a value that may be left out.
fn clearable<T: FromField>() -> Value {
    let schema = nullable(T::schema());
    if T::IS_TEXT { or_blank(schema) } else { schema }
}

fn describe(read: impl FnOnce(&mut Fields<'_>)) -> Value {
    let nothing = Map::new();
    let mut fields = Fields { shape: Some(Shape::default()), ..Fields::of(&nothing, None, String::new()) };
    read(&mut fields);
    fields.shape.unwrap_or_default().into_schema()
}
