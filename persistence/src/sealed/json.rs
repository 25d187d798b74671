//! Secrets within JSON: each is sealed by itself, where it is, so that the rest stays readable for SQL.

use serde::Serialize;
use serde_json::{Map, Value};

use super::secret::{OPEN, while_sealing};
use super::{KeyError, Keyring, Location};

/// The one key of the object that a sealed secret is in a column.
pub(crate) const SEALED: &str = "$sealed";

/// A secret that did not open.
#[derive(Debug)]
pub struct Lost {
    /// Which one, as `settings.accessToken`.
    pub field: String,
    /// Why.
    pub error: KeyError,
}

impl Keyring {
    /// The value as JSON, with every [`super::Secret`] in it sealed.
    ///
    /// # Errors
    /// When it cannot be written as JSON, or there is no key and a secret in it.
    pub fn seal_json(&self, place: &Location<'_>, value: &impl Serialize) -> Result<Value, KeyError> {
        let mut value =
            while_sealing(|| serde_json::to_value(value)).map_err(|error| KeyError::Unsealable(error.to_string()))?;
        self.seal_within(place, "", &mut value)?;
        Ok(value)
    }

    /// Opens every secret of what [`Keyring::seal_json`] made. What does not open is taken out and answered.
    #[must_use]
    pub fn open_json(&self, place: &Location<'_>, stored: &mut Value) -> Vec<Lost> {
        let mut lost = Vec::new();
        self.open_within(place, "", stored, &mut lost);
        lost
    }

    fn seal_within(&self, place: &Location<'_>, field: &str, value: &mut Value) -> Result<(), KeyError> {
        match value {
            Value::Object(object) => {
                if let Some(plain) = the_one(object, OPEN) {
                    let sealed = self.seal_field(place, field, plain.as_bytes())?;
                    *value = Value::Object(Map::from_iter([(SEALED.to_owned(), Value::String(sealed))]));
                    return Ok(());
                }
                object.iter_mut().try_for_each(|(key, value)| self.seal_within(place, &below(field, key), value))
            }
            // A place in a list is none to be bound to: those before it may go.
            Value::Array(values) => values.iter_mut().try_for_each(|value| self.seal_within(place, field, value)),
            _ => Ok(()),
        }
    }

    fn open_within(&self, place: &Location<'_>, field: &str, value: &mut Value, lost: &mut Vec<Lost>) -> bool {
        match value {
            Value::Object(object) => {
                let Some(sealed) = the_one(object, SEALED) else {
                    object.retain(|key, value| self.open_within(place, &below(field, key), value, lost));
                    return true;
                };
                let opened = self.open_field(place, field, sealed);
                match opened.and_then(|plain| String::from_utf8(plain).map_err(|_| KeyError::Damaged)) {
                    Ok(plain) => {
                        *value = Value::Object(Map::from_iter([(OPEN.to_owned(), Value::String(plain))]));
                        true
                    }
                    Err(error) => {
                        lost.push(Lost { field: field.to_owned(), error });
                        false
                    }
                }
            }
            Value::Array(values) => {
                values.retain_mut(|value| self.open_within(place, field, value, lost));
                true
            }
            _ => true,
        }
    }
}

/// How many sealed secrets are in it.
pub(crate) fn sealed_in(value: &Value) -> usize {
    match value {
        Value::Object(object) if the_one(object, SEALED).is_some() => 1,
        Value::Object(object) => object.values().map(sealed_in).sum(),
        Value::Array(values) => values.iter().map(sealed_in).sum(),
        _ => 0,
    }
}

/// How many open secrets are in a value.
pub(crate) fn secrets_in(value: &impl Serialize) -> usize {
    fn count(value: &Value) -> usize {
        match value {
            Value::Object(object) if the_one(object, OPEN).is_some() => 1,
            Value::Object(object) => object.values().map(count).sum(),
            Value::Array(values) => values.iter().map(count).sum(),
            _ => 0,
        }
    }
    while_sealing(|| serde_json::to_value(value)).map_or(0, |value| count(&value))
}

/// The value without the secrets in it, sealed or open, for whoever may see all but them.
pub fn without_secrets(value: &Value) -> Value {
    let is_secret = |value: &Value| {
        value.as_object().is_some_and(|object| the_one(object, SEALED).or(the_one(object, OPEN)).is_some())
    };
    match value {
        Value::Object(object) => {
            let shown = object.iter().filter(|(_, value)| !is_secret(value));
            Value::Object(shown.map(|(key, value)| (key.clone(), without_secrets(value))).collect())
        }
        Value::Array(values) => values.iter().filter(|value| !is_secret(value)).map(without_secrets).collect(),
        other => other.clone(),
    }
}

/// The text of an object that has this key only.
fn the_one<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).filter(|_| object.len() == 1)?.as_str()
}

fn below(field: &str, key: &str) -> String {
    if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") }
}
