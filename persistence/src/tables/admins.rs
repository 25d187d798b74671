//! Administrators of the installation, who belong to no company. Plain; created on the command line.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};

use super::people::{self, PersonId, factors};
use crate::{AdminId, Error, Result};

/// One administrator, without the password's hash.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct AdminRow {
    pub id: AdminId,
    pub email: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Creates an administrator; the hash comes from [`crate::password::Password::hash`].
///
/// # Errors
/// When the database cannot answer; [`Error::Taken`] when the e-mail is taken, ignoring case.
pub async fn insert(db: &PgPool, email: &str, password_hash: &str) -> Result<AdminRow> {
    sqlx::query_as(
        "insert into admins (email, password_hash) values ($1, $2) returning id, email, created_at, updated_at",
    )
    .bind(email)
    .bind(password_hash)
    .fetch_one(db)
    .await
    .map_err(|error| Error::of_constraint(error, [("admins_email", Error::Taken("e-mail".into()))]))
}

/// Sets an administrator's password, ends all their sessions and invalidates their link; with `and_factor` also removes
/// their second factor.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is none with this e-mail.
pub async fn reset(db: &mut PgConnection, email: &str, password_hash: &str, and_factor: bool) -> Result<AdminRow> {
    let row: Option<AdminRow> = sqlx::query_as(
        "update admins set password_hash = $2, updated_at = now() where lower(email) = lower($1)
         returning id, email, created_at, updated_at",
    )
    .bind(email)
    .bind(password_hash)
    .fetch_optional(&mut *db)
    .await?;
    let row = row.ok_or(Error::NotFound("administrator"))?;
    let person = PersonId::Admin(row.id);
    if and_factor {
        factors::remove(&mut *db, person).await?;
    }
    people::shut_out(db, person).await?;
    Ok(row)
}
