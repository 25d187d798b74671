//! Administrators of the installation, who belong to no company and are created on the command line. Plain: changed by
//! transactions, not by actors.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};

use super::people::{self, PersonId, factors};
use crate::error::with_timeout;
use crate::{AdminId, Error, Result};

/// One administrator, without the password's hash.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
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
    let insert = sqlx::query_as(
        "insert into admins (email, password_hash) values ($1, $2) returning id, email, created_at, updated_at",
    );
    with_timeout(insert.bind(email).bind(password_hash).fetch_one(db))
        .await
        .map_err(|error| error.map_constraint([("admins_email", Error::Taken("e-mail".into()))]))
}

/// An administrator in a list.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct AdminSummary {
    pub id: AdminId,
    pub email: String,
    pub name: String,
    /// Whether a second factor is confirmed.
    pub second_factor: bool,
    /// When one of their open sessions was last used; `None` without an open session.
    pub last_seen_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// All administrators in order of creation, or the one with this e-mail, ignoring case.
pub async fn all(db: &PgPool, email: Option<&str>) -> Result<Vec<AdminSummary>> {
    let select = sqlx::query_as(
        "select a.id, a.email, a.name, a.created_at,
             exists (select from second_factors f
                 where f.company_id = 0 and f.person_id = a.id and f.confirmed_at is not null) as second_factor,
             (select max(s.seen_at) from person_sessions s
                 where s.company_id = 0 and s.person_id = a.id and s.state = 'open') as last_seen_at
         from admins a where $1::text is null or lower(a.email) = lower($1) order by a.id",
    );
    with_timeout(select.bind(email).fetch_all(db)).await
}

/// Deletes an administrator with their sessions, second factor and link ([`people::links`]). Returns `None` for the
/// last one, which is not deleted.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is none with this e-mail.
pub async fn remove(db: &mut PgConnection, email: &str) -> Result<Option<AdminRow>> {
    // Locks all administrators, so that two concurrent deletions cannot remove the last two.
    let lock = sqlx::query_scalar("select id from admins order by id for update");
    let all: Vec<AdminId> = with_timeout(lock.fetch_all(&mut *db)).await?;
    let select = sqlx::query_as("select id, email, created_at, updated_at from admins where lower(email) = lower($1)");
    let row: Option<AdminRow> = with_timeout(select.bind(email).fetch_optional(&mut *db)).await?;
    let row = row.ok_or(Error::NotFound("administrator"))?;
    if all.len() <= 1 {
        return Ok(None);
    }
    let person = PersonId::Admin(row.id);
    people::shut_out(&mut *db, person).await?;
    factors::remove(&mut *db, person).await?;
    with_timeout(sqlx::query("delete from admins where id = $1").bind(row.id).execute(db)).await?;
    Ok(Some(row))
}

/// Sets an administrator's password, ends all their sessions and invalidates their link ([`people::links`]). With
/// `remove_second_factor`, their second factor is removed too.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is none with this e-mail.
pub async fn reset_password(
    db: &mut PgConnection,
    email: &str,
    password_hash: &str,
    remove_second_factor: bool,
) -> Result<AdminRow> {
    let update = sqlx::query_as(
        "update admins set password_hash = $2, updated_at = now() where lower(email) = lower($1)
         returning id, email, created_at, updated_at",
    );
    let row: Option<AdminRow> = with_timeout(update.bind(email).bind(password_hash).fetch_optional(&mut *db)).await?;
    let row = row.ok_or(Error::NotFound("administrator"))?;
    let person = PersonId::Admin(row.id);
    if remove_second_factor {
        factors::remove(&mut *db, person).await?;
    }
    people::shut_out(db, person).await?;
    Ok(row)
}
