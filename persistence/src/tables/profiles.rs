//! Permission profiles of users. Plain: changed by transactions, not by actors.
//!
//! A company starts with three profiles; the database's function `hotline_default_profiles` defines their permissions.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection, PgExecutor};

use super::tokens::Permissions;
use crate::document::{self, Document};
use crate::error::with_timeout;
use crate::table::{Table, Unique};
use crate::{CompanyId, Database, Error, ProfileId, Result, UserId};

/// One profile as stored.
#[derive(Clone, Debug, Serialize, FromRow)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRow {
    pub id: ProfileId,
    pub company_id: CompanyId,
    pub name: String,
    #[sqlx(try_from = "Document<Permissions>")]
    pub permissions: Json<Permissions>,
    pub sees_all_cards: bool,
    pub administers: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for ProfileRow {
    const NAME: &'static str = "profiles";
    const NOUN: &'static str = "profile";
    const UNIQUE: &'static [Unique] =
        &[Unique::new("profiles_company_id_name_key", "name"), Unique::by_appearance("profiles_looks", "name")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name)"];
    type Id = ProfileId;
}

/// A profile to create.
#[derive(Clone, Debug, Default)]
pub struct NewProfile<'a> {
    pub name: &'a str,
    pub permissions: Permissions,
    pub sees_all_cards: bool,
}

/// Creates a profile.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when there is no such company, [`Error::Taken`] when it has a
/// profile of this name.
pub async fn insert(db: impl Database<'_>, company: CompanyId, new: NewProfile<'_>) -> Result<ProfileRow> {
    let insert = sqlx::query_as(
        "insert into profiles (company_id, name, permissions, sees_all_cards) values ($1, $2, $3, $4) returning *",
    )
    .bind(company)
    .bind(new.name)
    .bind(Json(new.permissions))
    .bind(new.sees_all_cards);
    with_timeout(insert.fetch_one(db)).await.map_err(|error| {
        error.map_constraint([
            ("profiles_company_id_fkey", Error::NotFound("company")),
            ("profiles_company_id_name_key", Error::Taken("name".into())),
            ("profiles_looks", Error::Taken("name".into())),
        ])
    })
}

/// Creates the default profiles of a company: `Administrator`, `Supervisor` and `Agent`.
pub async fn insert_defaults(db: &mut PgConnection, company: CompanyId) -> Result<()> {
    let insert = sqlx::query("select hotline_default_profiles($1)");
    with_timeout(insert.bind(company).execute(db)).await?;
    Ok(())
}

/// Locks a company's profiles until the transaction ends, so that checks for a remaining administrator are serialized.
/// Assigning a profile to a user takes a weaker lock and does not wait for it, so there is no deadlock.
pub async fn lock(db: &mut PgConnection, company: CompanyId) -> Result<()> {
    let lock = sqlx::query("select from profiles where company_id = $1 order by id for no key update");
    with_timeout(lock.bind(company).execute(db)).await?;
    Ok(())
}

/// Number of a company's profiles that administer it.
pub async fn count_administering(db: &mut PgConnection, company: CompanyId) -> Result<i64> {
    let count = sqlx::query_scalar("select count(*) from profiles where company_id = $1 and administers");
    with_timeout(count.bind(company).fetch_one(db)).await
}

/// Whether an active user other than `except` administers a company. After [`lock`], the answer stays true until the
/// transaction ends.
pub async fn has_administrator(db: impl PgExecutor<'_>, company: CompanyId, except: Option<UserId>) -> Result<bool> {
    let select = sqlx::query_scalar(
        "select exists (select from users u join profiles p on p.company_id = u.company_id and p.id = u.profile_id
             where u.company_id = $1 and u.active and p.administers and ($2::bigint is null or u.id <> $2))",
    );
    with_timeout(select.bind(company).bind(except).fetch_one(db)).await
}

/// The default profile of users, `Agent`; `None` if the company no longer has one of this name.
pub async fn find_default(db: impl PgExecutor<'_>, company: CompanyId) -> Result<Option<ProfileId>> {
    let select = sqlx::query_scalar("select id from profiles where company_id = $1 and name = 'Agent'");
    with_timeout(select.bind(company).fetch_optional(db)).await
}

/// The profiles with this id, at most two, of one company or of all: an imported company keeps the ids of its profiles.
pub async fn of_id(db: impl PgExecutor<'_>, id: ProfileId, company: Option<CompanyId>) -> Result<Vec<ProfileRow>> {
    let select = sqlx::query(
        "select * from profiles where id = $1 and company_id = coalesce($2, company_id) order by company_id limit 2",
    );
    Ok(document::read_all(&with_timeout(select.bind(id).bind(company).fetch_all(db)).await?))
}

/// Profiles in the order of creation, of one company or of all.
pub async fn all(db: impl Database<'_>, company: Option<CompanyId>) -> Result<Vec<ProfileRow>> {
    let all = sqlx::query("select * from profiles where company_id = coalesce($1, company_id) order by id");
    Ok(document::read_all(&with_timeout(all.bind(company).fetch_all(db)).await?))
}
