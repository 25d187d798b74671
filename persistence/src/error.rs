//! Errors of the store, classified by what a caller can do about them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;

use crate::unanswered;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The company has no such row.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// A unique value already belongs to another row; nothing was changed.
    #[error("this {} is already in use", .0.field)]
    Taken(TakenValue),
    /// The row is not in the state that the caller expects; nothing was changed.
    #[error("the record has been changed")]
    Changed,
    /// Other records refer to the row.
    #[error("the record is in use")]
    InUse,
    /// The store is unavailable at the moment; nothing was changed. A retry may succeed.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// It is unknown whether the change was made: the database did not answer the commit, or the log stopped earlier.
    #[error("it is unknown whether the change was made: {0}")]
    Unknown(String),
    /// Another process of the cluster serves the company, or is about to; nothing was changed.
    #[error("the company is served by another process")]
    Elsewhere,
    /// No database can be reached at the given address.
    #[error("PostgreSQL at {place} cannot be reached: {reason}")]
    Unreachable {
        /// The address and user.
        place: String,
        /// The cause.
        reason: String,
        /// Why, and so whether a retry may succeed without action by the operator.
        reach: Reach,
    },
    /// The database is not what Hotline needs.
    #[error(transparent)]
    Unsuitable(#[from] crate::unsuitable::UnsuitableDatabase),
    /// A connection pooler answers instead of PostgreSQL.
    #[error(
        "a connection pooler such as PgBouncer answers at {place}. Hotline has its own pool and depends on sessions of \
         its own, so --database-url must name PostgreSQL itself"
    )]
    Pooler {
        /// The address and user.
        place: String,
    },
    /// The database returned an error that a retry cannot fix.
    #[error("database: {}", without_values(.0))]
    Database(sqlx::Error),
    /// The migrations could not be applied.
    #[error("could not migrate the database: {}", describe_migration_error(.0))]
    Migrate(sqlx::migrate::MigrateError),
    /// The schema cannot be used, or cannot be migrated.
    #[error(transparent)]
    Schema(#[from] crate::migration::SchemaError),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] crate::journal::JournalError),
    /// This release cannot decode a record of the journal.
    #[error("journal entry {seq} cannot be read: {reason}")]
    UndecodableEntry {
        /// The entry's sequence number.
        seq: u64,
        /// The decoder's error.
        reason: String,
    },
    /// The changes of a decision are not a valid entry of the log, which is a bug; nothing was appended.
    #[error("the changes cannot be recorded: {0}")]
    InvalidEntry(String),
    /// A secret cannot be sealed or opened.
    #[error(transparent)]
    Key(#[from] crate::sealed::KeyError),
    /// A newer release migrated the database, and this one can no longer serve it.
    #[error(transparent)]
    Newer(#[from] NewerSchema),
    /// Another process is the writer of this database.
    #[error("another Hotline process serves this database")]
    NotOwner,
    /// Another session is still the writer of this database, although the session of a dead process would have ended by
    /// now.
    #[error(
        "another Hotline process serves this database: {}. Stop that process. If its machine no longer exists, end \
         its session with `select pg_terminate_backend({})`", .0, .0.pid
    )]
    Held(crate::lock_holder::LockHolder),
    /// The database has lost changes that it had committed for this life of a cluster member, most likely in a failover
    /// to a standby that did not have them yet. Memory is ahead of the tables, and must no longer be served.
    #[error(
        "the database has lost committed changes: it contains the changes of this process up to \
         {watermark}, but has committed them up to {committed}. Most likely it failed over to a standby that lagged"
    )]
    LostCommits {
        /// The last entry in the database.
        watermark: crate::journal::Seq,
        /// The last entry whose commit was acknowledged.
        committed: crate::journal::Seq,
    },
    /// The journal contains acknowledged changes that the database lacks, and another process has written to the
    /// database since. It may have reused their ids, so they must be examined before they are written.
    #[error(
        "the journal {journal} contains changes that are missing from the database, and another Hotline \
         process has written to the database since. Keep the journal folder, and examine it before you continue"
    )]
    Superseded {
        /// The journal's id.
        journal: String,
    },
    /// The database lacks entries that it had confirmed to the journal: most likely it was restored from a backup. A
    /// replay would write live rows whose plain rows are missing, and ids would be assigned twice.
    #[error(
        "the database is older than the journal in `{}`: it contains the entries of journal {journal} up to \
         {watermark}, but entries up to {confirmed} were confirmed. Nothing was changed. If the database was \
         restored from a backup, also restore the journal folder of the same backup, or restore a newer backup. To \
         continue with the older database and lose later changes, move the journal folder away; the next start creates \
         a new one", dir.display()
    )]
    Older {
        /// Directory of the journal.
        dir: std::path::PathBuf,
        /// The journal's id.
        journal: String,
        /// The last entry in the database.
        watermark: crate::journal::Seq,
        /// The last entry that the database had confirmed.
        confirmed: crate::journal::Seq,
    },
    /// The journal of an earlier run contains changes that a process without a journal would never write.
    #[error(
        "the journal in `{}` contains changes that are missing from the database, and a process of a \
         cluster has no journal. To write them, start Hotline once without --cluster-listen, and stop it", dir.display()
    )]
    UnreplayedJournal {
        /// Directory of the journal.
        dir: std::path::PathBuf,
    },
    /// The clocks of this machine and of the database differ too much.
    #[error(
        "the clock of this machine differs from the database's by {} ms; a process of a cluster may \
         differ by at most {} ms. Set the clock, or run a time service", difference.as_millis(), maximum.as_millis()
    )]
    ClockDifference {
        /// The difference.
        difference: Duration,
        /// The maximum difference.
        maximum: Duration,
    },
    /// A member of the cluster uses a version of the cluster protocol that this release does not support.
    #[error(
        "the process {node} of this cluster uses version {version} of the cluster protocol, and this release \
         uses version {own_version}; they may differ by one. Upgrade through the releases in \
         between, or stop all processes first"
    )]
    IncompatibleMember {
        /// The member's machine.
        node: String,
        /// Its version of the protocol.
        version: i32,
        /// The version of this release.
        own_version: i32,
    },
    /// The journal contains changes for another database.
    #[error("the journal {journal} contains changes of another database")]
    ForeignJournal {
        /// The journal's id.
        journal: String,
    },
}

