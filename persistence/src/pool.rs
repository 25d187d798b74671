//! Connections to PostgreSQL, and the migrations that every database gets at startup.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};

use crate::cluster::LifeId;
use crate::error::Reach;
use crate::scheduler::Shares;
use crate::{Error, Result};

/// Connections for requests and the service itself, readers included. More than the cores can use would only queue
/// inside PostgreSQL.
pub const CONNECTIONS_MAX: u32 = POOL_MAX + READERS_MAX;

/// Connections other than those of [`crate::Readers`].
pub const POOL_MAX: u32 = REQUESTS_MAX + HOUSEKEEPING_MAX;

/// Connections for requests, shared among companies ([`request_shares`]).
pub const REQUESTS_MAX: u32 = 9;

/// Connections for the service itself: one listens for notifications, the others sweep, load the directory and reserve
/// ids. No company's requests can use them up.
pub const HOUSEKEEPING_MAX: u32 = 3;

/// Maximum connections of one company at a time. It uses them briefly and has no priority over others; a third is left
/// free so that others rarely wait.
const COMPANY_MAX: usize = 6;

/// Connections that transactions leave for single statements: the holder of a transaction may need to run a statement
/// outside it.
const STATEMENTS_RESERVED: usize = 2;

/// Maximum number of heavy statements at a time, across companies: the other connections are left for short ones, on a
/// machine of any size.
const HEAVY_MAX: usize = 4;

/// Maximum queued requests of one company, some 10 KiB each without their bodies.
const COMPANY_WAITING_MAX: usize = 512;

/// The heavy ones among them: an import holds up to 16 MiB.
const COMPANY_HEAVY_WAITING_MAX: usize = 32;

/// How the request connections are shared among companies.
///
/// Heavy statements are also limited by the cores, and for one company by half of them: its statement keeps one core
/// busy while its neighbours are served on the other.
pub fn request_shares() -> Shares {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Shares {
        all: REQUESTS_MAX as usize,
        company: COMPANY_MAX,
        changes: REQUESTS_MAX as usize - STATEMENTS_RESERVED,
        company_changes: COMPANY_MAX - STATEMENTS_RESERVED,
        heavy: cores.clamp(1, HEAVY_MAX),
        company_heavy: (cores / 2).clamp(1, HEAVY_MAX / 2),
        company_waiting: COMPANY_WAITING_MAX,
        company_heavy_waiting: COMPANY_HEAVY_WAITING_MAX,
        wait: ACQUIRE_TIME_MAX,
    }
}

/// Connections of [`crate::Readers`]. Their statements are short: two per core on two cores keep PostgreSQL busy while
/// a thread serializes rows to JSON.
pub const READERS_MAX: u32 = 4;

/// How long a request waits for a connection before it fails as unavailable.
pub const ACQUIRE_TIME_MAX: Duration = Duration::from_secs(3);

/// Opens a pool for the command line, outside any service. It connects lazily, so it works while the database is down.
pub fn connect(options: PgConnectOptions) -> PgPool {
    pool(POOL_MAX, with_defaults(options).options([CUSTOM_PLANS, NO_NOTICES]))
}

/// Opens the pool for the service's own work.
pub(crate) fn connect_housekeeping(options: PgConnectOptions, life: Option<LifeId>) -> PgPool {
    let options = with_defaults(options).options([CUSTOM_PLANS, NO_NOTICES]);
    pool(HOUSEKEEPING_MAX, for_life(options, life))
}

/// Opens the pool for requests. `events`: whether their changes are written to the log of events.
pub(crate) fn connect_requests(options: PgConnectOptions, events: bool, life: Option<LifeId>) -> PgPool {
    let events = ("hotline.events", if events { "on" } else { "off" });
    let options = with_defaults(options).options([CUSTOM_PLANS, STATEMENT_TIMEOUT, events]);
    pool(REQUESTS_MAX, for_life(options, life))
}

/// Opens a cluster member's own pool, so that neither requests nor sweeps delay its heartbeat.
pub(crate) fn connect_member(options: PgConnectOptions, life: LifeId) -> PgPool {
    pool(
        MEMBER_MAX,
        with_defaults(options).application_name(&session_name(life)).options([IDLE_IN_TRANSACTION_TIMEOUT]),
    )
}

/// Connections of a cluster member for itself: one sends heartbeats, one listens for the placement, one changes it.
const MEMBER_MAX: u32 = 3;

/// The application name of a life's sessions; ending a life terminates sessions by this name.
pub(crate) fn session_name(life: LifeId) -> String {
    format!("hotline {life}")
}

/// Options of a cluster member's session: found by its life's name, without locks that outlive a stopped process, and
/// read-only except in transactions that begin with the fence.
pub(crate) fn for_life(options: PgConnectOptions, life: Option<LifeId>) -> PgConnectOptions {
    match life {
        Some(life) => options.application_name(&session_name(life)).options([IDLE_IN_TRANSACTION_TIMEOUT, READ_ONLY]),
        None => options,
    }
}

