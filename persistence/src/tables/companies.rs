//! Companies: the tenants. Changed by transactions, not by actors.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgExecutor, PgPool};

use super::profiles;
use crate::cluster::SlotFilter;
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Position};
use crate::{CompanyId, Database, Error, Result, Slot};

/// One company as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct CompanyRow {
    pub id: CompanyId,
    pub name: String,
    pub active: bool,
    pub api_enabled: bool,
    pub rate_per_minute: Option<i32>,
    pub time_zone: String,
    /// Normalized for the comparison with messages ([`crate::stop_words`]).
    pub stop_words: Vec<String>,
    pub second_factor_required: bool,
    /// The slot the company belongs to; never shown.
    #[serde(skip)]
    #[sqlx(try_from = "i16")]
    pub slot: Slot,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Creates a company with the default profiles.
pub async fn insert(db: &PgPool, name: &str) -> Result<CompanyRow> {
    let mut transaction = db.begin().await?;
    let row = insert_in(&mut transaction, name).await?;
    transaction.commit().await?;
    Ok(row)
}

/// Creates a company in an open transaction.
pub async fn insert_in(db: &mut PgConnection, name: &str) -> Result<CompanyRow> {
    let insert = sqlx::query_as("insert into companies (name) values ($1) returning *").bind(name);
    let row: CompanyRow = with_timeout(insert.fetch_one(&mut *db)).await?;
    profiles::insert_defaults(db, row.id).await?;
    Ok(row)
}

/// Changes of a company; unset fields stay as they are.
#[derive(Clone, Debug, Default)]
pub struct CompanyChanges {
    pub name: Option<String>,
    pub active: Option<bool>,
    pub api_enabled: Option<bool>,
    /// `Some(Some(0))`: no limit; `Some(None)`: the installation's limit.
    pub rate_per_minute: Option<Option<i32>>,
    pub time_zone: Option<String>,
    /// Normalized.
    pub stop_words: Option<Vec<String>>,
    pub second_factor_required: Option<bool>,
}

/// Changes a company.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company.
pub async fn update(db: impl PgExecutor<'_>, id: CompanyId, changes: CompanyChanges) -> Result<CompanyRow> {
    let update = sqlx::query_as(
        "update companies set
             name = coalesce($2, name),
             active = coalesce($3, active),
             api_enabled = coalesce($4, api_enabled),
             rate_per_minute = case when $8 then $5 else rate_per_minute end,
             time_zone = coalesce($6, time_zone),
             stop_words = coalesce($7, stop_words),
             second_factor_required = coalesce($9, second_factor_required),
             updated_at = now()
         where id = $1 returning *",
    )
    .bind(id)
    .bind(changes.name)
    .bind(changes.active)
    .bind(changes.api_enabled)
    .bind(changes.rate_per_minute.flatten())
    .bind(changes.time_zone)
    .bind(changes.stop_words)
    .bind(changes.rate_per_minute.is_some())
    .bind(changes.second_factor_required);
    with_timeout(update.fetch_optional(db)).await?.ok_or(Error::NotFound("company"))
}

/// Every company, by creation.
pub async fn all(db: &PgPool) -> Result<Vec<CompanyRow>> {
    with_timeout(sqlx::query_as("select * from companies order by id").fetch_all(db)).await
}

/// The companies of some slots, including those the directory does not know yet.
pub async fn of_slots(db: &PgPool, slots: &SlotFilter) -> Result<Vec<CompanyId>> {
    let select = "select id from companies where ($1::smallint[] is null or slot = any($1)) order by id";
    with_timeout(sqlx::query_scalar(select).bind(slots.numbers()).fetch_all(db)).await
}

/// The companies with these ids; an id without a company is skipped.
pub async fn find_all(db: impl Database<'_>, ids: &[CompanyId]) -> Result<Vec<CompanyRow>> {
    let select = sqlx::query_as("select * from companies where id = any($1)").bind(ids).fetch_all(db);
    with_timeout(select).await
}

/// The conditions of the installation's list of companies.
#[derive(Clone, Debug, Default)]
pub struct CompanyFilter {
    pub search: Option<String>,
    pub active: Option<bool>,
}

/// A page of the companies, for administrators of the installation.
pub async fn list(db: &PgPool, filter: &CompanyFilter, page: PageRequest) -> Result<Page<CompanyRow>> {
    let (order, operator) = if page.descending { ("desc", "<") } else { ("asc", ">") };
    let statement = format!(
        "select * from companies where ($1::boolean is null or active = $1)
             and ($2::text is null or hotline_fold(name) like hotline_pattern($2))
             and ($5::bigint is null or id {operator} $5)
         order by id {order} offset $3 limit $4"
    );
    let rows = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(filter.active).bind(filter.search.as_deref());
    // One row more than requested shows whether there are more.
    let rows = rows.bind(page.offset()).bind(page.size + 1).bind(page.after()).fetch_all(db);
    let mut rows: Vec<CompanyRow> = with_timeout(rows).await?;
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let has_more = rows.len() > size;
    rows.truncate(size);
    let positions = rows.iter().map(|row| Position::Id(row.id.0)).collect();
    Ok(Page { positions, ..Page::of(rows, has_more) })
}

/// One company, or `None`.
pub async fn find(db: impl Database<'_>, id: CompanyId) -> Result<Option<CompanyRow>> {
    with_timeout(sqlx::query_as("select * from companies where id = $1").bind(id).fetch_optional(db)).await
}
