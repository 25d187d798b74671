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

pub use describe::{Access, Described, Describes, Operation, Written, form_name, form_schema};
pub use table::{At, Table};
use texts::Texts;

use crate::web::error::{CODES, reason_codes};
use crate::web::schema::{Schemas, reference};

/// The path of the API document.
pub const PATH: &str = "/api/v1/openapi.json";

/// The path of the panel's API document.
pub const PANEL_PATH: &str = "/panel/api/v1/openapi.json";

/// The parts that differ between the documents.
struct Book {
    title: &'static str,
    introduction: &'static str,
    /// The security schemes; `first` is the default of every operation.
    security: Value,
    first: &'static str,
}

/// The API document of these operations, webhook requests and schemas.
pub fn document(operations: Vec<Operation>, webhooks: Map<String, Value>, schemas: Schemas) -> Value {
    let token = |text: &str| json!({"type": "http", "scheme": "bearer", "description": text});
    let security = json!({
        "token": token("A company's API token: `sk_live_` and 32 characters."),
        "visitor": token("The token of one visitor's session, `vt_` and 32 characters, as `openVisitorSession` answers it."),
    });
    let book = Book { title: "Hotline", introduction: INTRODUCTION, security, first: "token" };
    let mut document = written(&book, operations, schemas);
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
            "description": "The session of somebody who has signed in; without https the cookie is called `hotline_session`.",
        },
    });
    written(
        &Book { title: "Hotline panel", introduction: PANEL_INTRODUCTION, security, first: "session" },
        operations,
        schemas,
    )
}

fn written(book: &Book, operations: Vec<Operation>, mut schemas: Schemas) -> Value {
    let texts = Texts::read();
    schemas.extend(common_schemas());
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut tags: Vec<&str> = Vec::new();
    for operation in operations {
        let tag = operation.listed_under();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let method = operation.method.to_lowercase();
        paths.entry(operation.whole_path()).or_default().insert(method, operation.into_value(&texts));
    }
    schemas.iter_mut().for_each(|(name, schema)| texts.describe(name, schema));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": book.title,
            "version": env!("CARGO_PKG_VERSION"),
            "description": book.introduction,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        // Not all paths are below `/api/v1`, so clients get the service's origin.
        "servers": [{"url": "/"}],
        "security": [{book.first: []}],
        "tags": tags.iter().map(|tag| json!({"name": tag, "description": texts.tag(tag)})).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": book.security,
            "headers": headers(),
            "responses": describe::errors(),
            "schemas": schemas,
        },
    })
}

/// The introduction of the API document.
const INTRODUCTION: &str = "Customer service and CRM. A success is `{\"data\": …}`, an error `{\"error\": {code, \
     message, details}}`. Lists take `page` or `cursor`, `perPage` and `order`. A `POST` or `PUT` with an `Idempotency-Key` \
     happens once, however often it is sent. Unknown fields and parameters are ignored; v1 only ever grows.\n\nTexts are \
     trimmed before anything else: blanks at their ends count for no length, and a blank optional text is the same as \
     `null`. A text with a character of U+0000 to U+001F but tab, line feed and carriage return is refused with `422`. \
     On `POST`, `null` in a field is the same as leaving it out. Numbers of money and quantity have at most four \
     decimals, and are read and computed exactly. Where a body needs one of several fields, its description says so.";

/// The introduction of the panel's document.
const PANEL_INTRODUCTION: &str = "What people do in the panel: the calls of the API, by the permissions of their profile \
     instead of a token's, and what people alone do. Changes are taken from the panel's own pages only. An administrator of \
     the installation names the company they work in by the header `Hotline-Company`. Nothing here is promised to last \
     from one release to the next but to the panel's own pages.";

