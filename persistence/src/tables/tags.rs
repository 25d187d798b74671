//! Tags: coloured labels on contacts. Plain.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Table, Unique, explain_taken};
use crate::{CompanyId, Database, Error, Result, TagId};

/// One tag as stored.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct TagRow {
    pub id: TagId,
    pub name: String,
    pub color: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for TagRow {
    const NAME: &'static str = "tags";
    const SELECT: &'static str = "select * from tags";
    type Id = TagId;
}

const UNIQUE: Unique = Unique {
    constraint: "tags_company_id_name_key",
    field: "name",
    holder: "select id from tags where company_id = $1 and name = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct TagFilter {
    pub search: Option<String>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of tags.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(db: impl Database<'_>, company: CompanyId, filter: &TagFilter, page: Page) -> Result<Listed<TagRow>> {
    Select::new(TagRow::SELECT, "company_id", company)
        .contains("hotline_fold(name)", filter.search.as_deref())
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// Creates a tag.
///
/// # Errors
/// [`Error::Taken`] when the name is.
pub async fn insert(db: &mut PgConnection, company: CompanyId, name: &str, color: Option<&str>) -> Result<TagRow> {
    within(
        sqlx::query_as(
            "insert into tags (company_id, name, color) values ($1, $2, coalesce($3, '#64748b')) returning *",
        )
        .bind(company)
        .bind(name)
        .bind(color)
        .fetch_one(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, Some(name)))
}

/// Changes what is given.
///
/// # Errors
/// [`Error::NotFound`] when there is no such tag; [`Error::Taken`] when the name is.
pub async fn update(
    db: &mut PgConnection,
    company: CompanyId,
    id: TagId,
    name: Option<&str>,
    color: Option<&str>,
) -> Result<TagRow> {
    within(
        sqlx::query_as(
            "update tags set name = coalesce($3, name), color = coalesce($4, color), updated_at = now()
             where company_id = $1 and id = $2 returning *",
        )
        .bind(company)
        .bind(id)
        .bind(name)
        .bind(color)
        .fetch_optional(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, name))?
    .ok_or(Error::NotFound("tag"))
}