/// Releases the locks of a transaction whose process was stopped.
const IDLE_IN_TRANSACTION_TIMEOUT: (&str, &str) = ("idle_in_transaction_session_timeout", "5s");

/// Makes transactions read-only unless they are explicitly opened for writing.
const READ_ONLY: (&str, &str) = ("default_transaction_read_only", "on");

fn pool(connections: u32, options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_TIME_MAX).connect_lazy_with(options)
}

/// Server-side limit for a request's statement: a second longer than its caller waits
/// ([`crate::error::STATEMENT_TIME_MAX`]). It stops statements whose caller was cancelled, and releases their locks.
pub(crate) const STATEMENT_TIMEOUT: (&str, &str) = ("statement_timeout", "6s");

/// Plans lists for their actual parameters. The generic plan, which PostgreSQL may choose after five executions, cannot
/// distinguish a search fragment that matches one contact of a million from one that matches all of them; the latter
/// would read and sort the whole company (seconds instead of milliseconds). Replanning costs 0.1 ms per joined table.
const CUSTOM_PLANS: (&str, &str) = ("plan_cache_mode", "force_custom_plan");

/// Suppresses the notices that tables of the migrations exist already.
const NO_NOTICES: (&str, &str) = ("client_min_messages", "warning");

/// For statements with one good plan for all values: planned once per connection.
pub const PLAN_ONCE: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// The advisory lock of a database's one writer: "hotline" in ASCII.
const WRITER_LOCK: i64 = 0x68_6f_74_6c_69_6e_65;

/// The journal releases what the persister has committed, so the server must have it on disk, whatever the database's
/// default is.
const SYNC_ON_COMMIT: &str = "select set_config('synchronous_commit', 'on', false) \
    where current_setting('synchronous_commit') = 'off'";

/// This process's claim to be the database's single writer.
#[derive(Debug, Default)]
pub struct WriterClaim {
    /// The epoch taken at startup; 0 before.
    epoch: AtomicI64,
    is_superseded: AtomicBool,
}

impl WriterClaim {
    /// Records the epoch this process has taken.
    pub fn hold(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Whether another process has taken a later epoch.
    pub fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }
}

/// A pool of one connection for the persister. It holds the writer's lock as long as it is open, so a second Hotline on
/// the same database cannot open its own.
pub fn connect_writer(options: PgConnectOptions, claim: Arc<WriterClaim>) -> PgPool {
    writer(with_defaults(options).options(INDEX_SCANS_ONLY), move |connection| {
        let claim = claim.clone();
        async move { lock_for_writing(connection, &claim).await }.boxed()
    })
}

/// As [`connect_writer`], for cluster members, which share the lock.
pub(crate) fn connect_shared_writer(options: PgConnectOptions, life: LifeId) -> PgPool {
    let options = with_defaults(options).options(INDEX_SCANS_ONLY).options([IDLE_IN_TRANSACTION_TIMEOUT]);
    writer(options.application_name(&session_name(life)), |connection| {
        async move {
            let lock = "select pg_try_advisory_lock_shared($1)";
            let is_locked: bool = sqlx::query_scalar(lock).bind(WRITER_LOCK).fetch_one(connection).await?;
            if is_locked {
                Ok(())
            } else {
                Err(sqlx::Error::Protocol("another Hotline process is the writer".to_owned()))
            }
        }
        .boxed()
    })
}

/// A second one-connection pool for the duration of a replay. Its transactions check the epoch like the writer's, but
/// it does not take the writer's lock.
pub(crate) fn connect_replay(options: PgConnectOptions) -> PgPool {
    writer(with_defaults(options).options(INDEX_SCANS_ONLY), |_| async { Ok(()) }.boxed())
}