fn common_schemas() -> Schemas {
    let meta = json!({
        "type": "object",
        "description": "Which page of a list this is, and whether another follows.",
        "properties": {
            "page": {"type": "integer", "description": "Which page this is, from 1. Left out with `cursor`.", "example": 1},
            "perPage": {"type": "integer", "description": "Rows a page has at most.", "example": 100},
            "hasMore": {"type": "boolean", "description": "Whether another page follows.", "example": false},
            "nextCursor": {
                "type": ["string", "null"],
                "description": "With `cursor` only: the `cursor` of the page that follows; null when there is none.",
                "example": "2kq1v7cB0n4mXr9sJtYpZWkAAAAAAAAABw",
            },
        },
        "required": ["perPage", "hasMore"],
    });
    let error = error_schema(
        "Why a request was not served as asked: `code` for programs, `message` for people.",
        json!({"type": "string", "enum": CODES, "example": "ERR_API_NOT_FOUND"}),
        "record not found",
        json!({"description": "What programs may want besides: which record is in the way, which field is wrong."}),
    );
    let invalid = error_schema(
        "An error that names every field that is missing or holds what is not accepted.",
        json!({"type": "string", "enum": ["ERR_API_VALIDATION"]}),
        "products[2].unitPrice must be a number",
        json!({"type": "array", "items": reference("FieldError")}),
    );
    let field = json!({
        "type": "object",
        "description": "What is wrong with one field.",
        "properties": {
            "field": {"type": "string", "description": "Its path in the body, or the parameter's name.", "example": "products[2].unitPrice"},
            "reason": {"type": "string", "description": "A phrase that follows the field's name.", "example": "must be a number"},
            "code": {
                "type": "string",
                "enum": reason_codes(),
                "description": "The reason for programs and translations. Codes may be added.",
                "example": "not_a_number",
            },
            "params": {
                "type": "object",
                "additionalProperties": true,
                "description": "What varies in the reason: `max` and `unit` of `too_long`, `options` of `not_an_option`, and the like.",
                "example": {},
            },
        },
        "required": ["field", "reason", "code", "params"],
    });
    [("PageMeta", meta), ("ApiError", error), ("ApiValidationError", invalid), ("FieldError", field)]
        .map(|(name, schema)| (name.to_owned(), schema))
        .into()
}

/// The schema of an error, without references: many client generators lose parts of composed schemas.
fn error_schema(text: &str, mut code: Value, message: &str, mut details: Value) -> Value {
    code["description"] = json!("Names the error for programs; it never changes.");
    if details.get("description").is_none() {
        details["description"] = json!("Every field that is wrong.");
    }
    json!({
        "type": "object",
        "description": text,
        "properties": {"error": {
            "type": "object",
            "description": "What went wrong.",
            "properties": {
                "code": code,
                "message": {"type": "string", "description": "For people; its words may change.", "example": message},
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
        "X-Request-Id": {"description": "Names the request in the logs.", "schema": {"type": "string"}},
        "RateLimit-Limit": number("Requests a minute."),
        "RateLimit-Remaining": number("Requests left at once."),
        "RateLimit-Reset": number("Seconds until all are left again."),
        "Retry-After": number("Seconds until another try may work."),
        "ETag": {
            "description": "The state of the record, for `If-Match`: its `updatedAt` in quotation marks.",
            "schema": {"type": "string"},
            "example": "\"2026-01-31T12:00:00.000Z\"",
        },
        "Allow": {"description": "The methods of this path.", "schema": {"type": "string"}},
        "Idempotent-Replay": {
            "description": "`true` on an answer that was given before under the same key.",
            "schema": {"type": "string", "enum": ["true"]},
        },
    })
}

/// A document that is generated at the first request: few request it, and generating it takes longer than a start.
type Late = LazyLock<Bytes, Box<dyn FnOnce() -> Bytes + Send>>;

/// The documents, generated once for all requests.
pub struct Document {
    api: Late,
    panel: Late,
}

impl Document {
    /// The documents of the API and of the panel's API.
    pub fn of(api: fn() -> Value, panel: fn() -> Value) -> Self {
        let late = |document: fn() -> Value| Late::new(Box::new(move || Bytes::from(document().to_string())));
        Self { api: late(api), panel: late(panel) }
    }
}

/// `GET /api/v1/openapi.json`: the document; no token is required.
pub async fn show(document: Data<Document>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(Bytes::clone(&document.api))
}

/// `GET /panel/api/v1/openapi.json`: the panel's document; no session is required.
pub async fn show_panel(document: Data<Document>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(Bytes::clone(&document.panel))
}

/// `GET /docs/…`: the document for people, with the embedded Swagger UI.
pub async fn docs(file: Path<String>) -> HttpResponse {
    // The validator's badge would reveal the address of this service to a third party.
    let config = utoipa_swagger_ui::Config::new([PATH]).validator_url("none");
    match utoipa_swagger_ui::serve(&file, std::sync::Arc::new(config)) {
        Ok(Some(file)) => HttpResponse::Ok().content_type(file.content_type).body(shared(file.bytes)),
        Ok(None) => HttpResponse::NotFound().finish(),
        Err(error) => {
            tracing::error!(%error, "could not read a documentation file");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// An embedded file is one copy for all of its readers.
fn shared(bytes: Cow<'static, [u8]>) -> Bytes {
    match bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}

/// `GET /docs`: redirects to the page, where its relative links work.
pub async fn to_docs() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header(("location", "/docs/")).finish()
}
