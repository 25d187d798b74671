//! The errors in the API document (OpenAPI), and the headers of every response.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::web::response::schema::reference;

/// The headers of every response of a rate-limited operation, and these extra ones.
pub(super) fn response_headers(extra_names: &[&str]) -> Value {
    let common_names = ["X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    header_references(&[&common_names[..], extra_names].concat())
}

pub(super) fn header_references(names: &[&str]) -> Value {
    let headers = names.iter().map(|name| {
        let name = (*name).to_owned();
        let header = json!({"$ref": format!("#/components/headers/{name}")});
        (name, header)
    });
    Value::Object(headers.collect())
}

/// The name of a status's error response.
pub(super) fn error_name(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        408 => "RequestTimeout",
        409 => "Conflict",
        412 => "PreconditionFailed",
        413 => "PayloadTooLarge",
        415 => "UnsupportedMediaType",
        422 => "ValidationFailed",
        429 => "RateLimited",
        503 => "Unavailable",
        _ => "InternalError",
    }
}

/// The name of the `422` response of operations that may also refuse a valid body, because a contact cannot be reached.
pub(super) const REFUSED: &str = "Refused";

/// Every error response of the API, by name.
pub fn errors() -> BTreeMap<String, Value> {
    // Status, description, further headers, and the code and message of the example.
    let table: [(u16, &str, &[&str], &str, &str); 13] = [
        (400, "The request is malformed.", &[], "ERR_API_BAD_REQUEST", "the body is not valid JSON"),
        (401, "The token is missing or invalid.", &[], "ERR_API_UNAUTHORIZED", "the token is missing or invalid"),
        (
            403,
            "The company is inactive or its plan does not include the API, the token lacks the permission, or the page's \
             origin is not allowed.",
            &[],
            "ERR_API_FORBIDDEN_SCOPE",
            "the token has no permission for POST in the module tickets",
        ),
        (408, "The body was sent too slowly.", &[], "ERR_API_BAD_REQUEST", "the body was sent too slowly"),
        (404, "The record does not exist or belongs to another company.", &[], "ERR_API_NOT_FOUND", "record not found"),
        (
            409,
            "The request conflicts with the record's state, a unique value, or an idempotency key used for another request.",
            &[],
            "ERR_API_CONFLICT",
            "the contact has an open ticket on this channel",
        ),
        (
            412,
            "`If-Match` does not match the current version of the record; nothing was changed.",
            &[],
            "ERR_API_PRECONDITION_FAILED",
            "the record has been changed since it was read; read it again",
        ),
        (413, "The body is too large.", &[], "ERR_API_PAYLOAD_TOO_LARGE", "the body is larger than 1048576 bytes"),
        (
            415,
            "The endpoint does not support the body's content type.",
            &[],
            "ERR_API_UNSUPPORTED_MEDIA_TYPE",
            "the body must be application/json",
        ),
        (422, "A field is missing or invalid.", &[], "ERR_API_VALIDATION", "name is required"),
        (429, "Rate limit exceeded.", &["Retry-After"], "ERR_API_RATE_LIMITED", "rate limit exceeded; try again later"),
        (500, "An internal error.", &[], "ERR_API_INTERNAL", "internal error; request req_4f0XkLmZq2R8"),
        (
            503,
            "The service is temporarily unavailable; nothing was changed.",
            &["Retry-After"],
            "ERR_API_UNAVAILABLE",
            "the service is unavailable; try again",
        ),
    ];
    table
        .into_iter()
        .map(|(status, text, headers, code, message)| {
            let mut error = json!({"code": code, "message": message});
            let mut schema = "ApiError";
            if status == 422 {
                error["details"] =
                    json!([{"field": "name", "reason": "is required", "code": "required", "params": {}}]);
                schema = "ApiValidationError";
            }
            (error_name(status).to_owned(), error_response(text, headers, schema, &error))
        })
        .chain([(REFUSED.to_owned(), {
            let text = "A field is missing or invalid, or the contact cannot receive the message.";
            let message = "the contact cannot receive on this channel";
            error_response(text, &[], "ApiError", &json!({"code": "ERR_API_CONTACT_UNREACHABLE", "message": message}))
        })])
        .collect()
}

fn error_response(text: &str, headers: &[&str], schema: &str, error: &Value) -> Value {
    let content = json!({"application/json": {"schema": reference(schema), "example": {"error": error}}});
    json!({"description": text, "headers": response_headers(headers), "content": content})
}
