//! The API document (OpenAPI 3.1), generated from the route table and the handlers' signatures: it describes exactly
//! what handlers take and return, so it cannot deviate from the code.

mod describe;
mod table;
mod texts;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::web::{Bytes, Data, Path};
use serde_json::{Map, Value, json};

pub use describe::{Access, DocumentedResponse, Operation, OperationPart, ResponseDescription, form_name, form_schema};
pub use table::{PathEntry, Table};
use texts::Texts;

use crate::web::response::error::{CODES, reason_codes};
use crate::web::response::schema::{Schemas, reference};

/// The path of the API document.
pub const PATH: &str = "/api/v1/openapi.json";

/// The path of the panel's API document.
pub const PANEL_PATH: &str = "/panel/api/v1/openapi.json";

/// The parts that differ between the documents.
struct DocumentParts {
    title: &'static str,
    introduction: &'static str,
    /// The security schemes; `default_scheme` is the default of every operation.
    security: Value,
    default_scheme: &'static str,
}

/// The API document of these operations, webhook requests and schemas.
pub fn document(operations: Vec<Operation>, webhooks: Map<String, Value>, schemas: Schemas) -> Value {
    let bearer = |text: &str| json!({"type": "http", "scheme": "bearer", "description": text});
    let security = json!({
        "token": bearer("A company's API token: `sk_live_` and 32 characters."),
        "visitor": bearer("A visitor session's token, returned by `openVisitorSession`: `vt_` and 32 characters."),
    });
    let parts = DocumentParts { title: "Hotline", introduction: INTRODUCTION, security, default_scheme: "token" };
    let mut document = build_document(&parts, operations, schemas);
    document["webhooks"] = Value::Object(webhooks);
    document
}

/// The document of the panel's API.
pub fn panel_document(operations: Vec<Operation>, schemas: Schemas) -> Value {
    let security = json!({
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "__Host-hotline",
            "description": "The session of a signed-in person. Without HTTPS the cookie is named `hotline_session`.",
        },
    });
    build_document(
        &DocumentParts {
            title: "Hotline panel",
            introduction: PANEL_INTRODUCTION,
            security,
            default_scheme: "session",
        },
        operations,
        schemas,
    )
}

fn build_document(parts: &DocumentParts, operations: Vec<Operation>, mut schemas: Schemas) -> Value {
    let texts = Texts::read();
    schemas.extend(common_schemas());
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations {
        let tag = operation.tag_name();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let method = operation.method.to_lowercase();
        paths.entry(operation.full_path()).or_default().insert(method, operation.into_value(&texts));
    }
    schemas.iter_mut().for_each(|(name, schema)| texts.describe(name, schema));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": parts.title,
            "version": env!("CARGO_PKG_VERSION"),
            "description": parts.introduction,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        // Not all paths are below `/api/v1`, so clients get the service's origin.
        "servers": [{"url": "/"}],
        "security": [{parts.default_scheme: []}],
        "tags": tags.iter().map(|tag| json!({"name": tag, "description": texts.tag(tag)})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": parts.security,
            "headers": headers(),
            "responses": describe::errors(),
            "schemas": schemas,
        },
    })
}

/// The introduction of the API document.
const INTRODUCTION: &str = "Customer service and CRM. Successful responses are `{\"data\": …}`, errors are `{\"error\": \
     {code, message, details}}`. Lists accept `page` or `cursor`, `perPage` and `order`. A `POST` or `PUT` with an \
     `Idempotency-Key` takes effect once, even if it is repeated. Unknown fields and parameters are ignored. Changes to v1 are \
     backward compatible.\n\nTexts are trimmed before they are validated; a blank optional text is the same as `null`. \
     Control characters other than tab, line feed and carriage return are rejected with `422`. In a `POST`, `null` is the \
     same as omitting the field. Amounts and quantities have at most four decimals and are computed exactly. If a body \
     requires one of several fields, its description says so.";

/// The introduction of the panel's document.
const PANEL_INTRODUCTION: &str = "The panel's API: the endpoints of the public API, authorized by the profile of the signed-in \
     person instead of a token, and endpoints for people only. Changes are accepted only from the panel's own pages. \
     Administrators of the installation select a company with the header `Hotline-Company`. This API is internal: it may \
     change in any release.";

fn common_schemas() -> Schemas {
    let error = error_schema(
        "An error: `code` for programs, `message` for people.",
        json!({"type": "string", "enum": CODES, "example": "ERR_API_NOT_FOUND"}),
        "record not found",
        json!({"description": "Details for programs, such as the conflicting record or the invalid field."}),
    );
    let validation_error = error_schema(
        "A validation error that lists every missing or invalid field.",
        json!({"type": "string", "enum": ["ERR_API_VALIDATION"]}),
        "products[2].unitPrice must be a number",
        json!({"type": "array", "items": reference("FieldError")}),
    );
    [
        ("PageMeta", page_meta_schema()),
        ("ApiError", error),
        ("ApiValidationError", validation_error),
        ("FieldError", field_error_schema()),
    ]
    .map(|(name, schema)| (name.to_owned(), schema))
    .into()
}

