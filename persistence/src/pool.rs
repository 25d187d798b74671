//! Connections to PostgreSQL and the migrations every database gets at start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};

use crate::cluster::LifeId;
use crate::scheduler::Shares;
use crate::{Error, Result};

/// Connections for requests. More than the cores can use only queue inside PostgreSQL.
pub const CONNECTIONS_MAX: u32 = POOL_MAX + READERS_MAX;

/// Those that are no [`crate::Readers`]'.
pub const POOL_MAX: u32 = REQUESTS_MAX + HOUSEKEEPING_MAX;

/// Those of requests, shared out by company ([`request_shares`]).
pub const REQUESTS_MAX: u32 = 9;

/// Those of the service itself: one hears of changes, the others sweep, load the directory and reserve ids. No company
/// can take them.
pub const HOUSEKEEPING_MAX: u32 = 3;

/// Connections of one company at a time. What it holds is short, and its line is not before anybody else's: a third is
/// left so that mostly nobody waits at all.
const COMPANY_MAX: usize = 6;

/// Connections that transactions leave to single statements: who has one open may ask for something beside it.
const BESIDE_CHANGES: usize = 2;

/// Statements that may be long, of all companies: the others' connections are left to what is short, on a machine of
/// any size.
const HEAVY_MAX: usize = 4;

/// Requests of one company that wait for its turn, some 10 KiB each without their bodies.
const COMPANY_WAITING_MAX: usize = 512;

/// Those of them that may be long: an import among them holds up to 16 MiB.
const COMPANY_HEAVY_WAITING_MAX: usize = 32;

/// How the connections of requests are shared out.
///
/// What may be long is bounded by the cores as well, and for one company by half of them: what it asks keeps one core
/// busy, and on the other its neighbours are served.
pub fn request_shares() -> Shares {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Shares {
        all: REQUESTS_MAX as usize,
        company: COMPANY_MAX,
        changes: REQUESTS_MAX as usize - BESIDE_CHANGES,
        company_changes: COMPANY_MAX - BESIDE_CHANGES,
        heavy: cores.clamp(1, HEAVY_MAX),
        company_heavy: (cores / 2).clamp(1, HEAVY_MAX / 2),
        company_waiting: COMPANY_WAITING_MAX,
        company_heavy_waiting: COMPANY_HEAVY_WAITING_MAX,
        wait: ACQUIRE_TIME_MAX,
    }
}

/// Those of [`crate::Readers`]. Their statements are short: two for each of two cores keep PostgreSQL busy while a
/// thread turns rows into JSON.
pub const READERS_MAX: u32 = 4;

/// How long a request waits for a connection before it is told the store is unavailable.
pub(crate) const ACQUIRE_TIME_MAX: Duration = Duration::from_secs(3);

/// Opens a pool that belongs to no service: the command line's. No connection is made yet, so it works while the
/// database is down.
pub fn connect(options: PgConnectOptions) -> PgPool {
    pool(POOL_MAX, named(options).options([PLAN_FOR_THE_VALUES, WITHOUT_NOTICES]))
}

/// Opens the pool of the service's own work.
pub(crate) fn connect_housekeeping(options: PgConnectOptions, life: Option<LifeId>) -> PgPool {
    let options = named(options).options([PLAN_FOR_THE_VALUES, WITHOUT_NOTICES]);
    pool(HOUSEKEEPING_MAX, of_life(options, life))
}

/// Opens the pool of requests. `events`: whether what they change is told in the log.
pub(crate) fn connect_requests(options: PgConnectOptions, events: bool, life: Option<LifeId>) -> PgPool {
    let events = ("hotline.events", if events { "on" } else { "off" });
    let options = named(options).options([PLAN_FOR_THE_VALUES, STATEMENT_TIMEOUT, events]);
    pool(REQUESTS_MAX, of_life(options, life))
}

/// Opens the pool of what a member of a cluster says of itself: no request and no sweep keeps a beat waiting.
pub(crate) fn connect_member(options: PgConnectOptions, life: LifeId) -> PgPool {
    pool(MEMBER_MAX, named(options).application_name(&session_name(life)).options([IDLE_IN_TRANSACTION_TIMEOUT]))
}

/// Connections of a member of a cluster for itself: one beats, one hears of the placement, one changes it.
const MEMBER_MAX: u32 = 3;

