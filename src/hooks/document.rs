//! The hooks in the API document.

use serde_json::{Value, json};

use super::signature::HEADER;
use crate::metrics::Tally;
use crate::openapi::{Operation, ResponseDescription};
use crate::web::response::reply::{Json, Reply};
use crate::web::response::schema::Schemas;

/// The response to a provider that verifies the URL: its challenge, unchanged.
pub struct Challenge;

/// The response to a call: the number of its parts by outcome.
pub struct Received;

/// Describes what both operations have in common.
fn describe_shared(operation: &mut Operation) {
    operation.path_ids.push(json!({
        "type": "string",
        "description": "The channel's public key, as `hotline channel list` shows it.",
        "example": "ch_4f0XkLmZq2R8vTn1YbC7dGhJ5sWeA9uP",
    }));
    operation.errors.extend([400, 401, 404, 429, 500, 503]);
}

impl ResponseDescription for Challenge {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        describe_shared(operation);
        let parameter = |name: &str, text: &str, example: &str| {
            (name.to_owned(), json!({"type": "string", "description": text, "example": example}))
        };
        operation.query = vec![
            parameter("hub.mode", "Must be `subscribe`.", "subscribe"),
            parameter("hub.verify_token", "The channel's verify token.", "my-verify-token"),
            parameter("hub.challenge", "The challenge to return.", "1158201444"),
        ];
        operation.content_type = "text/plain";
        operation.success =
            (200, Some(json!({"type": "string", "description": "The challenge.", "example": "1158201444"})));
    }
}

impl ResponseDescription for Received {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        describe_shared(operation);
        operation.parameters.push(json!({
            "name": HEADER.as_str(),
            "in": "header",
            "description": "`sha256=` and the HMAC-SHA256 of the body under the channel's app secret, in hexadecimal digits.",
            "schema": {"type": "string"},
            "example": "sha256=b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
        }));
        schemas.insert(CALL.to_owned(), call_schema());
        operation.body = Some((CALL.into(), call_schema()));
        operation.errors.extend([403, 408, 413]);
        operation.success = (Json::<Tally>::STATUS, Json::<Tally>::schema(schemas));
    }
}

/// The name of the body's schema.
const CALL: &str = "ProviderCall";

fn call_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "object": {"type": "string", "example": "whatsapp_business_account"},
            "entry": {"type": "array", "items": {"type": "object"}, "example": []},
        },
    })
}
