//! Applies migrations while another release may still serve the database.
//!
//! A migration waits for a lock only for a moment, because every other statement on the table waits behind it. Then it
//! gives up its place in the queue, lets the others through and tries again. It names the session that holds the lock
//! ([decision 54](../../../docs/decisions/0054-a-migration-waits-for-a-lock-in-moments.md)).

mod blocker;
mod error;
mod plan;

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use sqlx::migrate::{Migrate, MigrateError, Migration};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};
use tokio::time::{Instant, sleep, timeout};

pub use self::blocker::Blocker;
use self::blocker::Watcher;
pub use self::error::SchemaError;
pub use self::plan::{PlannedMigration, locks};
use crate::error::{STATEMENT_TIME_MAX, with_timeout};
use crate::schema::{self, APPLIED, RELEASE, SchemaState};
use crate::{Error, Result};

/// How long a migration waits for a lock in one attempt: longer than `deadlock_timeout` (1 s), after which an
/// autovacuum gives way, and shorter than a request waits for its statement.
pub const LOCK_TIME_MAX: Duration = Duration::from_secs(2);

/// Pause between two attempts: statements that waited behind the first one are executed meanwhile.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a migration waits for its locks by default.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(300);

/// Whether a start migrates, and how long it waits for locks.
#[derive(Clone, Copy, Debug)]
pub struct MigrationPolicy {
    /// Whether it migrates. If not, it refuses an older schema.
    pub is_enabled: bool,
    /// How long a migration waits for its locks.
    pub wait: Duration,
}

impl Default for MigrationPolicy {
    fn default() -> Self {
        Self { is_enabled: true, wait: WAIT_DEFAULT }
    }
}

/// An applied migration.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedMigration {
    /// Its number.
    pub number: i64,
    /// Its name.
    pub name: String,
    /// The time that it took after it had its locks, in milliseconds.
    pub duration_ms: u64,
}

/// What happens while migrations are applied.
#[derive(Debug)]
pub enum MigrationProgress<'a> {
    /// The task waits for a lock that the session holds.
    Waiting {
        /// What waits.
        task: &'a str,
        /// The session.
        blocker: &'a Blocker,
    },
    /// The task has its locks after a wait.
    Unblocked {
        /// What waited.
        task: &'a str,
        /// For how long.
        waited: Duration,
    },
    /// A migration has been applied.
    Applied(&'a AppliedMigration),
    /// The schema is now that of this release; for the previous release it is a newer one.
    Migrated {
        /// The last migration.
        schema: i64,
        /// The release that migrated the database before.
        previous: &'a str,
        /// Whether that release may still serve the database.
        may_serve: bool,
    },
    /// The schema is that of a newer release, which allows this one to serve it.
    Newer {
        /// The last migration.
        schema: i64,
        /// The newer release.
        release: &'a str,
    },
}

impl fmt::Display for MigrationProgress<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { task, blocker } => write!(formatter, "{task} waits for a lock, which is held by {blocker}"),
            Self::Unblocked { task, waited } => {
                write!(formatter, "{task} waited {:.1} s, and has its locks", waited.as_secs_f64())
            }
            Self::Applied(applied) => {
                let AppliedMigration { number, name, duration_ms } = applied;
                write!(formatter, "migration {number} ({name}) applied in {duration_ms} ms")
            }
            Self::Migrated { schema, previous, may_serve } => {
                let may = if *may_serve { "may still serve" } else { "can no longer serve" };
                write!(formatter, "the schema is now {schema}; Hotline {previous} finds a newer schema, which it {may}")
            }
            Self::Newer { schema, release } => write!(
                formatter,
                "the database has the schema {schema} of Hotline {release}; this is Hotline {RELEASE}, which may serve it"
            ),
        }
    }
}

/// Logs the progress; a wait as a warning.
pub fn log(progress: &MigrationProgress<'_>) {
    match progress {
        MigrationProgress::Waiting { .. } => tracing::warn!("{progress}"),
        _ => tracing::info!("{progress}"),
    }
}