/// Why a database cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// No server answers, or it accepts no connections now: it may come back.
    Away,
    /// The server refuses this user or password.
    Denied,
    /// The server has no such database, or the connection's settings are wrong.
    Misconfigured,
}

impl Reach {
    /// Classifies the error of an attempt to connect.
    pub(crate) fn of(error: &sqlx::Error) -> Self {
        let code = error.as_database_error().and_then(|error| error.code());
        let starts_with = |prefix: &str| code.as_ref().is_some_and(|code| code.starts_with(prefix));
        match error {
            // Classes 28 (invalid authorization) and 3D (no such database); 42501: insufficient privilege.
            _ if starts_with("28") || starts_with("42501") => Self::Denied,
            _ if starts_with("3D") => Self::Misconfigured,
            sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Self::Misconfigured,
            _ => Self::Away,
        }
    }
}

/// The database was migrated by a newer release.
#[derive(Debug, thiserror::Error)]
#[error(
    "this database was migrated by Hotline {release} and needs a release with schema {least} or newer; this is \
     Hotline {} with schema {known}. Run Hotline {release} or newer, or restore a backup from before the migration",
    env!("CARGO_PKG_VERSION")
)]
pub struct NewerSchema {
    /// The release that migrated it.
    pub release: String,
    /// The lowest schema version a release must know to serve it.
    pub least: i64,
    /// The schema version this release knows.
    pub known: i64,
}

/// A unique value that belongs to another record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenValue {
    /// The field that contains it.
    pub field: &'static str,
    /// How to find the record that has it.
    pub holder: Option<HolderQuery>,
}

impl From<&'static str> for TakenValue {
    fn from(field: &'static str) -> Self {
        Self { field, holder: None }
    }
}

/// Finds the record that has a requested unique value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderQuery {
    pub(crate) statement: String,
    pub(crate) company: crate::CompanyId,
    pub(crate) value: String,
}

