//! Users: people's memberships in a company. Plain.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgPool};

use crate::{CompanyId, ProfileId, Result, UserId};

/// One user as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct UserRow {
    pub id: UserId,
    #[serde(skip)]
    pub company_id: CompanyId,
    pub name: String,
    pub email: String,
    pub profile_id: Option<ProfileId>,
    pub active: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Creates a user.
///
/// # Errors
/// When the database cannot answer or the e-mail is taken.
pub async fn insert(db: &PgPool, company: CompanyId, name: &str, email: &str) -> Result<UserRow> {
    Ok(sqlx::query_as(
        "insert into users (company_id, name, email) values ($1, $2, $3)
         returning id, company_id, name, email, profile_id, active, created_at, updated_at",
    )
    .bind(company)
    .bind(name)
    .bind(email)
    .fetch_one(db)
    .await?)
}