/// The migrations that the database lacks; changes nothing.
///
/// # Errors
/// As [`run`].
pub async fn plan(db: &PgPool) -> Result<Vec<PlannedMigration>> {
    let state = read_state(db, &schema::supported_migrations().await?).await?;
    Ok(state.pending.iter().map(PlannedMigration::of).collect())
}

/// Migrates the database to this release's schema, and logs the progress.
///
/// # Errors
/// As [`run`].
pub async fn migrate(db: &PgPool, policy: MigrationPolicy) -> Result<()> {
    let migrations = schema::supported_migrations().await?;
    if policy.is_enabled {
        return run(db, &migrations, policy.wait, &mut log).await.map(drop);
    }
    let state = read_state(db, &migrations).await?;
    if state.pending.is_empty() {
        report_newer(&state, &migrations, &mut log);
        return Ok(());
    }
    Err(SchemaError::Pending { pending: migration_names(&state.pending) }.into())
}

/// Checks that a command may change the database. An empty database gets the tables; an older schema is refused.
///
/// # Errors
/// [`SchemaError::Pending`], or as [`run`].
pub async fn ensure_writable(db: &PgPool) -> Result<()> {
    let migrations = schema::supported_migrations().await?;
    let state = read_state(db, &migrations).await?;
    if state.is_empty {
        return run(db, &migrations, WAIT_DEFAULT, &mut |_| {}).await.map(drop);
    }
    if state.pending.is_empty() {
        Ok(())
    } else {
        Err(SchemaError::Pending { pending: migration_names(&state.pending) }.into())
    }
}

/// Checks that a command may read the database. For an older schema, returns the pending migrations as a warning: a
/// statement may fail.
///
/// # Errors
/// [`SchemaError::Empty`], or as [`run`].
pub async fn ensure_readable(db: &PgPool) -> Result<Option<SchemaError>> {
    let state = read_state(db, &schema::supported_migrations().await?).await?;
    if state.is_empty {
        return Err(SchemaError::Empty.into());
    }
    let is_current = state.pending.is_empty();
    Ok((!is_current).then(|| SchemaError::Pending { pending: migration_names(&state.pending) }))
}

async fn read_state(db: &PgPool, migrations: &[Migration]) -> Result<SchemaState> {
    let mut connection = with_timeout(db.acquire()).await?;
    let read = timeout(STATEMENT_TIME_MAX, SchemaState::read(&mut connection, migrations));
    read.await.map_err(|_| Error::Unavailable("the database did not describe its schema in time".to_owned()))?
}

fn migration_names(migrations: &[Migration]) -> Vec<String> {
    migrations.iter().map(migration_name).collect()
}

fn migration_name(migration: &Migration) -> String {
    format!("migration {} ({})", migration.version, migration.description)
}

