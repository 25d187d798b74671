//! Users: people's memberships in a company. Plain.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{FromRow, PgExecutor};

use crate::error::within;
use crate::select::{Listed, Page, Select};
use crate::table::{Named, Table, Unique, explain, explain_taken};
use crate::{CompanyId, Database, Error, ProfileId, QueueId, Result, UserId};

/// One user with what they may do and where they work. The password's hash is read by nobody here.
#[derive(Clone, Debug, FromRow)]
#[allow(missing_docs)]
pub struct UserRow {
    pub id: UserId,
    pub name: String,
    pub email: String,
    pub active: bool,
    pub profile: Option<Json<Named<ProfileId>>>,
    pub queues: Json<Vec<Named<QueueId>>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Table for UserRow {
    const NAME: &'static str = "users";
    const SELECT: &'static str =
        "select users.id, users.name, users.email, users.active, users.created_at, users.updated_at,
            (select jsonb_build_object('id', p.id, 'name', p.name) from profiles p
                where p.company_id = users.company_id and p.id = users.profile_id) as profile,
            coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'name', q.name) order by q.id)
                from queue_users m join queues q on q.company_id = m.company_id and q.id = m.queue_id
                where m.company_id = users.company_id and m.user_id = users.id), '[]') as queues
        from users";
    type Id = UserId;
}

const UNIQUE: Unique = Unique {
    constraint: "users_company_email",
    field: "email",
    holder: "select id from users where company_id = $1 and lower(email) = $2",
};

/// What the list may ask for.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct UserFilter {
    pub search: Option<String>,
    pub active: Option<bool>,
    pub queue_id: Option<QueueId>,
    pub profile_id: Option<ProfileId>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    pub updated: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// What is written of a user beside name and e-mail. `Some(None)` clears.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct UserFields<'a> {
    pub password_hash: Option<Option<&'a str>>,
    pub profile_id: Option<Option<ProfileId>>,
    pub active: Option<bool>,
}

/// A page of users.
///
/// # Errors
/// When the database cannot answer.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &UserFilter,
    page: Page,
) -> Result<Listed<UserRow>> {
    Select::new(UserRow::SELECT, "users.company_id", company)
        .contains("hotline_fold(users.name || E'\\n' || users.email)", filter.search.as_deref())
        .equals("users.active", filter.active)
        .equals("users.profile_id", filter.profile_id)
        .related(
            "select from queue_users m where m.company_id = users.company_id and m.user_id = users.id and m.queue_id",
            filter.queue_id,
        )
        .between("users.created_at", filter.created)
        .between("users.updated_at", filter.updated)
        .page(db, "users.id", page)
        .await
}

/// Creates a user, in no queue yet; without a profile of their own they have an agent's.
///
/// # Errors
/// [`Error::Taken`] when the e-mail is; [`Error::NotFound`] when the company has no such profile.
pub async fn insert(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    name: &str,
    email: &str,
    fields: UserFields<'_>,
) -> Result<UserId> {
    within(
        sqlx::query_scalar(
            "insert into users (company_id, name, email, password_hash, profile_id, active)
             values ($1, $2, $3, $4, coalesce($5, (select id from profiles where company_id = $1 and name = 'Agent')),
                 coalesce($6, true)) returning id",
        )
        .bind(company)
        .bind(name)
        .bind(email)
        .bind(fields.password_hash.flatten())
        .bind(fields.profile_id.flatten())
        .bind(fields.active)
        .fetch_one(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, Some(&email.to_lowercase())))
}

/// Changes what is given.
///
/// # Errors
/// [`Error::NotFound`] when there is no such user or profile; [`Error::Taken`] when the e-mail is.
pub async fn update(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    id: UserId,
    name: Option<&str>,
    email: Option<&str>,
    fields: UserFields<'_>,
) -> Result<()> {
    let updated = within(
        sqlx::query(
            "update users set name = coalesce($3, name), email = coalesce($4, email),
                 password_hash = case when $5 then $6 else password_hash end,
                 profile_id = case when $7 then coalesce($8, (select id from profiles
                     where company_id = $1 and name = 'Agent')) else profile_id end,
                 active = coalesce($9, active),
                 updated_at = now()
             where company_id = $1 and id = $2",
        )
        .bind(company)
        .bind(id)
        .bind(name)
        .bind(email)
        .bind(fields.password_hash.is_some())
        .bind(fields.password_hash.flatten())
        .bind(fields.profile_id.is_some())
        .bind(fields.profile_id.flatten())
        .bind(fields.active)
        .execute(db),
    )
    .await
    .map_err(explain_taken(&UNIQUE, company, email.map(str::to_lowercase).as_deref()))?;
    if updated.rows_affected() == 0 { Err(Error::NotFound("user")) } else { Ok(()) }
}

/// Ends a membership. Closed tickets that are assigned to the user go on to say so.
///
/// # Errors
/// [`Error::NotFound`] when there is no such user.
pub async fn remove(db: impl PgExecutor<'_>, company: CompanyId, id: UserId) -> Result<()> {
    let removed: i64 = within(
        sqlx::query_scalar(
            "with gone as (delete from users where company_id = $1 and id = $2 returning id, name),
             kept as (
                 insert into former_users (company_id, id, name)
                 select $1, id, name from gone where exists (select from tickets where company_id = $1 and user_id = $2))
             select count(*) from gone",
        )
        .bind(company)
        .bind(id)
        .fetch_one(db),
    )
    .await?;
    if removed == 0 { Err(Error::NotFound("user")) } else { Ok(()) }
}

/// Makes these the queues a user works in.
///
/// # Errors
/// [`Error::NotFound`] when one of them, or the user, is not the company's.
pub async fn set_queues(db: impl PgExecutor<'_>, company: CompanyId, user: UserId, queues: &[QueueId]) -> Result<()> {
    within(
        sqlx::query(
            "with gone as (
                 delete from queue_users where company_id = $1 and user_id = $2 and queue_id <> all($3))
             insert into queue_users (company_id, queue_id, user_id)
             select $1, queue_id, $2 from (select distinct unnest($3) as queue_id order by queue_id) wanted
             on conflict do nothing",
        )
        .bind(company)
        .bind(user)
        .bind(queues)
        .execute(db),
    )
    .await
    .map_err(explain(&[]))?;
    Ok(())
}
