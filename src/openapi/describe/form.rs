//! The schema of a body that may be a form with files.

use serde_json::{Value, json};

use crate::web::request::bounds::FILES_PART;

/// The name of a form's schema.
pub fn form_name(body: &str) -> String {
    format!("{body}Form")
}

/// The form's schema: the body's schema, with the files (at most `files_max`) as another field.
pub fn form_schema(mut schema: Value, files_max: usize) -> Value {
    schema["properties"][FILES_PART] = json!({
        "type": "array",
        "description": "The files, one per part of this name. Each becomes a message",
        // `format` is from OpenAPI 3.0, but most client generators still use it.
        "items": {
            "type": "string",
            "format": "binary",
            "contentMediaType": "application/octet-stream",
            "example": "the bytes of a file",
        },
        "minItems": 1,
        "maxItems": files_max,
    });
    schema
}
