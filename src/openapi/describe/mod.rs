//! One operation, described by its handler's signature.

mod documented;
mod errors;
mod form;
mod json;
mod signature;

use std::borrow::Cow;

use serde_json::Value;

pub use documented::{DocumentedResponse, ResponseDescription};
pub use errors::errors;
pub use form::{form_name, form_schema};

use crate::web::admission::modules::{API, module_of};
use crate::web::response::schema::Schemas;

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Holders of a company's token with the permission.
    Company,
    /// Holders of the token of a visitor's session.
    Visitor,
    /// Holders of the token of a visitor's session, or visitors without a token.
    VisitorOrAnonymous,
    /// People who have signed in to the panel.
    Person,
    /// Anyone, as far as the document's security schemes go; the operation itself describes further requirements.
    Public,
}

/// One method of one path.
#[derive(Clone, Debug)]
pub struct Operation {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// The prefix of the path: `/api/v1`, `/panel/api/v1`, or none.
    pub prefix: &'static str,
    /// The path after the prefix.
    pub path: String,
    /// The tag; `None`: its module.
    pub tag: Option<&'static str>,
    /// Who may call it.
    pub access: Access,
    /// The operation id: `createContact`.
    pub id: Cow<'static, str>,
    /// A one-line summary.
    pub summary: Cow<'static, str>,
    /// The description, unless texts.toml has one.
    pub text: String,
    /// The schemas of the path's ids, in order.
    pub path_ids: Vec<Value>,
    /// The query parameters, with their schemas.
    pub query: Vec<(String, Value)>,
    /// Further parameters, as in the document.
    pub parameters: Vec<Value>,
    /// The body's schema, with its name in the document.
    pub body: Option<(Cow<'static, str>, Value)>,
    /// Named examples of the body.
    pub examples: Vec<(&'static str, Value)>,
    /// Named examples of the form.
    pub form_examples: Vec<(&'static str, Value)>,
    /// Whether the body may also be a form with files.
    pub takes_files: bool,
    /// The maximum size of a JSON body, if it differs from the default.
    pub body_bytes_max: Option<usize>,
    /// Whether the body may be omitted.
    pub body_is_optional: bool,
    /// Whether the document offers an idempotency key.
    pub is_idempotent: bool,
    /// Whether its handler records a request's idempotency key together with its change; also set in operations for
    /// people.
    pub records_idempotency_key: bool,
    /// The status of a success, with the schema of its body.
    pub success: (u16, Option<Value>),
    /// The content type of a success.
    pub content_type: &'static str,
    /// Whether a success has an `ETag`.
    pub has_etag: bool,
    /// Whether a success is a table, which is also available as CSV.
    pub is_table: bool,
    /// Further responses: status, description, schema.
    pub other_responses: Vec<(u16, &'static str, Value)>,
    /// Whether responses have the `RateLimit-…` headers.
    pub is_rate_limited: bool,
    /// The statuses of its errors.
    pub errors: Vec<u16>,
    /// Whether a valid body may be refused with a `422` that names no field.
    pub may_be_refused: bool,
}

/// A part of a handler's signature.
pub trait OperationPart {
    /// Adds to the operation what this part implies.
    fn describe(operation: &mut Operation, schemas: &mut Schemas);
}

impl Operation {
    /// The operation of a handler. Without a tag, it belongs to the API and requires a company's token; with one, its
    /// extractors decide who may call it.
    pub fn of<Args: OperationPart, Output: OperationPart>(
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
            prefix: if is_api { API } else { "" },
            path: path.to_owned(),
            tag,
            access: if is_api { Access::Company } else { Access::Public },
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
            records_idempotency_key: false,
            success: (200, None),
            content_type: "application/json",
            has_etag: false,
            is_table: false,
            other_responses: Vec::new(),
            is_rate_limited: is_api,
            errors: if is_api { COMPANY_ERRORS.to_vec() } else { Vec::new() },
            may_be_refused: false,
        };
        Args::describe(&mut operation, schemas);
        Output::describe(&mut operation, schemas);
        // The document offers keys only to holders of a company's token. The panel also accepts them from people.
        operation.is_idempotent &= operation.access == Access::Company;
        if method == "DELETE" {
            // A record in use cannot be deleted.
            operation.errors.push(409);
        }
        operation.errors.sort_unstable();
        operation.errors.dedup();
        operation
    }

    /// The module in which a token needs a permission; `None` if no company's token is required.
    pub fn module(&self) -> Option<&'static str> {
        let module = module_of(&self.full_path());
        module.filter(|_| self.access == Access::Company)
    }

    /// The path with its prefix.
    pub fn full_path(&self) -> String {
        format!("{}{}", self.prefix, self.path)
    }

    /// Its tag in the document.
    pub fn tag_name(&self) -> &'static str {
        self.tag.or_else(|| self.module()).unwrap_or_default()
    }

    /// The names of the path's ids.
    pub fn path_names(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    fn set_query(&mut self, query: Vec<(String, Value)>) {
        self.query = query;
        self.errors.push(422);
        if self.query.iter().any(|(name, _)| name.ends_with("Id")) {
            self.errors.push(404);
        }
    }
}

/// The errors of every operation that requires a company's token.
const COMPANY_ERRORS: [u16; 5] = [401, 403, 429, 500, 503];