impl HolderQuery {
    /// The record's id; `None` if it no longer has the value.
    pub async fn find(&self, db: impl sqlx::PgExecutor<'_>) -> Result<Option<i64>> {
        with_timeout(
            sqlx::query_scalar(sqlx::AssertSqlSafe(self.statement.as_str()))
                .bind(self.company)
                .bind(&self.value)
                .fetch_optional(db),
        )
        .await
    }
}

static CONNECTION_TIMEOUTS: AtomicU64 = AtomicU64::new(0);

/// Number of statements since the process started that got no connection in time.
pub fn connection_timeouts() -> u64 {
    CONNECTION_TIMEOUTS.load(Ordering::Relaxed)
}

/// Whether the server has refused a connection because it, the database or the role has too many.
pub(crate) fn is_too_many_connections(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "53300")
}

impl From<sqlx::migrate::MigrateError> for Error {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Self::Migrate(error)
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) || is_too_many_connections(&error) {
            CONNECTION_TIMEOUTS.fetch_add(1, Ordering::Relaxed);
        }
        if is_stale_plan(&error) {
            unanswered::record_migration();
        }
        if is_fenced(&error) {
            return Self::NotOwner;
        }
        if let sqlx::Error::Io(reason) = &error
            && reason.get_ref().is_some_and(|reason| reason.is::<UnconfirmedCommit>())
        {
            return Self::Unknown(reason.to_string());
        }
        if is_outage(&error) { Self::Unavailable(describe(&error)) } else { Self::Database(error) }
    }
}

impl Error {
    /// The error for a violated constraint, by its name; any other error stays as it is.
    pub(crate) fn map_constraint(self, errors_by_constraint: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let Self::Database(error) = &self else { return self };
        let violated = error.as_database_error().and_then(|error| error.constraint());
        let mapped = errors_by_constraint.into_iter().find(|(constraint, _)| Some(*constraint) == violated);
        mapped.map_or(self, |(_, mapped_error)| mapped_error)
    }
}

/// The reply to a commit was lost.
#[derive(Debug, thiserror::Error)]
#[error("no response to a commit: {0}")]
struct UnconfirmedCommit(String);

/// Classifies the outcome of a commit: an outage after it was sent leaves the outcome unknown; a refusal by the server
/// does not.
pub(crate) fn classify_commit(result: std::result::Result<(), sqlx::Error>) -> std::result::Result<(), sqlx::Error> {
    result.map_err(|error| if is_outage(&error) { unconfirmed_commit(describe(&error)) } else { error })
}

/// The error of a commit without a timely reply: its outcome is unknown.
pub(crate) fn unconfirmed_commit(reason: String) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other(UnconfirmedCommit(reason)))
}

/// SQLSTATE classes that concern the database rather than its input (PostgreSQL, Appendix A): 08 connection, 25
/// transaction state (such as a read-only server), 28 authorization, 3D no such database, 40 rollback (serialization,
/// deadlock), 53 resources (disk full), 55 object not in the required state, 57 operator intervention (shutdown,
/// canceled, starting up), 58 system, 72 snapshot too old, F0 configuration file.
///
/// IMPORTANT: only these codes count as outages; every other code is a refusal. So an unforeseen code rejects one row,
/// which the operator can fix in `rejected_changes`, instead of blocking every company.
const OUTAGE_CLASSES: [&str; 11] = ["08", "25", "28", "3D", "40", "53", "55", "57", "58", "72", "F0"];

/// SQLSTATE classes that concern only the given values: 22 data, 23 constraint, 54 program limit (an index entry or
/// document that is too large, JSON that is too deep).
const VALUE_CLASSES: [&str; 3] = ["22", "23", "54"];

/// Whether the database was unavailable, rather than refusing the statement: a retry may succeed.
pub fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        _ if is_stale_plan(error) => true,
        sqlx::Error::Database(error) => is_of_class(error.as_ref(), &OUTAGE_CLASSES),
        // After these errors the connection is closed, or there was none.
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::Configuration(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        _ => false,
    }
}

/// Whether the session prepared the statement before a migration changed its tables. Another session can execute it.
pub(crate) fn is_stale_plan(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        let is_not_supported = error.code().is_some_and(|code| code == "0A000");
        is_not_supported && error.message().contains("cached plan must not change result type")
    })
}

/// Whether PostgreSQL has aborted this statement to end a deadlock, and undone its transaction.
pub(crate) fn is_deadlock(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "40P01")
}