fn page_meta_schema() -> Value {
    json!({
        "type": "object",
        "description": "Pagination of a list.",
        "properties": {
            "page": {"type": "integer", "description": "The page number, from 1. Omitted with `cursor`.", "example": 1},
            "perPage": {"type": "integer", "description": "Maximum page size.", "example": 100},
            "hasMore": {"type": "boolean", "description": "Whether there are more pages.", "example": false},
            "nextCursor": {
                "type": ["string", "null"],
                "description": "With `cursor`: the `cursor` of the next page; `null` on the last page.",
                "example": "2kq1v7cB0n4mXr9sJtYpZWkAAAAAAAAABw",
            },
        },
        "required": ["perPage", "hasMore"],
    })
}

fn field_error_schema() -> Value {
    json!({
        "type": "object",
        "description": "An invalid field.",
        "properties": {
            "field": {"type": "string", "description": "The path in the body, or the parameter's name.", "example": "products[2].unitPrice"},
            "reason": {"type": "string", "description": "A phrase that follows the field's name.", "example": "must be a number"},
            "code": {
                "type": "string",
                "enum": reason_codes(),
                "description": "A code for programs and translations. New codes may be added.",
                "example": "not_a_number",
            },
            "params": {
                "type": "object",
                "additionalProperties": true,
                "description": "Parameters of the reason, such as `max` and `unit` for `too_long`, or `options` for `not_an_option`.",
                "example": {},
            },
        },
        "required": ["field", "reason", "code", "params"],
    })
}

/// The schema of an error, without references: many client generators lose parts of composed schemas.
fn error_schema(text: &str, mut code: Value, message: &str, mut details: Value) -> Value {
    code["description"] = json!("A stable identifier for programs.");
    if details.get("description").is_none() {
        details["description"] = json!("Every invalid field.");
    }
    json!({
        "type": "object",
        "description": text,
        "properties": {"error": {
            "type": "object",
            "description": "The error.",
            "properties": {
                "code": code,
                "message": {"type": "string", "description": "A message for people; its wording may change.", "example": message},
                "details": details,
            },
            "required": ["code", "message"],
        }},
        "required": ["error"],
    })
}

fn headers() -> Value {
    let number = |text: &str| json!({"description": text, "schema": {"type": "integer"}});
    json!({
        "X-Request-Id": {"description": "The request's id in the logs.", "schema": {"type": "string"}},
        "RateLimit-Limit": number("Requests allowed per minute."),
        "RateLimit-Remaining": number("Requests remaining now."),
        "RateLimit-Reset": number("Seconds until the full limit is available again."),
        "Retry-After": number("Seconds to wait before retrying."),
        "ETag": {
            "description": "The version of the record, for `If-Match`: its `updatedAt` in quotation marks.",
            "schema": {"type": "string"},
            "example": "\"2026-01-31T12:00:00.000Z\"",
        },
        "Allow": {"description": "The allowed methods.", "schema": {"type": "string"}},
        "Idempotent-Replay": {
            "description": "`true` if the response was replayed for the same `Idempotency-Key`.",
            "schema": {"type": "string", "enum": ["true"]},
        },
    })
}

/// A document that is generated at the first request, because few clients request it, and startup should be fast.
type LazyDocument = LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>;

/// Both documents; each is generated once and then served to all requests.
pub struct Documents {
    api: LazyDocument,
    panel: LazyDocument,
}

impl Documents {
    /// The documents of the API and of the panel's API.
    pub fn of(api: fn() -> Value, panel: fn() -> Value) -> Self {
        let lazy = |document: fn() -> Value| LazyDocument::new(Box::new(move || Bytes::from(document().to_string())));
        Self { api: lazy(api), panel: lazy(panel) }
    }
}

/// `GET /api/v1/openapi.json`: the document; no token is required.
pub async fn show(documents: Data<Documents>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(Bytes::clone(&documents.api))
}

/// `GET /panel/api/v1/openapi.json`: the panel's document; no session is required.
pub async fn show_panel(documents: Data<Documents>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(Bytes::clone(&documents.panel))
}

/// `GET /docs/…`: the API document as web pages, with the embedded Swagger UI.
pub async fn docs(file: Path<String>) -> HttpResponse {
    // The validator's badge would reveal the address of this service to a third party.
    let config = utoipa_swagger_ui::Config::new([PATH]).validator_url("none");
    match utoipa_swagger_ui::serve(&file, std::sync::Arc::new(config)) {
        Ok(Some(file)) => HttpResponse::Ok().content_type(file.content_type).body(into_bytes(file.bytes)),
        Ok(None) => HttpResponse::NotFound().finish(),
        Err(error) => {
            tracing::error!(%error, "could not read a documentation file");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// Converts the content of an embedded file without copying it.
fn into_bytes(bytes: Cow<'static, [u8]>) -> Bytes {
    match bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}

/// `GET /docs`: redirects to `/docs/`, where the page's relative links work.
pub async fn redirect_to_docs() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header(("location", "/docs/")).finish()
}
