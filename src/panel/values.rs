//! Values that people type, and programs never send.

use std::fmt;

use hotline_persistence::password;
use serde_json::{Value, json};

use crate::web::request::values::FromField;

/// Maximum size of a body that is read before a person has signed in, in bytes: enough for the longest fields with
/// every character escaped, and so little that all connections of one address together need 32 MiB.
pub(super) const UNAUTHENTICATED_BODY_BYTES_MAX: usize = 16 * 1024;

/// A typed secret that is compared with a stored one: an existing password, a code, or a link's token.
pub struct TypedSecret(pub String);

impl fmt::Debug for TypedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedSecret(…)")
    }
}

impl FromField for TypedSecret {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a string")?;
        if text.is_empty() {
            Err("must not be blank".to_owned())
        } else if text.len() > password::BYTES_MAX {
            Err(format!("must have at most {} bytes", password::BYTES_MAX))
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    fn schema() -> Value {
        json!({"type": "string", "format": "password", "writeOnly": true, "minLength": 1, "maxLength": password::BYTES_MAX})
    }
}