/// What the sessions of a life are called: who ends the life ends them by this name.
pub(crate) fn session_name(life: LifeId) -> String {
    format!("hotline {life}")
}

/// A session of one of many: found by its life's name, without locks that outlive a stopped process, and unable to write
/// but in a transaction that begins with the fence.
pub(crate) fn of_life(options: PgConnectOptions, life: Option<LifeId>) -> PgConnectOptions {
    match life {
        Some(life) => options.application_name(&session_name(life)).options([IDLE_IN_TRANSACTION_TIMEOUT, READ_ONLY]),
        None => options,
    }
}

/// A transaction whose process was stopped does not keep its locks for longer.
const IDLE_IN_TRANSACTION_TIMEOUT: (&str, &str) = ("idle_in_transaction_session_timeout", "5s");

/// What does not say that it writes cannot.
const READ_ONLY: (&str, &str) = ("default_transaction_read_only", "on");

fn pool(connections: u32, options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_TIME_MAX).connect_lazy_with(options)
}

/// What a request's statement may take in the server: a second longer than its caller waits
/// ([`crate::error::STATEMENT_TIME_MAX`]). One whose caller has gone does not go on, nor does it keep its locks.
pub(crate) const STATEMENT_TIMEOUT: (&str, &str) = ("statement_timeout", "6s");

/// A list is planned for the values it is asked with. A plan for any value, which PostgreSQL takes up after five
/// executions, cannot tell a fragment that finds one contact of a million from one that finds them all: the second then
/// reads and sorts the whole company (seconds instead of milliseconds). Planning anew costs 0.1 ms for each table joined.
const PLAN_FOR_THE_VALUES: (&str, &str) = ("plan_cache_mode", "force_custom_plan");

/// That a table of the migrations is there already is no news.
const WITHOUT_NOTICES: (&str, &str) = ("client_min_messages", "warning");

/// A statement that has one good plan for all values is planned once for a connection.
pub const PLAN_ONCE: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// The advisory lock of a database's one writer: "hotline" in ASCII.
const WRITER_LOCK: i64 = 0x68_6f_74_6c_69_6e_65;

/// What the persister's commit confirms is given up in the journal: the server must have it on disk, whatever its
/// settings are for others.
const COMMIT_MEANS_KEPT: &str = "select set_config('synchronous_commit', 'on', false) \
    where current_setting('synchronous_commit') = 'off'";

/// This process's claim to be the database's one writer.
#[derive(Debug, Default)]
pub struct WriterClaim {
    /// The epoch taken at the start; 0 before.
    epoch: AtomicI64,
    superseded: AtomicBool,
}

impl WriterClaim {
    /// Notes the epoch this process has taken.
    pub fn hold(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Whether another process was seen to have taken a later epoch.
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }
}

/// A pool of one connection: the persister's own. It holds the writer's lock for as long as it lives, so that a
/// second Hotline on the same database cannot connect one of its own.
pub fn connect_writer(options: PgConnectOptions, claim: Arc<WriterClaim>) -> PgPool {
    writer(named(options).options(BY_KEY), move |connection| {
        let claim = claim.clone();
        async move { lock_for_writing(connection, &claim).await }.boxed()
    })
}

/// The same of one of many, which share the lock.
pub(crate) fn connect_shared_writer(options: PgConnectOptions, life: LifeId) -> PgPool {
    let options = named(options).options(BY_KEY).options([IDLE_IN_TRANSACTION_TIMEOUT]);
    writer(options.application_name(&session_name(life)), |connection| {
        async move {
            let lock = "select pg_try_advisory_lock_shared($1)";
            let locked: bool = sqlx::query_scalar(lock).bind(WRITER_LOCK).fetch_one(connection).await?;
            if locked { Ok(()) } else { Err(sqlx::Error::Protocol("another Hotline is the one writer".to_owned())) }
        }
        .boxed()
    })
}

/// A pool of one connection beside the writer's, for the length of a replay. Its transactions begin with the epoch, as the
/// writer's do, whose lock it does without.
pub(crate) fn connect_replay(options: PgConnectOptions) -> PgPool {
    writer(named(options).options(BY_KEY), |_| async { Ok(()) }.boxed())
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
                sqlx::query(COMMIT_MEANS_KEPT).execute(connection).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options)
}

