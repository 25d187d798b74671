//! Reads a JSON object field by field, and collects everything that is wrong with it before saying so.

use hotline_actors::FieldError;
use serde_json::{Map, Value};

use super::values::Accepted;
use super::{Answer, ApiError};

/// A body that is read field by field.
pub trait Input: Sized {
    /// Whether no body at all means an empty object.
    const MAY_BE_EMPTY: bool = false;

    /// Reads every field, then builds the value. `None` when a required field failed; the reason is in `fields`.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;
}

/// A field that may be left alone, cleared, or set.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch<T> {
    /// Not in the body.
    Absent,
    /// `null`.
    Null,
    /// A value.
    Value(T),
}

impl<T> Patch<T> {
    /// None when absent, `Some(None)` when null.
    pub fn into_option(self) -> Option<Option<T>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Value(value) => Some(Some(value)),
        }
    }
}

/// The fields of one object, and what was wrong with those that were read.
pub struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: String,
    errors: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    /// The fields of a body.
    pub fn of(object: &'a Map<String, Value>) -> Self {
        Self { object, path: String::new(), errors: Vec::new() }
    }

    /// Reads a whole body.
    ///
    /// # Errors
    /// `422` with every field that is missing or not accepted.
    pub fn parse<T: Input>(body: &Value) -> Answer<T> {
        let Some(object) = body.as_object() else {
            let reason = "must be an object".to_owned();
            return Err(ApiError::validation(&[FieldError { field: "body".to_owned(), reason }]));
        };
        let mut fields = Fields::of(object);
        match T::read(&mut fields) {
            Some(input) if fields.errors.is_empty() => Ok(input),
            _ => Err(ApiError::validation(&fields.errors)),
        }
    }

    /// A field that must be there.
    pub fn required<T: Accepted>(&mut self, name: &str) -> Option<T> {
        match self.object.get(name) {
            None | Some(Value::Null) => {
                self.refuse(name, "is required");
                None
            }
            Some(value) => self.accept(name, value),
        }
    }

    /// A field that may be absent; `null` means the same.
    pub fn optional<T: Accepted>(&mut self, name: &str) -> Option<T> {
        match self.object.get(name) {
            None | Some(Value::Null) => None,
            Some(value) => self.accept(name, value),
        }
    }

    /// A field whose absence and `null` mean different things.
    pub fn patch<T: Accepted>(&mut self, name: &str) -> Patch<T> {
        match self.object.get(name) {
            None => Patch::Absent,
            Some(Value::Null) => Patch::Null,
            Some(value) => self.accept(name, value).map_or(Patch::Absent, Patch::Value),
        }
    }

    /// An object inside this one, read by `read`; absent and `null` are none.
    pub fn object<T>(&mut self, name: &str, read: impl FnOnce(&mut Fields<'_>) -> Option<T>) -> Option<T> {
        match self.object.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::Object(object)) => {
                let mut inner = Fields { object, path: format!("{}{name}.", self.path), errors: Vec::new() };
                let read = read(&mut inner);
                self.errors.append(&mut inner.errors);
                read
            }
            Some(_) => {
                self.refuse(name, "must be an object");
                None
            }
        }
    }

    /// Whether the field is in the body, with any value but `null`.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Notes that a field is not accepted.
    pub fn refuse(&mut self, name: &str, reason: impl Into<String>) {
        self.errors.push(FieldError { field: format!("{}{name}", self.path), reason: reason.into() });
    }

    fn accept<T: Accepted>(&mut self, name: &str, value: &Value) -> Option<T> {
        T::from_json(value).map_err(|reason| self.refuse(name, reason)).ok()
    }
}
