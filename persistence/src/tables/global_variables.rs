//! Global variables: texts that a company's messages include by key. Changed by transactions, not by actors; the
//! directory caches them, so that sending needs no query.

use serde::Serialize;
use sqlx::{FromRow, PgExecutor};
use utoipa::ToSchema;

use crate::error::with_timeout;
use crate::table::{Stamps, Table, Unique};
use crate::{CompanyId, Id, Result};

/// Built-in variables of every message; a company's own variables cannot use these names.
pub const BUILT_IN: &[&str] = &[
    "name",
    "firstName",
    "number",
    "email",
    "ticketId",
    "queue",
    "agent",
    "channel",
    "company",
    "date",
    "time",
    "greeting",
];

/// The id of a global variable.
pub type GlobalVariableId = Id<GlobalVariable>;

/// A text that replaces its key in messages.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobalVariable {
    pub id: GlobalVariableId,
    /// The key; it never changes.
    #[schema(example = "openingHours")]
    pub key: String,
    #[schema(example = "from 9 to 18")]
    pub value: String,
    #[schema(example = "Phone hours.")]
    pub description: Option<String>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for GlobalVariable {
    const NAME: &'static str = "global_variables";
    const NOUN: &'static str = "global variable";
    const UNIQUE: &'static [Unique] = &[Unique::new("global_variables_company_id_key_key", "key")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(key)", "hotline_fold(description)"];
    type Id = GlobalVariableId;
}

/// Key and value of every variable of these companies.
pub async fn of_companies(
    db: impl PgExecutor<'_>,
    companies: &[CompanyId],
) -> Result<Vec<(CompanyId, String, String)>> {
    let all = "select company_id, key, value from global_variables where company_id = any($1)";
    with_timeout(sqlx::query_as(all).bind(companies).fetch_all(db)).await
}