/// Whether the server has ended this statement: after its time limit, or because an administrator has canceled it.
pub(crate) fn is_canceled(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "57014")
}

/// Whether a transaction was refused because this life is over: the SQL function `hotline_fence` raises this error.
pub(crate) fn is_fenced(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "HL001")
}

/// Whether a non-outage error is certainly caused by the given values: the same statement would accept other values.
/// For any other error the statement itself may be at fault.
pub(crate) fn is_caused_by_values(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => is_of_class(error.as_ref(), &VALUE_CLASSES),
        // Refused on our side before anything was sent.
        sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => true,
        _ => false,
    }
}

fn is_of_class(error: &dyn sqlx::error::DatabaseError, classes: &[&str]) -> bool {
    error.code().is_some_and(|code| code.get(..2).is_some_and(|class| classes.contains(&class)))
}

/// The database's error text for the log. For SQLSTATE class 22, PostgreSQL quotes the value, which may be a message
/// text or a phone number, so only the code is logged.
pub fn without_values(error: &sqlx::Error) -> String {
    match error.as_database_error().and_then(|error| error.code()) {
        Some(code) if code.starts_with("22") => format!("a value is not accepted (SQLSTATE {code})"),
        _ => describe(error),
    }
}

/// The text of an error, without the line of PostgreSQL's own source that the library appends.
pub(crate) fn describe(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => format!("PostgreSQL reports: {}", error.message()),
        error => error.to_string(),
    }
}

/// Why there is no connection, and the remedy if it is known.
pub(crate) fn connection_failure_reason(error: &sqlx::Error) -> String {
    let reason = match error {
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    };
    let remedies = [
        ("UnknownIssuer", "its authority is unknown here; name the file of its certificate with sslrootcert"),
        ("not valid for name", "name the host in --database-url as the certificate does"),
        ("CertificateRequired", "the server asks for a client certificate; name its files with sslcert and sslkey"),
    ];
    match remedies.iter().find(|(name, _)| reason.contains(name)) {
        Some((_, remedy)) => format!("{reason}: {remedy}"),
        None => reason,
    }
}

fn describe_migration_error(error: &sqlx::migrate::MigrateError) -> String {
    use sqlx::migrate::MigrateError;
    match error {
        MigrateError::Execute(error) => describe(error),
        MigrateError::ExecuteMigration(error, version) => format!("migration {version}: {}", describe(error)),
        error => error.to_string(),
    }
}

/// Time limit for a statement of a request before the caller gets an error.
///
/// It is enforced on our side: a frozen server keeps its connections open and never answers, so its own
/// `statement_timeout` does not help.
pub const STATEMENT_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs a statement, limited to [`STATEMENT_TIME_MAX`].
///
/// # Errors
/// [`Error::Unavailable`] on timeout, otherwise the statement's error.
pub fn with_timeout<T>(
    statement: impl Future<Output = std::result::Result<T, sqlx::Error>>,
) -> impl Future<Output = Result<T>> {
    with_timeout_of(STATEMENT_TIME_MAX, statement)
}

/// As [`with_timeout`], with another limit. If it is longer, [`set_statement_timeout`] must have raised the server's.
///
/// # Errors
/// As [`with_timeout`].
pub(crate) fn with_timeout_of<T>(
    time_max: Duration,
    statement: impl Future<Output = std::result::Result<T, sqlx::Error>>,
) -> impl Future<Output = Result<T>> {
    // Not an `async fn`: its future would contain the statement twice, as the argument and as the awaited future.
    tokio::time::timeout(time_max, statement).map(move |result| match result {
        Ok(result) => Ok(result?),
        Err(_) => {
            crate::unanswered::record_timeout();
            Err(Error::Unavailable(format!("no response within {} s", time_max.as_secs())))
        }
    })
}

/// Sets the server's time limit for statements of this transaction.
pub(crate) async fn set_statement_timeout(db: &mut sqlx::PgConnection, time_max: Duration) -> Result<()> {
    let statement = format!("set local statement_timeout = {}", time_max.as_millis());
    with_timeout(sqlx::query(sqlx::AssertSqlSafe(statement)).execute(db)).await.map(drop)
}
