//! Users: people's memberships in companies. Plain: changed by transactions, not by actors.

use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgExecutor};
use utoipa::ToSchema;

use super::people::{self, PersonId};
use super::profiles;
use crate::error::with_timeout;
use crate::table::{self, Columns, Links, Named, Stamps, Table, Unique};
use crate::{CompanyId, Error, ProfileId, QueueId, Result, UserId, noun};

/// A user: a person as a member of one company. In another company the same person is another user.
#[derive(Clone, Debug, FromRow, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct User {
    pub id: UserId,
    #[schema(example = "Ana Souza")]
    pub name: String,
    #[schema(example = "ana@example.com")]
    pub email: String,
    #[schema(example = true)]
    pub active: bool,
    /// The permission profile.
    #[sqlx(json(nullable))]
    pub profile: Option<Named<ProfileId>>,
    /// The user's queues.
    #[sqlx(json)]
    pub queues: Vec<Named<QueueId>>,
    #[sqlx(flatten)]
    #[serde(flatten)]
    pub stamps: Stamps,
}

impl Table for User {
    const NAME: &'static str = "users";
    const NOUN: &'static str = "user";
    /// The password hash is not selected.
    const COLUMNS: &'static str = "users.id, users.name, users.email, users.active, users.created_at, users.updated_at,
        (select jsonb_build_object('id', p.id, 'name', p.name) from profiles p
            where p.company_id = users.company_id and p.id = users.profile_id) as profile,
        coalesce((select jsonb_agg(jsonb_build_object('id', q.id, 'name', q.name) order by q.id)
            from queue_users m join queues q on q.company_id = m.company_id and q.id = m.queue_id
            where m.company_id = users.company_id and m.user_id = users.id), '[]') as queues";
    const UNIQUE: &'static [Unique] = &[Unique::ignoring_case("users_company_email", "email")];
    const SEARCH: &'static [&'static str] = &["hotline_fold(name || E'\\n' || email)"];
    type Id = UserId;
}

/// The condition that a user works in a queue, as the start of an `exists` subquery; `= <the queue's id>` must follow.
pub const WORKS_IN_QUEUE: &str =
    "select from queue_users m where m.company_id = users.company_id and m.user_id = users.id and m.queue_id";

/// The queues of a user.
pub const QUEUES: Links<noun::User, noun::Queue> = Links::new("queue_users", "user_id", "queue_id");

/// The user of a company with this e-mail, if any.
pub async fn find_by_email(db: impl PgExecutor<'_>, company: CompanyId, email: &str) -> Result<Option<UserId>> {
    let select = sqlx::query_scalar("select id from users where company_id = $1 and lower(email) = lower($2)");
    with_timeout(select.bind(company).bind(email).fetch_optional(db)).await
}

/// Whether these columns change the user's e-mail. A change of case is none: people sign in with either.
pub async fn changes_email(db: impl PgExecutor<'_>, company: CompanyId, id: UserId, columns: &Columns) -> Result<bool> {
    match columns.text("email") {
        Some(email) => Ok(find_by_email(db, company, email).await? != Some(id)),
        None => Ok(false),
    }
}

/// Creates a user without queues. If `columns` has no profile, the user gets the default one.
///
/// # Errors
/// [`Error::Taken`] when the e-mail is taken; [`Error::NotFound`] when the company has no such profile.
pub async fn insert(db: &mut PgConnection, company: CompanyId, mut columns: Columns) -> Result<User> {
    if columns.is_none("profileId") {
        columns.set("profileId", profiles::find_default(&mut *db, company).await?);
    }
    table::insert(db, company, &columns).await
}

/// Updates the given columns; if the profile is removed, the user gets the default one. A changed password or e-mail,
/// or deactivation, ends all sessions of the user and invalidates their password link.
///
/// # Errors
/// As [`insert`], and [`Error::NotFound`] when there is no such user.
pub async fn update(db: &mut PgConnection, company: CompanyId, id: UserId, mut columns: Columns) -> Result<User> {
    if columns.has("profileId") && columns.is_none("profileId") {
        columns.set("profileId", profiles::find_default(&mut *db, company).await?);
    }
    let before = lock_credentials(&mut *db, company, id).await?;
    let changed = table::update(&mut *db, company, id, &columns).await?;
    let after = lock_credentials(&mut *db, company, id).await?;
    if before.zip(after).is_some_and(|(before, after)| before.are_revoked_by(&after)) {
        people::shut_out(db, PersonId::User(company, id)).await?;
    }
    Ok(changed)
}

/// What a user signs in with, and whether they may.
#[derive(FromRow)]
struct Credentials {
    email: String,
    password_hash: Option<String>,
    active: bool,
}

impl Credentials {
    /// Whether a change to `after` ends the sessions that began with these credentials.
    fn are_revoked_by(&self, after: &Self) -> bool {
        // Each hash has its own salt, so setting the same password again counts as a change.
        self.email != after.email || self.password_hash != after.password_hash || self.active && !after.active
    }
}

/// Locks the credentials of a user until the transaction ends.
pub async fn lock(db: &mut PgConnection, company: CompanyId, id: UserId) -> Result<()> {
    lock_credentials(db, company, id).await?;
    Ok(())
}

/// The current credentials of a user. Locks the row in `users` until the transaction ends; to be called before any
/// other row of the user is locked.
async fn lock_credentials(db: &mut PgConnection, company: CompanyId, id: UserId) -> Result<Option<Credentials>> {
    let select = sqlx::query_as(
        "select lower(email) as email, password_hash, active from users where company_id = $1 and id = $2
         for no key update",
    );
    with_timeout(select.bind(company).bind(id).fetch_optional(db)).await
}

/// Maximum number of removed users whose names a company keeps. Every process has them in memory, about 100 bytes each.
pub const FORMER_USERS_MAX: i64 = 100_000;

/// Ends a membership. The user's name is kept for their closed tickets and scheduled messages; beyond
/// [`FORMER_USERS_MAX`], the names of the users who left first are deleted.
///
/// # Errors
/// [`Error::NotFound`] when there is no such user.
pub async fn remove(db: impl PgExecutor<'_>, company: CompanyId, id: UserId) -> Result<()> {
    // `exceeding` does not see the row that `kept` may insert, so its offset is reduced by that row.
    let removed: i64 = with_timeout(
        sqlx::query_scalar(
            "with gone as (delete from users where company_id = $1 and id = $2 returning id, name),
             kept as (
                 insert into former_users (company_id, id, name)
                 select $1, id, name from gone
                 where exists (select from tickets where company_id = $1 and user_id = $2)
                     or exists (select from schedules where company_id = $1 and user_id = $2)
                 returning id),
             exceeding as (
                 delete from former_users where company_id = $1 and id = any (array(
                     select id from former_users where company_id = $1
                     order by left_at desc, id desc offset $3 - (select count(*) from kept) limit 10000)))
             select count(*) from gone",
        )
        .bind(company)
        .bind(id)
        .bind(FORMER_USERS_MAX)
        .fetch_one(db),
    )
    .await?;
    if removed == 0 { Err(Error::NotFound("user")) } else { Ok(()) }
}