fn report_newer(
    state: &SchemaState,
    migrations: &[Migration],
    progress: &mut (dyn FnMut(&MigrationProgress<'_>) + Send),
) {
    if state.newest > schema::newest_version(migrations) {
        progress(&MigrationProgress::Newer { schema: state.newest, release: &state.release });
    }
}

/// Applies the migrations that the database lacks. Additions of a newer release are left unchanged.
///
/// # Errors
/// [`Error::Newer`] when a newer release made changes this one cannot serve, [`Error::Schema`] when the database is
/// read-only or a lock is not available; other errors when the database cannot be reached or a migration fails.
pub async fn run(
    db: &PgPool,
    migrations: &[Migration],
    wait: Duration,
    progress: &mut (dyn FnMut(&MigrationProgress<'_>) + Send),
) -> Result<Vec<AppliedMigration>> {
    let state = read_state(db, migrations).await?;
    if state.pending.is_empty() {
        report_newer(&state, migrations, progress);
        if state.release != RELEASE && state.newest <= schema::newest_version(migrations) {
            let mut connection = with_timeout(db.acquire()).await?;
            if !is_read_only(&mut connection).await? {
                record_release(&mut connection, migrations).await?;
            }
        }
        return Ok(Vec::new());
    }
    let options = db.connect_options();
    let mut connection = options.connect().await?;
    prepare_session(&mut connection).await?;
    if is_read_only(&mut connection).await? {
        return Err(SchemaError::ReadOnly { pending: migration_names(&state.pending) }.into());
    }
    let pid = with_timeout(sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection)).await?;
    let mut migration = MigrationRun { connection, watcher: Watcher::new(options, pid), wait, progress };
    let applied = migration.apply_all(migrations).await;
    // The session holds the lock on migrations until it ends.
    let _ = migration.connection.close().await;
    applied
}

/// Makes PostgreSQL check the connection during a statement: if this process is killed, the statement ends and its
/// locks are released.
const SET_CONNECTION_CHECK: &str = "select set_config(name, $1, false) from pg_settings
    where name = 'client_connection_check_interval' and version() ~ 'linux'";

/// Configures a session for migrations, whatever the settings of its role are.
async fn prepare_session(connection: &mut PgConnection) -> Result<()> {
    with_timeout(sqlx::query(SET_CONNECTION_CHECK).bind("1s").execute(&mut *connection)).await?;
    set_setting(connection, "statement_timeout", Duration::ZERO).await?;
    set_setting(connection, "idle_in_transaction_session_timeout", Duration::ZERO).await?;
    set_setting(connection, "lock_timeout", LOCK_TIME_MAX).await
}

async fn set_setting(connection: &mut PgConnection, setting: &str, value: Duration) -> Result<()> {
    let set = sqlx::query("select set_config($1, $2, false)").bind(setting).bind(format!("{}ms", value.as_millis()));
    with_timeout(set.execute(connection)).await.map(drop)
}

async fn is_read_only(connection: &mut PgConnection) -> Result<bool> {
    let select = "select current_setting('transaction_read_only') = 'on'";
    with_timeout(sqlx::query_scalar(select).fetch_one(connection)).await
}

/// Records this release as the one that migrated last, unless a newer one did.
async fn record_release(connection: &mut PgConnection, migrations: &[Migration]) -> Result<()> {
    let update = "update schema_needs set release = $1
         where release <> $1 and $2 >= (select max(version) from _sqlx_migrations)";
    let update = sqlx::query(update).bind(RELEASE).bind(schema::newest_version(migrations));
    with_timeout(update.execute(connection)).await.map(drop)
}

/// A step that waits for locks.
#[derive(Clone, Copy)]
enum MigrationStep<'a> {
    /// Takes the lock of all migrations, so that no other process applies them meanwhile.
    Begin,
    /// Applies this migration.
    Apply(&'a Migration),
}

impl MigrationStep<'_> {
    fn name(self) -> String {
        match self {
            Self::Begin => "the migration of the database".to_owned(),
            Self::Apply(migration) => migration_name(migration),
        }
    }

    async fn attempt(self, connection: &mut PgConnection) -> std::result::Result<Duration, MigrateError> {
        match self {
            Self::Begin => connection.lock().await.map(|()| Duration::ZERO),
            Self::Apply(migration) => connection.apply(APPLIED, migration).await,
        }
    }

    /// Whether other sessions held its locks: `lock_timeout` has ended an attempt, or PostgreSQL has ended a deadlock
    /// with a session that holds one table and waits for another. A deadlock of a migration without a transaction does
    /// not count: its changes up to then remain.
    fn is_blocked(self, error: &MigrateError) -> bool {
        let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else { return false };
        let is_transactional = !matches!(self, Self::Apply(migration) if migration.no_tx);
        match error.as_database_error().and_then(|error| error.code()).as_deref() {
            Some("55P03") => true,
            Some("40P01") => is_transactional,
            _ => false,
        }
    }
}

/// Migrations that are being applied.
struct MigrationRun<'a> {
    connection: PgConnection,
    watcher: Watcher,
    wait: Duration,
    progress: &'a mut (dyn FnMut(&MigrationProgress<'_>) + Send),
}

