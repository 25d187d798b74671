//! What can go wrong below the API, sorted by what a caller can do about it.

use std::time::Duration;

/// The one result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the store could not do as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such row in this company.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// A value that must be unique is another row's already; nothing was changed.
    #[error("this {} is taken", .0.field)]
    Taken(Taken),
    /// Other records refer to the row.
    #[error("the record is in use")]
    InUse,
    /// The store cannot serve now; nothing was changed. Trying again later may work.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Nobody knows whether the change was made: the database was asked to make it stand, and has not answered; or the log
    /// has stopped before.
    #[error("nobody knows whether the change was made: {0}")]
    Unknown(String),
    /// Another process of the cluster serves the company, or is about to; nothing was changed.
    #[error("the company is served by another process")]
    Elsewhere,
    /// There is no database at the address that was given.
    #[error("PostgreSQL at {place} cannot be reached: {reason}")]
    Unreachable {
        /// Where, and as whom.
        place: String,
        /// What came instead.
        reason: String,
    },
    /// The database answered something no retry will mend.
    #[error("database: {}", without_values(.0))]
    Database(sqlx::Error),
    /// A page lies deeper in its list than is looked for.
    #[error(transparent)]
    TooDeep(#[from] TooDeep),
    /// The migrations could not be applied.
    #[error("migrate: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The journal refuses to work.
    #[error(transparent)]
    Journal(#[from] crate::journal::JournalError),
    /// A record of the journal is no entry this release understands.
    #[error("journal entry {seq} cannot be read: {reason}")]
    Entry {
        /// The entry's sequence number.
        seq: u64,
        /// What the decoder said.
        reason: String,
    },
    /// A secret cannot be sealed or opened.
    #[error(transparent)]
    Key(#[from] crate::sealed::KeyError),
    /// The database was migrated by a newer release, and this one cannot serve it any more.
    #[error(transparent)]
    Newer(#[from] NewerSchema),
    /// Another process is the writer of this database.
    #[error("another Hotline serves this database")]
    NotOwner,
    /// The journal holds changes that were answered, and another process has written to the database since: their
    /// ids may have been given out again, so they cannot be written any more without looking at them.
    #[error(
        "the journal {journal} holds changes that are not in the database, which another Hotline has written to since; keep the folder and look at it before anything else"
    )]
    Superseded {
        /// The journal's id.
        journal: String,
    },
    /// The database is older than what the journal knows to be in it: restored from a backup, most likely. Live rows
    /// would be written over plain ones that are missing, and their ids given out again.
    #[error(
        "the database is older than the journal in `{}`: it has the entries of journal {journal} up to {watermark}, and up to {confirmed} were confirmed to be in it. Nothing was changed. If it was restored from a backup, restore the journal folder of the same backup with it, or a newer backup. To go on with the older database and give up what came after it, move the journal folder away: the next start begins a new one", dir.display()
    )]
    Older {
        /// Where the journal is.
        dir: std::path::PathBuf,
        /// The journal's id.
        journal: String,
        /// The last entry that the database has.
        watermark: crate::journal::Seq,
        /// The last entry that was confirmed to be in it.
        confirmed: crate::journal::Seq,
    },
    /// The journal of an earlier run holds changes that a process without a journal would leave behind.
    #[error(
        "the journal in `{}` holds changes that are not in the database, and a process of a cluster has no journal: start Hotline once without --cluster-listen, and stop it, so that they are written", dir.display()
    )]
    LeftBehind {
        /// Where the journal is.
        dir: std::path::PathBuf,
    },
    /// The clock of this machine and that of the database are too far apart.
    #[error(
        "this machine's clock differs from the database's by {} ms, and a process of a cluster may be off by {} ms: set it, or run a time service", off_by.as_millis(), most.as_millis()
    )]
    ClockOff {
        /// By how much.
        off_by: Duration,
        /// By how much it may.
        most: Duration,
    },
    /// The journal holds changes for another database than the one given.
    #[error("the journal {journal} holds changes that this database has never seen; it belongs to another one")]
    ForeignJournal {
        /// The journal's id.
        journal: String,
    },
}

/// More rows lie before the page than are passed over; so many are.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than {0} rows lie before the page")]
pub struct TooDeep(pub i64);

/// The database is a newer release's.
#[derive(Debug, thiserror::Error)]
#[error(
    "this database was migrated by Hotline {release} and is served by releases that know schema {least}; this is Hotline \
     {}, which knows schema {known}: run Hotline {release} or newer, or restore a backup from before it was started",
    env!("CARGO_PKG_VERSION")
)]
pub struct NewerSchema {
    /// Who migrated it.
    pub release: String,
    /// The least schema a release must know to serve it.
    pub least: i64,
    /// The schema this release knows.
    pub known: i64,
}

/// A value that is another record's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The field it was given in.
    pub field: &'static str,
    /// How the record that has it is found.
    pub holder: Option<Holder>,
}

impl From<&'static str> for Taken {
    fn from(field: &'static str) -> Self {
        Self { field, holder: None }
    }
}

/// How the record is found that has a value another one asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub(crate) statement: String,
    pub(crate) company: crate::CompanyId,
    pub(crate) value: String,
}

