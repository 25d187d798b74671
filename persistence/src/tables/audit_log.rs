//! The audit log: what administrators and integrations change in the setup, and who signs in. An entry has the actor,
//! the time, the network address, the action and its outcome; it is written before the action starts.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{FromRow, PgExecutor};

use super::people::PersonId;
use super::text_enum;
use crate::error::with_timeout;
use crate::partitions::Partitions;
use crate::select::{Page, PageRequest, Select};
use crate::{CompanyId, Database, Id, Result, TokenId};

/// The id of an entry.
pub type AuditEntryId = Id<AuditEntry>;

/// Retention of entries in days: a year, and some time to review it.
pub const RETENTION_DAYS: i64 = 400;

/// Partitions of about a month: dropping one is cheap.
const PARTITIONS: Partitions = Partitions { table: "audit_log", span: TimeDelta::days(30) };

text_enum! {
    /// The kind of actor.
    ActorKind {
        /// A user of the company.
        User = "user",
        /// An administrator of the installation.
        Admin = "admin",
        /// An integration, by its token.
        Integration = "integration",
    }
}

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A user, or an administrator of the installation.
    Person(PersonId),
    /// An integration.
    Token(TokenId),
}

impl Actor {
    fn kind(self) -> ActorKind {
        match self {
            Self::Person(person) if person.is_admin() => ActorKind::Admin,
            Self::Person(_) => ActorKind::User,
            Self::Token(_) => ActorKind::Integration,
        }
    }

    fn id(self) -> i64 {
        match self {
            Self::Person(person) => person.id(),
            Self::Token(token) => token.0,
        }
    }
}

impl From<PersonId> for Actor {
    fn from(person: PersonId) -> Self {
        Self::Person(person)
    }
}

/// One entry.
#[derive(Clone, Debug, FromRow)]
pub struct AuditEntry {
    pub id: AuditEntryId,
    pub created_at: DateTime<Utc>,
    pub actor_kind: ActorKind,
    pub actor_id: i64,
    pub actor_name: String,
    pub address: Option<String>,
    pub action: String,
    pub target_id: Option<String>,
    pub target_name: Option<String>,
    /// The response's HTTP status; `None` while the action is running, and forever if the process died meanwhile.
    pub status: Option<i16>,
}

/// An action that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    pub actor: Actor,
    pub actor_name: &'a str,
    pub address: Option<&'a str>,
    pub action: &'a str,
    pub target_id: Option<&'a str>,
}

/// An entry whose action is running.
#[derive(Clone, Copy, Debug)]
pub struct RunningEntry {
    company: CompanyId,
    id: AuditEntryId,
    created_at: DateTime<Utc>,
}

/// Records that an actor starts an action, in the log of a company or, with [`super::people::INSTALLATION`], of the
/// installation.
///
/// # Errors
/// When the database cannot answer: then the action must not be performed.
pub async fn begin(db: impl PgExecutor<'_> + Copy, company: CompanyId, new: NewEntry<'_>) -> Result<RunningEntry> {
    write(db, company, new, None).await
}

/// Records an action with its outcome, where both are known at once: a failed sign-in.
pub async fn record(db: impl PgExecutor<'_> + Copy, company: CompanyId, new: NewEntry<'_>, status: u16) -> Result<()> {
    write(db, company, new, Some(status)).await?;
    Ok(())
}

async fn write(
    db: impl PgExecutor<'_> + Copy,
    company: CompanyId,
    new: NewEntry<'_>,
    status: Option<u16>,
) -> Result<RunningEntry> {
    let write = async {
        match insert(db, company, new, status).await {
            // The row's partition was attached after the statement had chosen the default one. The retry finds it.
            Err(sqlx::Error::Database(error)) if error.is_check_violation() => insert(db, company, new, status).await,
            outcome => outcome,
        }
    };
    let (id, created_at) = with_timeout(write).await?;
    Ok(RunningEntry { company, id, created_at })
}

async fn insert(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    new: NewEntry<'_>,
    status: Option<u16>,
) -> sqlx::Result<(AuditEntryId, DateTime<Utc>)> {
    let insert = sqlx::query_as(
        "insert into audit_log (company_id, actor_kind, actor_id, actor_name, address, action, target_id, status)
         values ($1, $2, $3, $4, $5, $6, $7, $8) returning id, created_at",
    );
    let insert = insert.bind(company).bind(new.actor.kind()).bind(new.actor.id()).bind(new.actor_name);
    let insert = insert.bind(new.address).bind(new.action).bind(new.target_id);
    insert.bind(status.map(|status| i16::try_from(status).unwrap_or(i16::MAX))).fetch_one(db).await
}

/// Records the outcome of an action, and the record it changed. An entry that already has a target id keeps it.
pub async fn end(
    db: impl PgExecutor<'_>,
    entry: RunningEntry,
    status: u16,
    (target_id, target_name): (Option<&str>, Option<&str>),
) -> Result<()> {
    let update = sqlx::query(
        "update audit_log set status = $4, target_id = coalesce(target_id, $5), target_name = $6
         where company_id = $1 and id = $2 and created_at = $3",
    );
    let update = update.bind(entry.company).bind(entry.id).bind(entry.created_at);
    let update = update.bind(i16::try_from(status).unwrap_or(i16::MAX)).bind(target_id).bind(target_name);
    with_timeout(update.execute(db)).await?;
    Ok(())
}

/// The conditions of a list.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub search: Option<String>,
    pub action: Option<String>,
    pub created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
}

/// A page of entries.
pub async fn list(
    db: impl Database<'_>,
    company: CompanyId,
    filter: &AuditFilter,
    page: PageRequest,
) -> Result<Page<AuditEntry>> {
    Select::new(
        "select id, created_at, actor_kind, actor_id, actor_name, address, action, target_id, target_name, status
         from audit_log",
        "company_id",
        company,
    )
    .contains(
        "hotline_fold(actor_name || E'\\n' || coalesce(target_name, '') || E'\\n' || coalesce(address, ''))",
        filter.search.as_deref(),
    )
    .mark_heavy_if(filter.action.is_some())
    .equals("action", filter.action.clone())
    .between("created_at", filter.created)
    .page(db, "id", page)
    .await
}

/// Creates the partitions of this month and the next ones.
///
/// # Errors
/// When the database cannot answer, or the table is locked; the next run continues.
pub async fn create_partitions(db: impl Database<'_>, now: DateTime<Utc>) -> Result<()> {
    PARTITIONS.create_ahead(db, now).await
}

/// Creates upcoming partitions and drops expired ones.
///
/// # Errors
/// As [`create_partitions`].
pub async fn rotate_partitions(db: impl Database<'_>, now: DateTime<Utc>) -> Result<()> {
    create_partitions(db, now).await?;
    PARTITIONS.drop_expired(db, now - TimeDelta::days(RETENTION_DAYS)).await
}