fn writer<L>(options: PgConnectOptions, lock: L) -> PgPool
where
    L: Fn(&mut PgConnection) -> BoxFuture<'_, sqlx::Result<()>> + Clone + Send + Sync + 'static,
{
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIME_MAX)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |connection, _| {
            let lock = lock.clone();
            Box::pin(async move {
                lock(connection).await?;
                sqlx::query(SYNC_ON_COMMIT).execute(connection).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options)
}

/// The persister writes rows by key, many per statement. Other join methods would read a whole table first, and only
/// the statistics know whether that is large.
const INDEX_SCANS_ONLY: [(&str, &str); 3] =
    [("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("enable_seqscan", "off")];

async fn lock_for_writing(connection: &mut PgConnection, claim: &WriterClaim) -> std::result::Result<(), sqlx::Error> {
    let is_locked: bool =
        sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(WRITER_LOCK).fetch_one(&mut *connection).await?;
    if is_locked {
        return Ok(());
    }
    // Either the server has not yet noticed that our connection, or that of a killed process, has ended; then the pool
    // retries until its timeout. Or another process took over while we were disconnected.
    let claimed = claim.epoch.load(Ordering::Acquire);
    if claimed != 0 {
        let epoch: i64 = sqlx::query_scalar("select epoch from ownership").fetch_one(connection).await?;
        claim.is_superseded.store(epoch != claimed, Ordering::Release);
    }
    Err(sqlx::Error::Protocol("another Hotline process is the writer".to_owned()))
}

/// Our statements are too short to benefit from JIT. And with only index scans allowed ([`INDEX_SCANS_ONLY`]), reading a one-row
/// table without an index is estimated so expensive that it would be compiled each time, for 30 ms and more.
const NO_JIT: (&str, &str) = ("jit", "off");

/// Random reads cost hardly more than sequential ones: hot data is cached and databases run on flash. The default, 4,
/// is for spinning disks: with it, a page of a company that is most of a table is found by reading and sorting the
/// whole table, although the key already has the order (1,000,000 deliveries: 510 ms, against 2 ms by the key).
const FAST_RANDOM_READS: (&str, &str) = ("random_page_cost", "1.1");

pub(crate) fn with_defaults(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("hotline").options([NO_JIT, FAST_RANDOM_READS]).disable_statement_logging()
}

/// How long a start waits for its first connection: no request waits for it, and a database that starts with the machine, or
/// is busy, may need longer than a request may take.
const REACH_TIME_MAX: Duration = Duration::from_secs(10);

/// Checks that the database can be reached, and explains why not. A pool would only report a timeout.
///
/// # Errors
/// [`Error::Unreachable`] when it cannot be reached.
pub async fn reach(options: &PgConnectOptions) -> Result<()> {
    let connect = async {
        loop {
            match with_defaults(options.clone()).connect().await {
                Ok(connection) => {
                    let _ = connection.close().await;
                    return None;
                }
                Err(error) if !is_transient(&error) => return Some((reason(&error), Reach::of(&error))),
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    };
    let failure = match tokio::time::timeout(REACH_TIME_MAX, connect).await {
        Ok(failure) => failure,
        Err(_) => Some((format!("no response within {} s", REACH_TIME_MAX.as_secs()), Reach::Away)),
    };
    failure.map_or(Ok(()), |(reason, reach)| Err(Error::Unreachable { place: address(options), reason, reach }))
}

/// How long a start waits for the end of a killed process' writer: PostgreSQL ends its connection after the
/// statement that it is executing, which may be a large flush with its sync on a busy disk.
const PREDECESSOR_TIME_MAX: Duration = Duration::from_secs(10);

/// Waits until no process is the database's writer. The claim itself is made by [`connect_writer`]; this only fails
/// early with a clear error.
///
/// # Errors
/// [`Error::NotOwner`] when another process stays the writer.
pub(crate) async fn wait_for_writer(db: &PgPool, is_alone: bool) -> Result<()> {
    let attempt = match is_alone {
        true => "select pg_try_advisory_xact_lock($1)",
        false => "select pg_try_advisory_xact_lock_shared($1)",
    };
    let wait = async {
        loop {
            // Held only for the transaction of this statement.
            let is_free: bool = sqlx::query_scalar(attempt).bind(WRITER_LOCK).fetch_one(db).await?;
            if is_free {
                return Ok::<_, sqlx::Error>(());
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    };
    match tokio::time::timeout(PREDECESSOR_TIME_MAX, wait).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Error::NotOwner),
    }
}

/// Pause between attempts to reach a server that is starting.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Whether the server exists and will soon accept us: it is starting, or has too many connections.
fn is_transient(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "57P03" || code == "53300")
}

pub(crate) fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    }
}

/// The database's address and user, never the password.
pub(crate) fn address(options: &PgConnectOptions) -> String {
    let port = options.get_port();
    let server = match options.get_socket() {
        Some(folder) => format!("the socket {}/.s.PGSQL.{port}", folder.display()),
        None => format!("{}:{port}", options.get_host()),
    };
    let user = options.get_username();
    format!("{server} (database {}, user {user})", options.get_database().unwrap_or(user))
}

/// Migrates the database to this release's schema.
///
/// # Errors
/// When the database cannot be reached, a migration fails, or the schema is of a newer release.
pub async fn migrate(db: &PgPool) -> Result<()> {
    crate::schema::migrate(db).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_connection_lets_the_server_compile_a_statement() {
        let options = PgConnectOptions::new();
        let pools = [
            connect(options.clone()),
            connect_housekeeping(options.clone(), None),
            connect_requests(options.clone(), true, None),
            connect_writer(options, Arc::default()),
        ];
        for pool in pools {
            let options = pool.connect_options();
            let settings = options.get_options().unwrap_or_default();
            assert!(settings.contains("jit=off"), "{settings}");
        }
    }
}
