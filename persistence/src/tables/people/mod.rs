//! People who sign in: users of a company, and administrators of the installation. Plain: changed by transactions, not
//! by actors.
//!
//! Their common data ([`sessions`], [`factors`], [`links`]) is stored under the company and the person's id. The
//! company of administrators is [`INSTALLATION`].

pub mod factors;
pub mod links;
pub mod sessions;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgExecutor, PgPool};

use super::text_enum;
use crate::error::with_timeout;
use crate::table::CHANGED_AT;
use crate::{AdminId, CompanyId, Error, Result, UserId};

/// The pseudo company of administrators.
pub const INSTALLATION: CompanyId = CompanyId::new(0);

/// The pseudo company of requests without a session: lookups of links, for example, use its share of the connections.
pub const STRANGERS: CompanyId = CompanyId::new(-1);

/// Maximum memberships checked per sign-in with an e-mail: each has its own password, whose hash takes time.
pub const MEMBERSHIPS_MAX: i64 = 10;

text_enum! {
    /// A language of the panel.
    Language { English = "en", Portuguese = "pt", Spanish = "es" }
}

/// A person who can sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PersonId {
    Admin(AdminId),
    User(CompanyId, UserId),
}

impl PersonId {
    /// The company of their rows.
    pub fn company(self) -> CompanyId {
        match self {
            Self::Admin(_) => INSTALLATION,
            Self::User(company, _) => company,
        }
    }

    /// Their id within the company.
    pub fn id(self) -> i64 {
        match self {
            Self::Admin(id) => id.0,
            Self::User(_, id) => id.0,
        }
    }

    /// The person with this company and id.
    pub fn of(company: CompanyId, id: i64) -> Self {
        if company == INSTALLATION { Self::Admin(AdminId::new(id)) } else { Self::User(company, UserId::new(id)) }
    }

    /// Whether it is an administrator of the installation.
    pub fn is_admin(self) -> bool {
        matches!(self, Self::Admin(_))
    }

    fn table(self) -> &'static str {
        if self.is_admin() { "admins" } else { "users" }
    }

    /// The condition that selects their row; company and id are the statement's first two parameters.
    fn condition(self) -> &'static str {
        // The table of administrators has no company column.
        if self.is_admin() { "$1::bigint = 0 and id = $2" } else { "company_id = $1 and id = $2" }
    }
}

/// The name to display: the e-mail address if the name is empty, as it may be for administrators.
pub fn display_name<'a>(name: &'a str, email: &'a str) -> &'a str {
    if name.is_empty() { email } else { name }
}

/// The data that signing in needs, of a user or of an administrator of the installation: one membership.
#[derive(Clone, Debug, FromRow)]
pub struct Account {
    pub company_id: CompanyId,
    pub id: i64,
    /// `None` for an administrator of the installation.
    pub company_name: Option<String>,
    pub name: String,
    pub password_hash: Option<String>,
}

impl Account {
    /// The person of this membership.
    pub fn person(&self) -> PersonId {
        PersonId::of(self.company_id, self.id)
    }
}

/// Whether these memberships are all of one company.
pub fn are_of_one_company(accounts: &[Account]) -> bool {
    accounts.windows(2).all(|pair| pair[0].company_id == pair[1].company_id)
}

/// The active memberships with an e-mail, of all companies and of the installation, as people may sign in without
/// naming a company. `company` restricts them to one company, or to the installation. Those with a session come first,
/// because any company can add memberships for any e-mail, and these must not displace them from the limited number.
pub async fn accounts(db: &PgPool, email: &str, company: Option<CompanyId>) -> Result<Vec<Account>> {
    let accounts = sqlx::query_as(
        "(select 0::bigint as company_id, id, null::text as company_name, name, password_hash from admins
          where lower(email) = lower($1) and coalesce($2, 0) = 0)
         union all
         (select u.company_id, u.id, c.name, u.name, u.password_hash from users u join companies c on c.id = u.company_id
          where lower(u.email) = lower($1) and u.active and c.active and ($2 is null or u.company_id = $2)
          order by exists (select from person_sessions s where s.company_id = u.company_id and s.person_id = u.id) desc,
              u.password_hash is null, u.company_id
          limit $3)",
    );
    with_timeout(accounts.bind(email).bind(company).bind(MEMBERSHIPS_MAX).fetch_all(db)).await
}

