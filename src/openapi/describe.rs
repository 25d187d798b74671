//! What one operation is, as its handler's signature says it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use actix_web::body::BoxBody;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, Responder};
use serde_json::{Map, Value, json};

use super::texts::Texts;
use crate::web::bounds::{FILES_PART, JSON_BYTES_MAX};
use crate::web::form::FILES_MAX;
use crate::web::idempotency::{self, Idempotency, KEY_CHARACTERS_MAX};
use crate::web::modules::{API, module_of};
use crate::web::params::{Filter, Params, PathIds};
use crate::web::reply::Reply;
use crate::web::schema::{Schemas, reference};
use crate::web::{ApiResult, Body, BodyWithFiles, Caller, Fields, Input, PathId, Query, QueryParams};

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Who holds a company's token, with the permission.
    Company,
    /// Who holds the token of a visitor's session.
    Visitor,
    /// The same, or who has none yet.
    VisitorOrNobody,
    /// Who has signed in to the panel.
    Person,
    /// Anybody, as far as the document's security goes: what else must be shown, the operation says.
    Anybody,
}

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Operation {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// What stands before the path: `/api/v1`, or the door it is behind.
    pub below: &'static str,
    /// What follows.
    pub path: String,
    /// What it is listed under; none: its module.
    pub tag: Option<&'static str>,
    /// Who may ask.
    pub access: Access,
    /// Names it for programs: `createContact`.
    pub id: Cow<'static, str>,
    /// One line for people.
    pub summary: Cow<'static, str>,
    /// What is said of it unless there is more to say.
    pub text: String,
    /// The path's ids, in order.
    pub path_ids: Vec<Value>,
    /// Parameters of the query, with their schemas.
    pub query: Vec<(String, Value)>,
    /// Further parameters, as the document has them.
    pub parameters: Vec<Value>,
    /// The body's schema, which the document has by its name.
    pub body: Option<(Cow<'static, str>, Value)>,
    /// Bodies that show what there is, by name.
    pub examples: Vec<(&'static str, Value)>,
    /// The same of bodies with files.
    pub form_examples: Vec<(&'static str, Value)>,
    /// Whether the body may be a form as well, with files.
    pub takes_files: bool,
    /// Bytes of a JSON body, where they are not what JSON may have.
    pub body_bytes_max: Option<usize>,
    /// Whether no body is as good as an empty one.
    pub body_is_optional: bool,
    /// Whether a key makes it happen once.
    pub is_idempotent: bool,
    /// The status of its success, with the schema of what it answers.
    pub success: (u16, Option<Value>),
    /// The content type of its success.
    pub content_type: &'static str,
    /// Whether its success is answered as CSV as well.
    pub is_table: bool,
    /// Answers that are neither its success nor one of the API's errors: status, description, schema.
    pub others: Vec<(u16, &'static str, Value)>,
    /// Whether answers say what is left of a rate.
    pub is_limited: bool,
    /// The errors it may answer.
    pub errors: Vec<u16>,
    /// Whether a `422` may say more than which fields are wrong.
    pub may_be_refused: bool,
}

/// Part of a handler's signature.
pub trait Described {
    /// Adds what it means to the operation.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

impl Operation {
    /// The operation a handler carries out: of the API, or listed under a tag of its own and open to anybody who is not
    /// refused by what the handler takes.
    pub fn of<Args: Described, Output: Described>(
        method: &'static str,
        path: &str,
        tag: Option<&'static str>,
        id: Cow<'static, str>,
        summary: Cow<'static, str>,
        schemas: &mut Schemas,
    ) -> Self {
        let is_api = tag.is_none();
        let mut operation = Self {
            method,
            below: if is_api { API } else { "" },
            path: path.to_owned(),
            tag,
            access: if is_api { Access::Company } else { Access::Anybody },
            id,
            summary,
            text: String::new(),
            path_ids: Vec::new(),
            query: Vec::new(),
            parameters: Vec::new(),
            body: None,
            examples: Vec::new(),
            form_examples: Vec::new(),
            takes_files: false,
            body_bytes_max: None,
            body_is_optional: false,
            is_idempotent: false,
            success: (200, None),
            content_type: "application/json",
            is_table: false,
            others: Vec::new(),
            is_limited: is_api,
            errors: if is_api { ASKED.to_vec() } else { Vec::new() },
            may_be_refused: false,
        };
        Args::describe(&mut operation, schemas);
        Output::describe(&mut operation, schemas);
        // A key is looked at together with a company's token.
        operation.is_idempotent &= operation.access == Access::Company;
        if method == "DELETE" {
            // What is in use stays.
            operation.errors.push(409);
        }
        operation.errors.sort_unstable();
        operation.errors.dedup();
        operation
    }

    /// The module a token needs a permission in; none where no company's token is asked for.
    pub fn module(&self) -> Option<&'static str> {
        let module = module_of(&self.whole_path());
        module.filter(|_| self.access == Access::Company)
    }

    /// The path with all that stands before it.
    pub fn whole_path(&self) -> String {
        format!("{}{}", self.below, self.path)
    }

    /// What the document lists it under.
    pub fn listed_under(&self) -> &'static str {
        self.tag.or_else(|| self.module()).unwrap_or_default()
    }

    /// The names of the path's ids.
    pub fn path_names(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// As the document has it.
    pub fn into_value(self, texts: &Texts) -> Value {
        let mut description = texts.operation(&self.id).unwrap_or(&self.text).to_owned();
        let module = self.module();
        if let Some(module) = module {
            description.push_str(&format!(" Needs the permission `{module}` `{}`.", self.method));
        }
        if let Some(bytes) = self.body_bytes_max {
            description.push_str(&format!(" The body may have {bytes} bytes, however many rows they make."));
        }
        let mut value = json!({
            "operationId": self.id,
            "summary": self.summary,
            "description": description,
            "tags": [self.listed_under()],
            "responses": self.responses(),
        });
        match (module, self.access) {
            (Some(module), _) => value["x-permission"] = json!({"module": module, "method": self.method}),
            // The document's own.
            (None, Access::Person) => {}
            (None, Access::Visitor) => value["security"] = json!([{"visitor": []}]),
            (None, Access::VisitorOrNobody) => value["security"] = json!([{"visitor": []}, {}]),
            (None, _) => value["security"] = json!([]),
        }
        let parameters = self.parameters();
        if !parameters.is_empty() {
            value["parameters"] = json!(parameters);
        }
        if let Some((name, _)) = &self.body {
            let mut content = json!({"application/json": {"schema": reference(name)}});
            show(&mut content["application/json"], self.examples);
            if self.takes_files {
                content["multipart/form-data"] = json!({"schema": reference(&form_name(name))});
                show(&mut content["multipart/form-data"], self.form_examples);
            }
            value["requestBody"] = json!({"required": !self.body_is_optional, "content": content});
        }
        value
    }

    fn asks_for(&mut self, query: Vec<(String, Value)>) {
        self.query = query;
        self.errors.push(422);
        if self.query.iter().any(|(name, _)| name.ends_with("Id")) {
            self.errors.push(404);
        }
    }

    fn parameters(&self) -> Vec<Value> {
        let mut parameters: Vec<Value> = self
            .path_names()
            .zip(&self.path_ids)
            .map(|(name, schema)| json!({"name": name, "in": "path", "required": true, "schema": schema}))
            .collect();
        parameters.extend(self.query.iter().map(|(name, schema)| {
            let mut parameter = json!({"name": name, "in": "query", "schema": schema});
            // Where readers look for it.
            if let Some(text) = schema.get("description") {
                parameter["description"] = text.clone();
            }
            parameter
        }));
        parameters.extend(self.parameters.iter().cloned());
        if self.is_idempotent {
            parameters.push(json!({
                "name": "Idempotency-Key",
                "in": "header",
                "description": "Makes a retry safe: the same request under the same key happens once within 24 hours.",
                "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARACTERS_MAX, "pattern": "^[!-~]+$"},
                "example": "7f0c9a2e-order-4711",
            }));
        }
        parameters
    }

    fn responses(&self) -> Map<String, Value> {
        let (status, schema) = &self.success;
        let headers =
            |more: &[&str]| if self.is_limited { answer_headers(more) } else { named_headers(&["X-Request-Id"]) };
        let mut success = json!({"description": self.summary, "headers": headers(&[])});
        if self.is_idempotent {
            success["headers"] = headers(&["Idempotent-Replay"]);
        }
        if let Some(schema) = schema {
            success["content"] = json!({self.content_type: {"schema": schema}});
        }
        if self.is_table {
            success["content"]["text/csv"] = json!({"schema": {"type": "string"}});
        }
        let mut responses = Map::new();
        responses.insert(status.to_string(), success);
        for (status, text, schema) in &self.others {
            let content = json!({"application/json": {"schema": schema}});
            let other = json!({"description": text, "headers": headers(&[]), "content": content});
            responses.insert(status.to_string(), other);
        }
        for status in &self.errors {
            let name = if *status == 422 && self.may_be_refused { REFUSED } else { error_name(*status) };
            responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{name}")}));
        }
        responses
    }
}

/// The errors of everything that asks for a company's token.
const ASKED: [u16; 5] = [401, 403, 429, 500, 503];

/// Adds bodies that show what there is.
fn show(content: &mut Value, examples: Vec<(&'static str, Value)>) {
    if !examples.is_empty() {
        let named = examples.into_iter().map(|(name, value)| (name.to_owned(), json!({"value": value})));
        content["examples"] = Value::Object(named.collect());
    }
}

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

fn answer_headers(more: &[&str]) -> Value {
    let names = ["X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    named_headers(&[&names[..], more].concat())
}

fn named_headers(names: &[&str]) -> Value {
    let headers = names.iter().map(|name| {
        let name = (*name).to_owned();
        let header = json!({"$ref": format!("#/components/headers/{name}")});
        (name, header)
    });
    Value::Object(headers.collect())
}

/// What the answer of a status is called.
fn error_name(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        408 => "RequestTimeout",
        409 => "Conflict",
        413 => "PayloadTooLarge",
        415 => "UnsupportedMediaType",
        422 => "ValidationFailed",
        429 => "RateLimited",
        503 => "Unavailable",
        _ => "InternalError",
    }
}

/// A `422` that may say what no single field says: a contact that cannot be reached.
const REFUSED: &str = "Refused";

/// Every error of the API, by name.
pub fn errors() -> BTreeMap<String, Value> {
    let table: [(u16, &str, &[&str], &str, &str); 12] = [
        (400, "The request has no valid form.", &[], "ERR_API_BAD_REQUEST", "the body is not JSON"),
        (401, "The token is missing or invalid.", &[], "ERR_API_UNAUTHORIZED", "the token is missing or invalid"),
        (
            403,
            "The company is not active or has no API in its plan, the token lacks the permission, or the page's origin is \
             not allowed.",
            &[],
            "ERR_API_FORBIDDEN_SCOPE",
            "the token has no permission for POST in the module tickets",
        ),
        (408, "The body comes too slowly.", &[], "ERR_API_BAD_REQUEST", "the body comes too slowly"),
        (404, "It does not exist, or belongs to another company.", &[], "ERR_API_NOT_FOUND", "record not found"),
        (
            409,
            "The record's state, a unique value, or a key that was used for another request forbids it.",
            &[],
            "ERR_API_CONFLICT",
            "the contact has an open ticket on this channel",
        ),
        (413, "The body is too large.", &[], "ERR_API_PAYLOAD_TOO_LARGE", "the body is larger than 1048576 bytes"),
        (
            415,
            "The body is of another content type than the endpoint takes.",
            &[],
            "ERR_API_UNSUPPORTED_MEDIA_TYPE",
            "the body must be application/json",
        ),
        (422, "A field is missing or holds what is not accepted.", &[], "ERR_API_VALIDATION", "name is required"),
        (
            429,
            "The requests of this minute are used up.",
            &["Retry-After"],
            "ERR_API_RATE_LIMITED",
            "too many requests in this minute",
        ),
        (500, "A defect.", &[], "ERR_API_INTERNAL", "internal error; request req_4f0XkLmZq2R8"),
        (
            503,
            "The store cannot serve now; nothing was changed.",
            &["Retry-After"],
            "ERR_API_UNAVAILABLE",
            "the service cannot take this now; try again",
        ),
    ];
    table
        .into_iter()
        .map(|(status, text, headers, code, message)| {
            let mut error = json!({"code": code, "message": message});
            let mut schema = "ApiError";
            if status == 422 {
                error["details"] = json!([{"field": "name", "reason": "is required"}]);
                schema = "ApiValidationError";
            }
            (error_name(status).to_owned(), error_response(text, headers, schema, &error))
        })
        .chain([(REFUSED.to_owned(), {
            let text = "A field is missing or holds what is not accepted, or the contact cannot receive this now.";
            let message = "the contact cannot receive on this channel";
            error_response(text, &[], "ApiError", &json!({"code": "ERR_API_CONTACT_UNREACHABLE", "message": message}))
        })])
        .collect()
}

fn error_response(text: &str, headers: &[&str], schema: &str, error: &Value) -> Value {
    let content = json!({"application/json": {"schema": reference(schema), "example": {"error": error}}});
    json!({"description": text, "headers": answer_headers(headers), "content": content})
}

impl Described for Caller {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.access = Access::Company;
        operation.errors.extend(ASKED);
    }
}

/// A body that the handler reads for itself.
impl Described for Payload {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// What an answer that the handler writes itself is.
pub trait Describes: 'static {
    /// Adds what it means to the operation.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

/// An answer that the handler writes itself, and the document describes as `D` does.
pub struct Written<D> {
    response: HttpResponse,
    what: PhantomData<D>,
}

impl<D> From<HttpResponse> for Written<D> {
    fn from(response: HttpResponse) -> Self {
        Self { response, what: PhantomData }
    }
}

impl<D: 'static> Responder for Written<D> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.response
    }
}

impl<D: Describes> Described for Written<D> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}

impl<D: Describes> Described for ApiResult<Written<D>> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        D::describe(operation, schemas);
    }
}