impl MigrationRun<'_> {
    async fn apply_all(&mut self, migrations: &[Migration]) -> Result<Vec<AppliedMigration>> {
        // The lock has the same key as in earlier releases.
        self.retry_while_blocked(MigrationStep::Begin).await?;
        self.connection.ensure_migrations_table(APPLIED).await?;
        // Another process may have applied them meanwhile.
        let state = SchemaState::read(&mut self.connection, migrations).await?;
        let mut applied_migrations = Vec::with_capacity(state.pending.len());
        for migration in &state.pending {
            let applied = self.apply(migration).await?;
            (self.progress)(&MigrationProgress::Applied(&applied));
            applied_migrations.push(applied);
        }
        record_release(&mut self.connection, migrations).await?;
        if !state.is_empty && !applied_migrations.is_empty() {
            // The last migration that a release must know to serve the database.
            let read_least =
                with_timeout(sqlx::query_scalar("select least from schema_needs").fetch_one(&mut self.connection));
            let may_serve = read_least.await.map(|least: i64| least <= state.newest)?;
            let schema = schema::newest_version(migrations).max(state.newest);
            (self.progress)(&MigrationProgress::Migrated { schema, previous: &state.release, may_serve });
        }
        self.connection.unlock().await?;
        Ok(applied_migrations)
    }

    async fn apply(&mut self, migration: &Migration) -> Result<AppliedMigration> {
        let migration = &*schema::adapt_to_schemas(&mut self.connection, migration).await?;
        if migration.no_tx {
            self.begin_without_transaction(migration).await?;
        }
        let applied = self.retry_while_blocked(MigrationStep::Apply(migration)).await;
        if migration.no_tx {
            set_setting(&mut self.connection, "lock_timeout", LOCK_TIME_MAX).await?;
        }
        let duration_ms = u64::try_from(applied?.as_millis()).unwrap_or(u64::MAX);
        Ok(AppliedMigration { number: migration.version, name: migration.description.to_string(), duration_ms })
    }

    /// Lets a migration without a transaction wait longer: creating an index concurrently waits for all older
    /// transactions, and nothing waits behind it. Drops the invalid index that a failed attempt left.
    async fn begin_without_transaction(&mut self, migration: &Migration) -> Result<()> {
        // 0 would wait without limit.
        set_setting(&mut self.connection, "lock_timeout", self.wait.max(Duration::from_millis(1))).await?;
        let Some(index) = plan::concurrent_index(migration.sql.as_str()) else { return Ok(()) };
        let select = "select c.oid::regclass::text from pg_index i join pg_class c on c.oid = i.indexrelid
             where not i.indisvalid and c.relname = $1";
        let find = sqlx::query_scalar(select).bind(index).fetch_optional(&mut self.connection);
        let invalid_index: Option<String> = with_timeout(find).await?;
        if let Some(index) = invalid_index {
            let drop_index = format!("drop index concurrently {index}");
            sqlx::query(AssertSqlSafe(drop_index)).execute(&mut self.connection).await.map_err(MigrateError::from)?;
        }
        Ok(())
    }

    /// Repeats a step while other sessions hold its locks. No attempt begins after `self.wait`, except the first. Returns
    /// the duration of the last attempt.
    async fn retry_while_blocked(&mut self, step: MigrationStep<'_>) -> Result<Duration> {
        let (task, started_at) = (step.name(), Instant::now());
        self.watcher.last_blocker = None;
        loop {
            let Self { connection, watcher, progress, .. } = self;
            let report = |blocker: &Blocker| progress(&MigrationProgress::Waiting { task: &task, blocker });
            match watcher.watch(step.attempt(connection), report).await {
                Err(error) if step.is_blocked(&error) && started_at.elapsed() >= self.wait => {
                    let blocker = self.watcher.last_blocker.take();
                    return Err(SchemaError::Blocked { task, waited: started_at.elapsed(), blocker }.into());
                }
                Err(error) if step.is_blocked(&error) => sleep(PAUSE).await,
                result => {
                    if self.watcher.last_blocker.is_some() && result.is_ok() {
                        (self.progress)(&MigrationProgress::Unblocked { task: &task, waited: started_at.elapsed() });
                    }
                    return Ok(result?);
                }
            }
        }
    }
}
