//! A credential in memory.

use std::cell::Cell;
use std::fmt;

use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The only key of the object that represents an unsealed secret on the way to or from its sealed form. PostgreSQL text
/// cannot contain the key's NUL character, so if such an object ever reached a column, it would be refused.
pub(super) const UNSEALED: &str = "\0open";

/// A credential. It is stored sealed, and can be serialized only within `with_sealing`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

thread_local! {
    /// Whether a value is being serialized in order to be sealed.
    static SEALING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, within which secrets can be serialized.
pub(super) fn with_sealing<T>(work: impl FnOnce() -> T) -> T {
    /// Restores the flag, even if `work` panics.
    struct ResetOnDrop(bool);
    impl Drop for ResetOnDrop {
        fn drop(&mut self) {
            SEALING.set(self.0);
        }
    }
    let _reset = ResetOnDrop(SEALING.replace(true));
    work()
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !SEALING.get() {
            return Err(S::Error::custom("a secret can only be serialized to be sealed"));
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(UNSEALED, &self.0)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            // As stored before secrets were sealed.
            serde_json::Value::String(plain) => Ok(Self(plain)),
            serde_json::Value::Object(mut opened) if opened.len() == 1 => match opened.remove(UNSEALED) {
                Some(serde_json::Value::String(plain)) => Ok(Self(plain)),
                _ => Err(D::Error::custom("a secret is still sealed")),
            },
            _ => Err(D::Error::custom("a secret must be a string")),
        }
    }
}
