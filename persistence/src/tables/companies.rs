//! Companies: the tenants. Plain; made on the command line.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgPool};

use crate::{CompanyId, Result};

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
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Creates a company.
///
/// # Errors
/// When the database cannot answer.
pub async fn insert(db: &PgPool, name: &str) -> Result<CompanyRow> {
    Ok(sqlx::query_as("insert into companies (name) values ($1) returning *").bind(name).fetch_one(db).await?)
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
pub async fn find(db: &PgPool, id: CompanyId) -> Result<Option<CompanyRow>> {
    Ok(sqlx::query_as("select * from companies where id = $1").bind(id).fetch_optional(db).await?)
}