impl Holder {
    /// Its id; none when it has let go of the value meanwhile.
    ///
    /// # Errors
    /// When the database cannot answer.
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

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Configuration(reason) = &error
            && let Some(deep) = reason.downcast_ref::<TooDeep>()
        {
            return Self::TooDeep(*deep);
        }
        if is_fenced(&error) {
            return Self::NotOwner;
        }
        if let sqlx::Error::Io(reason) = &error
            && reason.get_ref().is_some_and(|reason| reason.is::<Unheard>())
        {
            return Self::Unknown(reason.to_string());
        }
        if is_outage(&error) { Self::Unavailable(error.to_string()) } else { Self::Database(error) }
    }
}

impl Error {
    /// What a violated constraint means, by its name; any other error as it is.
    pub(crate) fn of_constraint(error: sqlx::Error, known: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let violated = error.as_database_error().and_then(|error| error.constraint());
        match known.into_iter().find(|(name, _)| Some(*name) == violated) {
            Some((_, meaning)) => meaning,
            None => error.into(),
        }
    }
}

/// The answer to a commit was not heard.
#[derive(Debug, thiserror::Error)]
#[error("a commit was not answered: {0}")]
struct Unheard(String);

/// What became of a commit: an outage after it was sent leaves that open, and only a refusal by the server does not.
pub(crate) fn of_commit(outcome: std::result::Result<(), sqlx::Error>) -> std::result::Result<(), sqlx::Error> {
    outcome.map_err(|error| if is_outage(&error) { unheard(error.to_string()) } else { error })
}

/// The same, of one that was not answered in time.
pub(crate) fn unheard(reason: String) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::other(Unheard(reason)))
}

/// Classes of SQLSTATE that speak of the database and not of what it was given (PostgreSQL, Appendix A): 08 connection,
/// 25 state of the transaction (a server that only reads, for one), 28 authorization, 3D no such database, 40 rollback
/// (serialization, deadlock), 53 resources (disk full), 55 not in a usable state, 57 an operator (shutdown, cancelled,
/// starting up), 58 system, 72 snapshot too old, F0 configuration file.
///
/// IMPORTANT: this list is the positive one. What is not on it is a refusal: a code nobody thought of sets one row
/// aside, which a person can mend, instead of holding up every company.
const OUTAGES: [&str; 11] = ["08", "25", "28", "3D", "40", "53", "55", "57", "58", "72", "F0"];

/// Classes that speak of a value that was given, and of nothing else: 22 data, 23 constraint, 54 limit of the program
/// (an index entry or a document that is too large, JSON that is too deep).
const OF_VALUES: [&str; 3] = ["22", "23", "54"];

/// Whether the database was not there, or not able, rather than unwilling: trying again later may work.
pub fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => is_of_class(error.as_ref(), &OUTAGES),
        // After these the connection is gone, or there was none.
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

/// Whether a transaction was refused because this life is over (`0060_cluster.sql`).
pub(crate) fn is_fenced(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "HL001")
}

/// Whether an error that is no outage is certainly about the values that were given: they would be refused again, and
/// others would not. Of any other the statement itself may be to blame.
pub(crate) fn is_of_values(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => is_of_class(error.as_ref(), &OF_VALUES),
        // Refused on our side, before anything was sent.
        sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => true,
        _ => false,
    }
}

fn is_of_class(error: &dyn sqlx::error::DatabaseError, classes: &[&str]) -> bool {
    error.code().is_some_and(|code| code.get(..2).is_some_and(|class| classes.contains(&class)))
}

/// What the database said, for the log. PostgreSQL quotes a value it cannot take (SQLSTATE class 22) in its message,
/// and that may be what somebody wrote or their number: of those only the code is told.
pub fn without_values(error: &sqlx::Error) -> String {
    match error.as_database_error().and_then(|error| error.code()) {
        Some(code) if code.starts_with("22") => format!("a value is not accepted (SQLSTATE {code})"),
        _ => error.to_string(),
    }
}

/// Longest a statement on a caller's way may take before the caller is told to come back.
///
/// A frozen server keeps its connections open and never answers, so the server's own `statement_timeout` is
/// no help.
pub const STATEMENT_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs a statement, but not longer than [`STATEMENT_TIME_MAX`].
///
/// # Errors
/// [`Error::Unavailable`] when the time is up, else what the statement says.
pub async fn with_timeout<T>(statement: impl Future<Output = std::result::Result<T, sqlx::Error>>) -> Result<T> {
    within(STATEMENT_TIME_MAX, statement).await
}

/// The same for a statement that may take longer, which the server was told by [`allow_time`].
///
/// # Errors
/// As of [`with_timeout`].
pub(crate) async fn within<T>(
    time_max: Duration,
    statement: impl Future<Output = std::result::Result<T, sqlx::Error>>,
) -> Result<T> {
    match tokio::time::timeout(time_max, statement).await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Error::Unavailable(format!("no answer within {} s", time_max.as_secs()))),
    }
}

/// Has the server give the statements of this transaction so much time.
///
/// # Errors
/// When the database cannot answer.
pub(crate) async fn allow_time(db: &mut sqlx::PgConnection, time_max: Duration) -> Result<()> {
    let time = format!("set local statement_timeout = {}", time_max.as_millis());
    with_timeout(sqlx::query(sqlx::AssertSqlSafe(time)).execute(db)).await.map(drop)
}