/// A person, as shown in their own account.
#[derive(Clone, Debug, FromRow)]
pub struct Person {
    pub name: String,
    pub email: String,
    pub language: Option<Language>,
    pub password_hash: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// One person, or `None`.
pub async fn find(db: impl PgExecutor<'_>, person: PersonId) -> Result<Option<Person>> {
    let statement = format!(
        "select name, email, language, password_hash, created_at from {} where {}",
        person.table(),
        person.condition()
    );
    let found = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    with_timeout(found.fetch_optional(db)).await
}

/// Changes of a person's own account; unset fields stay unchanged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Changes {
    pub name: Option<String>,
    /// `None`: unchanged; `Some(None)`: the browser's language.
    pub language: Option<Option<Language>>,
}

/// Updates a person's own account. If it has these values already, nothing changes, not even `updated_at`.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when the person does not exist.
pub async fn update(db: impl PgExecutor<'_>, person: PersonId, changes: Changes) -> Result<()> {
    let statement = format!(
        "update {} set name = coalesce($3, name), language = case when $4 then $5 else language end,
             updated_at = case when $3 <> name or $4 and $5 is distinct from language then {CHANGED_AT}
                 else updated_at end
         where {}",
        person.table(),
        person.condition()
    );
    let update = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    let update = update.bind(changes.name).bind(changes.language.is_some()).bind(changes.language.flatten());
    check_found(with_timeout(update.execute(db)).await?.rows_affected())
}

/// Sets the hash of a person's password and invalidates their link.
///
/// # Errors
/// When the database cannot answer; [`Error::NotFound`] when the person does not exist.
pub async fn set_password(db: &mut PgConnection, person: PersonId, hash: &str) -> Result<()> {
    let statement =
        format!("update {} set password_hash = $3, updated_at = now() where {}", person.table(), person.condition());
    let update = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id()).bind(hash);
    check_found(with_timeout(update.execute(&mut *db)).await?.rows_affected())?;
    links::invalidate(db, person).await
}

/// Ends all sessions of a person and invalidates their link.
pub async fn shut_out(db: &mut PgConnection, person: PersonId) -> Result<()> {
    sessions::end_all(&mut *db, person, None).await?;
    links::invalidate(db, person).await
}

/// Locks a person until the transaction ends. Every change of credentials takes this lock first, so that two changes do
/// not deadlock, and a concurrent sign-in either commits before and loses its session, or checks the new credentials.
pub(super) async fn lock(db: &mut PgConnection, person: PersonId) -> Result<()> {
    let lock = format!("select from {} where {} for no key update", person.table(), person.condition());
    let lock = sqlx::query(sqlx::AssertSqlSafe(lock)).bind(person.company()).bind(person.id());
    with_timeout(lock.execute(db)).await?;
    Ok(())
}

/// Whether a person may still sign in with this e-mail and password hash. Locks the person until the transaction ends,
/// so that a later change of the credentials also ends a session that begins in this transaction.
pub async fn may_sign_in(db: &mut PgConnection, person: PersonId, email: &str, hash: Option<&str>) -> Result<bool> {
    let active_only = if person.is_admin() { "" } else { "and active" };
    let statement = format!(
        "select 1 from {} where {} {active_only} and lower(email) = lower($3) and password_hash = $4 for no key update",
        person.table(),
        person.condition()
    );
    let select = sqlx::query_scalar::<_, i32>(sqlx::AssertSqlSafe(statement)).bind(person.company()).bind(person.id());
    Ok(with_timeout(select.bind(email).bind(hash).fetch_optional(db)).await?.is_some())
}

fn check_found(updated_rows: u64) -> Result<()> {
    if updated_rows == 0 { Err(Error::NotFound("person")) } else { Ok(()) }
}
