//! Global variables: texts a company keeps once and its messages take in by their keys. Plain; the directory holds
//! them as well, so that a send asks nobody.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection, PgExecutor};

use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Table, Unique, explain_taken};
use crate::{CompanyId, Database, Error, GlobalVariableId, Result};

/// Variables every message has; no company's own may be called so.
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

/// One global variable as stored.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct GlobalVariableRow {
    pub id: GlobalVariableId,
    pub key: String,
    pub value: String,
    pub description: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for GlobalVariableRow {
    const NAME: &'static str = "global_variables";
    const SELECT: &'static str = "select * from global_variables";
    type Id = GlobalVariableId;
}

const UNIQUE: Unique = Unique {
    constraint: "global_variables_company_id_key_key",
    field: "key",
    holder: "select id from global_variables where company_id = $1 and key = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct GlobalVariableFilter {
    pub search: Option<String>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of global variables.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &GlobalVariableFilter,
    page: Page,
) -> Result<Listed<GlobalVariableRow>> {
    Select::new(GlobalVariableRow::SELECT, "company_id", company)
        .any_contains(&["hotline_fold(key)", "hotline_fold(description)"], filter.search.as_deref())
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// The value of every key.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: impl PgExecutor<'_>, company: CompanyId) -> Result<HashMap<String, String>> {
    let pairs: Vec<(String, String)> = within(
        sqlx::query_as("select key, value from global_variables where company_id = $1").bind(company).fetch_all(db),
    )
    .await?;
    Ok(pairs.into_iter().collect())
}

/// Creates a global variable.
///
/// # Errors
/// [`Error::Taken`] when the key is.
pub async fn insert(
    db: &mut PgConnection,
    company: CompanyId,
    key: &str,
    value: &str,
    description: Option<&str>,
) -> Result<GlobalVariableRow> {
    within(
        sqlx::query_as(
            "insert into global_variables (company_id, key, value, description) values ($1, $2, $3, $4) returning *",
        )
        .bind(company)
        .bind(key)
        .bind(value)
        .bind(description)
        .fetch_one(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, Some(key)))
}

/// Changes what is given; a description of `Some(None)` is taken away.
///
/// # Errors
/// [`Error::NotFound`] when there is no such variable.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: GlobalVariableId,
    value: Option<&str>,
    description: Option<Option<&str>>,
) -> Result<GlobalVariableRow> {
    within(
        sqlx::query_as(
            "update global_variables set value = coalesce($3, value),
                 description = case when $4 then $5 else description end, updated_at = now()
             where company_id = $1 and id = $2 returning *",
        )
        .bind(company)
        .bind(id)
        .bind(value)
        .bind(description.is_some())
        .bind(description.flatten())
        .fetch_optional(db),
    )
    .await?
    .ok_or(Error::NotFound("global variable"))
}
