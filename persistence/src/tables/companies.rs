//! Companies: the tenants. Plain; made on the command line.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgPool};

use super::profiles;
use crate::{CompanyId, Database, Error, Result};

/// One company as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct CompanyRow {
    pub id: CompanyId,
    pub name: String,
    pub active: bool,
    pub api_enabled: bool,
    pub rate_per_minute: Option<i32>,
    pub time_zone: String,
    /// Folded, as they are compared ([`crate::stop_words`]).
    pub stop_words: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Creates a company, with the profiles every company begins with.
///
/// # Errors
/// When the database cannot answer.
pub async fn insert(db: &PgPool, name: &str) -> Result<CompanyRow> {
    let mut transaction = db.begin().await?;
    let row: CompanyRow = sqlx::query_as("insert into companies (name) values ($1) returning *")
        .bind(name)
        .fetch_one(&mut *transaction)
        .await?;
    profiles::insert_defaults(&mut transaction, row.id).await?;
    transaction.commit().await?;
    Ok(row)
}

/// What of a company changes; the rest stays as it is.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct CompanyChanges {
    pub name: Option<String>,
    pub active: Option<bool>,
    pub api_enabled: Option<bool>,
    /// 0: no limit.
    pub rate_per_minute: Option<i32>,
    pub time_zone: Option<String>,
    /// Folded.
    pub stop_words: Option<Vec<String>>,
}

/// Changes a company.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company.
pub async fn update(db: &PgPool, id: CompanyId, changes: CompanyChanges) -> Result<CompanyRow> {
    sqlx::query_as(
        "update companies set
             name = coalesce($2, name),
             active = coalesce($3, active),
             api_enabled = coalesce($4, api_enabled),
             rate_per_minute = coalesce($5, rate_per_minute),
             time_zone = coalesce($6, time_zone),
             stop_words = coalesce($7, stop_words),
             updated_at = now()
         where id = $1 returning *",
    )
    .bind(id)
    .bind(changes.name)
    .bind(changes.active)
    .bind(changes.api_enabled)
    .bind(changes.rate_per_minute)
    .bind(changes.time_zone)
    .bind(changes.stop_words)
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound("company"))
}

/// Every company, in the order they were made.
///
/// # Errors
/// When the database cannot answer.
pub async fn all(db: &PgPool) -> Result<Vec<CompanyRow>> {
    Ok(sqlx::query_as("select * from companies order by id").fetch_all(db).await?)
}

/// One company, or none.
///
/// # Errors
/// When the database cannot answer.
pub async fn find(db: impl Database<'_>, id: CompanyId) -> Result<Option<CompanyRow>> {
    Ok(sqlx::query_as("select * from companies where id = $1").bind(id).fetch_optional(db).await?)
}