/// The persister writes rows by their keys, many in a statement. A join of another kind would read a table first, and
/// whether that is large only the statistics say.
const BY_KEY: [(&str, &str); 3] = [("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("enable_seqscan", "off")];

async fn lock_for_writing(connection: &mut PgConnection, claim: &WriterClaim) -> std::result::Result<(), sqlx::Error> {
    let locked: bool =
        sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(WRITER_LOCK).fetch_one(&mut *connection).await?;
    if locked {
        return Ok(());
    }
    // Either the server has not yet noticed that a connection of ours, or of a killed process, has gone; the pool
    // tries again until its time is up. Or another process has taken over while we were cut off.
    let held = claim.epoch.load(Ordering::Acquire);
    if held != 0 {
        let epoch: i64 = sqlx::query_scalar("select epoch from ownership").fetch_one(connection).await?;
        claim.superseded.store(epoch != held, Ordering::Release);
    }
    Err(sqlx::Error::Protocol("another Hotline is the writer".to_owned()))
}

/// No statement of ours is long enough to be worth compiling. And where an index is all that is allowed ([`BY_KEY`]), a
/// table of one row that has none counts as so dear that reading it is compiled each time, for 30 ms and more.
const WITHOUT_JIT: (&str, &str) = ("jit", "off");

/// A row here and there costs hardly more than those in a row: what is read often is in memory, and databases lie on flash.
/// The default, 4, is of turning disks: with it a page of a company that is most of a table is found by reading and sorting
/// all of it, where the key has its order already (1,000,000 deliveries: 510 ms, and 2 by the key).
const RANDOM_READS: (&str, &str) = ("random_page_cost", "1.1");

pub(crate) fn named(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("hotline").options([WITHOUT_JIT, RANDOM_READS]).disable_statement_logging()
}

/// Finds out whether there is a database to be had, and says in words why not. A pool only says that nobody came.
///
/// # Errors
/// [`Error::Unreachable`] when there is none.
pub async fn reach(options: &PgConnectOptions) -> Result<()> {
    let connected = async {
        loop {
            match named(options.clone()).connect().await {
                Ok(connection) => {
                    let _ = connection.close().await;
                    return None;
                }
                Err(error) if !is_passing(&error) => return Some(reason(&error)),
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    };
    let failed = match tokio::time::timeout(ACQUIRE_TIME_MAX, connected).await {
        Ok(failed) => failed,
        Err(_) => Some(format!("no answer within {} s", ACQUIRE_TIME_MAX.as_secs())),
    };
    failed.map_or(Ok(()), |reason| Err(Error::Unreachable { place: place(options), reason }))
}

/// Waits until nobody is the database's writer: a moment after a process was killed its connection may still be there.
/// The claim itself is for [`connect_writer`]; who comes too late is told here, in one word and before anything is done.
///
/// # Errors
/// [`Error::NotOwner`] when somebody goes on being it.
pub(crate) async fn wait_for_writer(db: &PgPool, is_alone: bool) -> Result<()> {
    let attempt = match is_alone {
        true => "select pg_try_advisory_xact_lock($1)",
        false => "select pg_try_advisory_xact_lock_shared($1)",
    };
    let freed = async {
        loop {
            // For the length of this statement's transaction only.
            let is_free: bool = sqlx::query_scalar(attempt).bind(WRITER_LOCK).fetch_one(db).await?;
            if is_free {
                return Ok::<_, sqlx::Error>(());
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    };
    match tokio::time::timeout(ACQUIRE_TIME_MAX, freed).await {
        Ok(freed) => Ok(freed?),
        Err(_) => Err(Error::NotOwner),
    }
}

/// Between two tries to reach a server that is about to start.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Whether a server is there and will let us in soon: it starts, or somebody has to leave first.
fn is_passing(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "57P03" || code == "53300")
}

fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    }
}

/// Where a database is, and who asks for it; never with the password.
fn place(options: &PgConnectOptions) -> String {
    let port = options.get_port();
    let at = match options.get_socket() {
        Some(folder) => format!("the socket {}/.s.PGSQL.{port}", folder.display()),
        None => format!("{}:{port}", options.get_host()),
    };
    let user = options.get_username();
    format!("{at} (database {}, user {user})", options.get_database().unwrap_or(user))
}

/// Brings the database to this release's schema.
///
/// # Errors
/// When the database cannot be reached, a migration fails, or it is a newer release's.
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
            let given = options.get_options().unwrap_or_default();
            assert!(given.contains("jit=off"), "{given}");
        }
    }
}
