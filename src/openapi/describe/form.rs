//! The schema of a body that may come as a form, with files.

use serde_json::{Value, json};

use crate::web::bounds::FILES_PART;

/// What the schema of a form is called.
pub fn form_name(body: &str) -> String {
    format!("{body}Form")
}

/// The same fields, and so many files at most.
pub fn form_schema(mut schema: Value, files_max: usize) -> Value {
    schema["properties"][FILES_PART] = json!({
        "type": "array",
        "description": "The files, each in a part of this name; each becomes a message",
        // `format` is the word of OpenAPI 3.0, which most generators of clients still go by.
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
