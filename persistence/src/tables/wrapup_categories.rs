//! Categories of wrap-up types. Plain.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgExecutor};

use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Table, Unique, explain_taken};
use crate::{CompanyId, Database, Error, Result, WrapupCategoryId};

/// One category as stored.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct WrapupCategoryRow {
    pub id: WrapupCategoryId,
    pub name: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for WrapupCategoryRow {
    const NAME: &'static str = "wrapup_categories";
    const SELECT: &'static str = "select * from wrapup_categories";
    type Id = WrapupCategoryId;
}

const UNIQUE: Unique = Unique {
    constraint: "wrapup_categories_company_id_name_key",
    field: "name",
    holder: "select id from wrapup_categories where company_id = $1 and name = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct WrapupCategoryFilter {
    pub search: Option<String>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of categories.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &WrapupCategoryFilter,
    page: Page,
) -> Result<Listed<WrapupCategoryRow>> {
    Select::new(WrapupCategoryRow::SELECT, "company_id", company)
        .contains("hotline_fold(name)", filter.search.as_deref())
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// Creates a category.
///
/// # Errors
/// [`Error::Taken`] when the name is.
pub async fn insert(db: impl PgExecutor<'_>, company: CompanyId, name: &str) -> Result<WrapupCategoryRow> {
    let insert = sqlx::query_as("insert into wrapup_categories (company_id, name) values ($1, $2) returning *");
    within(insert.bind(company).bind(name).fetch_one(db)).await.map_err(explain_taken(&UNIQUE, company, Some(name)))
}

/// Changes what is given.
///
/// # Errors
/// [`Error::NotFound`] when there is no such category; [`Error::Taken`] when the name is.
pub async fn update(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: WrapupCategoryId,
    name: Option<&str>,
) -> Result<WrapupCategoryRow> {
    within(
        sqlx::query_as(
            "update wrapup_categories set name = coalesce($3, name), updated_at = now()
             where company_id = $1 and id = $2 returning *",
        )
        .bind(company)
        .bind(id)
        .bind(name)
        .fetch_optional(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, name))?
    .ok_or(Error::NotFound("category"))
}
