//! Companies: the tenants. Changed by transactions, not by actors.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, PgPool};

use super::profiles;
use crate::cluster::SlotFilter;
use crate::error::with_timeout;
use crate::select::{Page, PageRequest, Select};
use crate::table::{CHANGED_AT, Span};
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

/// Creates a company with these settings in an open transaction.
pub async fn insert_with(db: &mut PgConnection, name: &str, settings: CompanyChanges) -> Result<CompanyRow> {
    let row = insert_in(&mut *db, name).await?;
    // A new company is unchanged since its creation.
    write(db, row.id, settings, "created_at").await
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

/// Changes a company. If it has these values already, nothing changes, not even `updated_at`.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company.
pub async fn update(db: impl PgExecutor<'_>, id: CompanyId, changes: CompanyChanges) -> Result<CompanyRow> {
    write(db, id, changes, CHANGED_AT).await
}

/// Writes the values that are set. If one of them is new, `updated_at` becomes the time that `changed_at` computes.
///
/// `changed_at` becomes part of the statement, so it must come from the code.
async fn write(
    db: impl PgExecutor<'_>,
    id: CompanyId,
    changes: CompanyChanges,
    changed_at: &str,
) -> Result<CompanyRow> {
    let statement = format!(
        "update companies c set (name, active, api_enabled, rate_per_minute, time_zone, stop_words,
             second_factor_required, updated_at) = (
             select x.*, case when row(x.*) is distinct from row(c.name, c.active, c.api_enabled, c.rate_per_minute,
                 c.time_zone, c.stop_words, c.second_factor_required) then {changed_at} else updated_at end
             from (select coalesce($2, c.name), coalesce($3, c.active), coalesce($4, c.api_enabled),
                 case when $8 then $5 else c.rate_per_minute end, coalesce($6, c.time_zone),
                 coalesce($7, c.stop_words), coalesce($9, c.second_factor_required)) x)
         where id = $1 returning *"
    );
    let update = sqlx::query_as(AssertSqlSafe(statement))
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
    pub created: Span,
    pub updated: Span,
}

/// A page of the companies, for administrators of the installation.
pub async fn list(db: impl Database<'_>, filter: &CompanyFilter, page: PageRequest) -> Result<Page<CompanyRow>> {
    Select::of_installation("select * from companies")
        .contains("hotline_fold(name)", filter.search.as_deref())
        .equals("active", filter.active)
        .between("created_at", filter.created)
        .between("updated_at", filter.updated)
        .page(db, "id", page)
        .await
}

/// One company, or `None`.
pub async fn find(db: impl Database<'_>, id: CompanyId) -> Result<Option<CompanyRow>> {
    with_timeout(sqlx::query_as("select * from companies where id = $1").bind(id).fetch_optional(db)).await
}