/// Who may be there or not.
impl<T> Described for Option<T> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Described for HttpRequest {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl<T: 'static> Described for Data<T> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Described for Idempotency {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        debug_assert!(
            operation.method.parse().is_ok_and(|method| idempotency::applies_to(&method)),
            "{} never carries a key",
            operation.path
        );
        operation.is_idempotent = true;
        operation.errors.extend([400, 408, 409, 413]);
    }
}

impl<T: PathIds> Described for PathId<T> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.path_ids = T::schemas();
        operation.errors.push(404);
    }
}

impl<F: Filter> Described for Query<F> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.asks_for(Params::describe_list::<F>());
    }
}

impl<F: Filter> Described for QueryParams<F> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.asks_for(Params::describe::<F>());
    }
}

impl<T: Input> Described for Body<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let mut schema = Fields::describe::<T>();
        if let Some(text) = T::text() {
            schema["description"] = json!(text);
        }
        schemas.insert(T::name().into_owned(), schema.clone());
        operation.body = Some((T::name(), schema));
        operation.may_be_refused = T::MAY_BE_REFUSED;
        operation.examples = T::examples();
        operation.body_is_optional = T::MAY_BE_EMPTY;
        operation.body_bytes_max = (T::BYTES_MAX != JSON_BYTES_MAX).then_some(T::BYTES_MAX);
        operation.errors.extend([400, 404, 408, 409, 413, 415, 422]);
    }
}

impl<T: Input> Described for BodyWithFiles<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Body::<T>::describe(operation, schemas);
        operation.form_examples = T::form_examples();
        operation.takes_files = true;
        schemas.insert(form_name(&T::name()), form_schema(Fields::describe::<T>(), FILES_MAX));
    }
}

impl<T: Reply> Described for ApiResult<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.success = (T::STATUS, T::schema(schemas));
        operation.is_table = T::IS_TABLE;
    }
}

macro_rules! signature {
    ($($part:ident)*) => {
        impl<$($part: Described),*> Described for ($($part,)*) {
            #[allow(unused_variables)]
            fn describe(operation: &mut Operation, schemas: &mut Schemas) {
                $($part::describe(operation, schemas);)*
            }
        }
    };
}

signature! {}
signature! { A }
signature! { A B }
signature! { A B C }
signature! { A B C D }
signature! { A B C D E }
signature! { A B C D E F }
