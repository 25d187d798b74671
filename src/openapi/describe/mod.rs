//! What one operation is, as its handler's signature says it.

mod errors;
mod form;
mod signature;
mod value;
mod written;

use std::borrow::Cow;

use serde_json::Value;

pub use errors::errors;
pub use form::{form_name, form_schema};
pub use written::{Describes, Written};

use crate::web::modules::{API, module_of};
use crate::web::schema::Schemas;

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

    fn asks_for(&mut self, query: Vec<(String, Value)>) {
        self.query = query;
        self.errors.push(422);
        if self.query.iter().any(|(name, _)| name.ends_with("Id")) {
            self.errors.push(404);
        }
    }
}

/// The errors of everything that asks for a company's token.
const ASKED: [u16; 5] = [401, 403, 429, 500, 503];
