//! A value within a JSON object, with its path for error messages.

use std::ops::RangeInclusive;

use hotline_actors::FieldError;
use serde_json::Value;

use crate::web_address;

/// Maximum length of a URL: all browsers support this many characters.
pub(super) const URL_CHARACTERS_MAX: usize = 2_000;

/// A value, if it is present, with its path.
#[derive(Clone, Debug)]
pub(super) struct FieldValue<'a> {
    value: Option<&'a Value>,
    path: String,
}

/// The collected errors.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<FieldError>);

impl Errors {
    pub(super) fn refuse(&mut self, field: &FieldValue<'_>, reason: impl Into<String>) {
        self.0.push(FieldError { field: field.path.clone(), reason: reason.into() });
    }

    pub(super) fn into_fields(self) -> Vec<FieldError> {
        self.0
    }
}

impl<'a> FieldValue<'a> {
    pub(super) fn of(interactive: &'a Value) -> Self {
        Self { value: Some(interactive), path: "interactive".to_owned() }
    }

    /// A member of the object; `null` counts as absent.
    pub(super) fn at(&self, name: &str) -> Self {
        let value = self.value.and_then(|value| value.get(name)).filter(|value| !value.is_null());
        Self { value, path: format!("{}.{name}", self.path) }
    }

    pub(super) fn is_present(&self) -> bool {
        self.value.is_some()
    }

    /// A required text that must not be blank and may have at most this many characters. A blank or too long text is
    /// refused, and returned anyway; `None`: there is no text.
    pub(super) fn text(&self, characters_max: usize, errors: &mut Errors) -> Option<&'a str> {
        let Some(value) = self.value else {
            errors.refuse(self, "is required");
            return None;
        };
        let Some(text) = value.as_str() else {
            errors.refuse(self, "must be a string");
            return None;
        };
        if text.trim().is_empty() {
            errors.refuse(self, "must not be blank");
        } else if text.chars().count() > characters_max {
            errors.refuse(self, format!("must have at most {characters_max} characters"));
        }
        Some(text)
    }

    /// Checks an optional text like a required one.
    pub(super) fn optional_text(&self, characters_max: usize, errors: &mut Errors) {
        if self.is_present() {
            self.text(characters_max, errors);
        }
    }

    /// A required text with only one allowed value.
    pub(super) fn constant(&self, text: &str, errors: &mut Errors) {
        match self.value {
            None => errors.refuse(self, "is required"),
            Some(value) if value == text => {}
            Some(_) => errors.refuse(self, format!("must be one of {text}")),
        }
    }

    /// A required object. If it is missing, its members are not checked.
    pub(super) fn object(&self, errors: &mut Errors) -> Option<&Self> {
        match self.value {
            Some(Value::Object(_)) => return Some(self),
            Some(_) => errors.refuse(self, "must be an object"),
            None => errors.refuse(self, "is required"),
        }
        None
    }

    /// The objects of a required list. Items of other types are reported and left out.
    pub(super) fn objects(&self, errors: &mut Errors) -> Vec<Self> {
        let items = match self.value {
            Some(Value::Array(items)) => items,
            Some(_) => {
                errors.refuse(self, "must be a list");
                return Vec::new();
            }
            None => {
                errors.refuse(self, "is required");
                return Vec::new();
            }
        };
        let field = |(index, item)| Self { value: Some(item), path: format!("{}[{index}]", self.path) };
        let mut fields: Vec<Self> = items.iter().enumerate().map(field).collect();
        fields.retain(|field| field.object(errors).is_some());
        fields
    }

    /// The objects of a required list, whose number of items must be in the range `count`.
    pub(super) fn objects_within(&self, count: RangeInclusive<usize>, noun: &str, errors: &mut Errors) -> Vec<Self> {
        let length = self.value.and_then(Value::as_array).map(Vec::len);
        if length.is_some_and(|length| !count.contains(&length)) {
            errors.refuse(self, format!("must have {} to {} {noun}", count.start(), count.end()));
            return Vec::new();
        }
        self.objects(errors)
    }

    /// A required web address.
    pub(super) fn url(&self, errors: &mut Errors) {
        let Some(text) = self.text(URL_CHARACTERS_MAX, errors) else { return };
        if web_address::parse(text).is_err() && !text.trim().is_empty() {
            errors.refuse(self, "must be an http or https URL");
        }
    }
}
