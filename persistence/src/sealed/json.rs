//! Secrets within JSON: each is sealed individually in place, so that SQL can still read the rest.

use serde::Serialize;
use serde_json::{Map, Value};

use super::secret::{UNSEALED, with_sealing};
use super::{KeyError, Keyring, Location, is_sealed_with};

/// The only key of the object that represents a sealed secret in a column.
pub(crate) const SEALED: &str = "$sealed";

/// A secret that could not be opened.
#[derive(Debug)]
pub struct LostSecret {
    /// Its path, such as `settings.accessToken`.
    pub field: String,
    /// The cause.
    pub error: KeyError,
}

impl Keyring {
    /// The value as JSON, with every [`super::Secret`] in it sealed.
    ///
    /// # Errors
    /// When it cannot be serialized as JSON, or it contains a secret and there is no key.
    pub fn seal_json(&self, location: &Location<'_>, value: &impl Serialize) -> Result<Value, KeyError> {
        let mut value =
            with_sealing(|| serde_json::to_value(value)).map_err(|error| KeyError::Unsealable(error.to_string()))?;
        // At this point each secret is an object with the key `UNSEALED`.
        self.seal_within(location, "", &mut value)?;
        Ok(value)
    }

    /// Opens every secret that [`Keyring::seal_json`] sealed. Secrets that cannot be opened are removed; their
    /// paths and errors are returned.
    #[must_use]
    pub fn open_json(&self, location: &Location<'_>, stored: &mut Value) -> Vec<LostSecret> {
        let mut lost_secrets = Vec::new();
        self.open_within(location, "", stored, &mut lost_secrets);
        lost_secrets
    }

    fn seal_within(&self, location: &Location<'_>, field: &str, value: &mut Value) -> Result<(), KeyError> {
        match value {
            Value::Object(object) => {
                if let Some(plain) = text_of_only_key(object, UNSEALED) {
                    let sealed = self.seal_field(location, field, plain.as_bytes())?;
                    *value = Value::Object(Map::from_iter([(SEALED.to_owned(), Value::String(sealed))]));
                    return Ok(());
                }
                object
                    .iter_mut()
                    .try_for_each(|(key, value)| self.seal_within(location, &field_path(field, key), value))
            }
            // Secrets are not bound to their index in a list: earlier elements may be removed.
            Value::Array(values) => values.iter_mut().try_for_each(|value| self.seal_within(location, field, value)),
            _ => Ok(()),
        }
    }

    /// Opens the secrets within `value`; `false` when it is a secret itself and could not be opened.
    fn open_within(
        &self,
        location: &Location<'_>,
        field: &str,
        value: &mut Value,
        lost_secrets: &mut Vec<LostSecret>,
    ) -> bool {
        match value {
            Value::Object(object) => {
                let Some(sealed) = text_of_only_key(object, SEALED) else {
                    object
                        .retain(|key, value| self.open_within(location, &field_path(field, key), value, lost_secrets));
                    return true;
                };
                let result = self.open_field(location, field, sealed);
                match result.and_then(|plain| String::from_utf8(plain).map_err(|_| KeyError::Damaged)) {
                    Ok(plain) => {
                        *value = Value::Object(Map::from_iter([(UNSEALED.to_owned(), Value::String(plain))]));
                        true
                    }
                    Err(error) => {
                        lost_secrets.push(LostSecret { field: field.to_owned(), error });
                        false
                    }
                }
            }
            Value::Array(values) => {
                values.retain_mut(|value| self.open_within(location, field, value, lost_secrets));
                true
            }
            _ => true,
        }
    }
}

/// Removes every secret that is sealed with the key of this id; returns how many.
pub(crate) fn remove_sealed(value: &mut Value, key_id: &str) -> usize {
    let mut removed = 0;
    // Returns false if the value is itself such a secret.
    let mut remove_within = |value: &mut Value| {
        let sealed = value.as_object().and_then(|object| text_of_only_key(object, SEALED));
        let is_removed = sealed.is_some_and(|sealed| is_sealed_with(sealed, key_id));
        removed += if is_removed { 1 } else { remove_sealed(value, key_id) };
        !is_removed
    };
    match value {
        Value::Object(object) => object.retain(|_, value| remove_within(value)),
        Value::Array(values) => values.retain_mut(remove_within),
        _ => {}
    }
    removed
}

/// Number of sealed secrets in the value.
pub(crate) fn count_sealed(value: &Value) -> usize {
    count_objects(value, SEALED)
}

/// Number of unsealed secrets in the value.
pub(crate) fn count_unsealed(value: &impl Serialize) -> usize {
    with_sealing(|| serde_json::to_value(value)).map_or(0, |value| count_objects(&value, UNSEALED))
}

/// Number of objects in the value whose only key is this one.
fn count_objects(value: &Value, key: &str) -> usize {
    match value {
        Value::Object(object) if text_of_only_key(object, key).is_some() => 1,
        Value::Object(object) => object.values().map(|value| count_objects(value, key)).sum(),
        Value::Array(values) => values.iter().map(|value| count_objects(value, key)).sum(),
        _ => 0,
    }
}

/// The value without its secrets, sealed or not, for readers who may see everything else.
pub fn without_secrets(value: &Value) -> Value {
    let is_secret = |value: &Value| {
        value
            .as_object()
            .is_some_and(|object| text_of_only_key(object, SEALED).or(text_of_only_key(object, UNSEALED)).is_some())
    };
    match value {
        Value::Object(object) => {
            let visible = object.iter().filter(|(_, value)| !is_secret(value));
            Value::Object(visible.map(|(key, value)| (key.clone(), without_secrets(value))).collect())
        }
        Value::Array(values) => values.iter().filter(|value| !is_secret(value)).map(without_secrets).collect(),
        other => other.clone(),
    }
}

/// Marks each sealed secret as unsealed without decrypting it, so that the value can be deserialized: the result shows
/// which secrets are set, not what they contain.
pub(crate) fn mark_as_unsealed(value: &Value) -> Value {
    match value {
        Value::Object(object) => match text_of_only_key(object, SEALED) {
            Some(sealed) => Value::Object(Map::from_iter([(UNSEALED.to_owned(), Value::String(sealed.to_owned()))])),
            None => Value::Object(object.iter().map(|(key, value)| (key.clone(), mark_as_unsealed(value))).collect()),
        },
        Value::Array(values) => values.iter().map(mark_as_unsealed).collect(),
        other => other.clone(),
    }
}

/// The text of an object whose only key is this one; `None` for any other object.
fn text_of_only_key<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).filter(|_| object.len() == 1)?.as_str()
}

fn field_path(field: &str, key: &str) -> String {
    if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") }
}
