//! The result of an import, row by row.

use hotline_actors::FieldError;
use hotline_persistence::ContactId;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::web::response::error::{code_of_reason, reason_codes};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ImportReport {
    #[schema(example = 2)]
    pub created: usize,
    #[schema(example = 1)]
    pub updated: usize,
    /// Rows skipped because their contact exists, with `onConflict: skip`.
    #[schema(example = 0)]
    pub skipped: usize,
    /// Errors of rows. Such rows are not stored; all others are.
    pub errors: Vec<ImportError>,
    /// The contact of each successful row, in row order. Several rows may share a contact.
    pub contacts: Vec<ImportedContact>,
}

/// The contact of one row.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ImportedContact {
    /// The index of the row, from 0.
    #[schema(example = 0)]
    pub index: usize,
    pub id: ContactId,
    /// The result of the row.
    pub result: ImportResult,
}

/// The result of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImportResult {
    Created,
    Updated,
    Skipped,
}

/// An error in a row.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ImportError {
    /// The index of the row, from 0.
    #[schema(example = 3)]
    pub index: usize,
    /// The path of the field in the row.
    #[schema(example = "email")]
    pub field: String,
    #[schema(example = "must be an e-mail address")]
    pub reason: String,
    /// A code for programs and translations, as in the `details` of a `422`. New codes may be added.
    #[schema(schema_with = code_schema)]
    pub code: &'static str,
    /// Parameters of the reason.
    #[schema(value_type = Object, example = json!({}))]
    pub params: Map<String, Value>,
}

impl ImportError {
    /// An error of this row.
    pub(super) fn of(index: usize, FieldError { field, reason }: FieldError) -> Self {
        let (code, params) = code_of_reason(&reason);
        Self { index, field, reason, code, params }
    }
}

#[expect(deprecated, reason = "`example` is the word that generators of clients know")]
fn code_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(
            "A code for programs and translations, as in the `details` of a `422`. New codes may be added.",
        ))
        .enum_values(Some(reason_codes()))
        .example(Some(json!("not_an_email")))
        .build()
}

impl ImportReport {
    /// The counter of rows with this result.
    pub(super) fn count_mut(&mut self, result: ImportResult) -> &mut usize {
        match result {
            ImportResult::Created => &mut self.created,
            ImportResult::Updated => &mut self.updated,
            ImportResult::Skipped => &mut self.skipped,
        }
    }
}
