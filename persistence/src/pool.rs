//! Connections to PostgreSQL, and the migrations that every database gets at startup.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::PgConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::cluster::LifeId;
use crate::migration::{self, MigrationPolicy};
pub use crate::requirements::{Purpose, prepare};
use crate::scheduler::Shares;
use crate::session::with_defaults;
pub use crate::writer_lock::WriterClaim;
use crate::{Result, unanswered};

/// Connections for requests and the service's own work, readers included. More than the cores can use would only queue
/// inside PostgreSQL.
pub const MAIN_CONNECTIONS_MAX: u32 = POOL_MAX + READERS_MAX;

/// The most connections of a process without a cluster: [`MAIN_CONNECTIONS_MAX`], one for the persister, and one for
/// [`crate::probe`].
pub const STANDALONE_CONNECTIONS_MAX: u32 = MAIN_CONNECTIONS_MAX + 2;

/// The most connections of a process of a cluster.
pub const MEMBER_CONNECTIONS_MAX: u32 = STANDALONE_CONNECTIONS_MAX + MEMBER_POOL_MAX;

/// Connections other than those of [`crate::Readers`].
pub const POOL_MAX: u32 = REQUEST_CONNECTIONS_MAX + HOUSEKEEPING_MAX;

/// Connections for requests, shared among companies ([`request_shares`]).
pub const REQUEST_CONNECTIONS_MAX: u32 = 9;

/// Connections for the service's own work: one listens for notifications, the others sweep, load the directory and
/// reserve ids. No company's requests can use them up.
pub const HOUSEKEEPING_MAX: u32 = 3;

/// Maximum connections of one company at a time. It uses them briefly and has no priority over others; a third is left
/// free so that others rarely wait.
const COMPANY_CONNECTIONS_MAX: usize = 6;

/// Connections that transactions leave for single statements: the holder of a transaction may need to run a statement
/// outside it.
const STATEMENTS_RESERVED: usize = 2;

/// Maximum number of heavy statements at a time, across companies: the other connections are left for short ones, on a
/// machine of any size.
const HEAVY_MAX: usize = 4;

/// Maximum queued requests of one company, about 10 KiB each without their bodies.
const COMPANY_WAITING_MAX: usize = 512;

/// Maximum queued heavy requests of one company: an import holds up to 16 MiB.
const COMPANY_HEAVY_WAITING_MAX: usize = 32;

/// How the request connections are shared among companies.
///
/// Heavy statements are also limited to the number of cores, and those of one company to half of it: while its
/// statements keep half of the cores busy, other companies are served on the rest.
pub fn request_shares() -> Shares {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Shares {
        all: REQUEST_CONNECTIONS_MAX as usize,
        company: COMPANY_CONNECTIONS_MAX,
        transactions: REQUEST_CONNECTIONS_MAX as usize - STATEMENTS_RESERVED,
        company_transactions: COMPANY_CONNECTIONS_MAX - STATEMENTS_RESERVED,
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
    pool(REQUEST_CONNECTIONS_MAX, for_life(options, life))
}

/// Opens a cluster member's own pool, so that neither requests nor sweeps delay its heartbeat.
pub(crate) fn connect_member(options: PgConnectOptions, life: LifeId) -> PgPool {
    pool(
        MEMBER_POOL_MAX,
        with_defaults(options).application_name(&session_name(life)).options([IDLE_IN_TRANSACTION_TIMEOUT]),
    )
}

/// Connections of a cluster member for itself: one sends heartbeats, one listens for the placement, one changes it.
const MEMBER_POOL_MAX: u32 = 3;

/// The application name of a life's sessions; ending a life terminates sessions by this name.
pub(crate) fn session_name(life: LifeId) -> String {
    format!("hotline {life}")
}

/// Adds the options of a cluster member's session, if there is a life: the life's name, a timeout for the locks of a
/// stopped process, and read-only transactions except those that begin with the fence, a lock of the life's row.
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
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIME_MAX)
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            // Instead of the library's own test, which has no time limit.
            let used_at = Instant::now().checked_sub(metadata.idle_for).unwrap_or_else(Instant::now);
            async move { Ok(unanswered::is_usable(connection, used_at).await) }.boxed()
        })
        .after_release(|connection, _| async { Ok(unanswered::may_stay(connection).await) }.boxed())
        .connect_lazy_with(options)
}

/// Server-side limit for a request's statement: a second longer than its caller waits
/// ([`crate::error::STATEMENT_TIME_MAX`]). It stops statements whose caller was canceled, and releases their locks.
pub(crate) const STATEMENT_TIMEOUT: (&str, &str) = ("statement_timeout", "6s");

/// Makes PostgreSQL plan each list query for its actual parameters. The generic plan, which PostgreSQL may choose after
/// five executions, cannot distinguish a search fragment that matches one contact of a million from one that matches
/// all of them; the latter would read and sort the whole company (seconds instead of milliseconds). Replanning costs
/// 0.1 ms per joined table.
const CUSTOM_PLANS: (&str, &str) = ("plan_cache_mode", "force_custom_plan");

/// Suppresses notices: migrations cause one for each object that exists already.
const NO_NOTICES: (&str, &str) = ("client_min_messages", "warning");

/// For statements with one good plan for all values: planned once per connection.
pub const PLAN_ONCE: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// The journal deletes entries that the persister has committed, so the server must have them on disk, whatever the
/// database's default is.
const SYNC_ON_COMMIT: &str = "select set_config('synchronous_commit', 'on', false) \
    where current_setting('synchronous_commit') = 'off'";

/// A pool of one connection for the persister. The connection holds the writer's lock while it is open, so a second
/// Hotline on the same database cannot open its own.
pub fn connect_writer(options: PgConnectOptions, claim: Arc<WriterClaim>) -> PgPool {
    let options = with_defaults(options).options(INDEX_SCANS_ONLY);
    let options = match claim.folder() {
        Some(folder) => options.application_name(&folder.session_name()),
        None => options,
    };
    writer_pool(options, move |connection| {
        let claim = claim.clone();
        async move { claim.lock(connection).await }.boxed()
    })
}

/// As [`connect_writer`], for cluster members, which share the lock.
pub(crate) fn connect_shared_writer(options: PgConnectOptions, life: LifeId, claim: Arc<WriterClaim>) -> PgPool {
    let options = with_defaults(options).options(INDEX_SCANS_ONLY).options([IDLE_IN_TRANSACTION_TIMEOUT]);
    writer_pool(options.application_name(&session_name(life)), move |connection| {
        let claim = claim.clone();
        async move { claim.lock_shared(connection).await }.boxed()
    })
}

/// A second one-connection pool for the duration of a replay. Its transactions check the epoch like the writer's, but
/// it does not take the writer's lock.
pub(crate) fn connect_replay(options: PgConnectOptions) -> PgPool {
    writer_pool(with_defaults(options).options(INDEX_SCANS_ONLY), |_| async { Ok(()) }.boxed())
}

/// A pool of one connection, which takes `lock` whenever it is opened.
fn writer_pool<L>(options: PgConnectOptions, lock: L) -> PgPool
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

/// The persister writes rows by key, many per statement. Other join methods read a whole table first, and outdated
/// statistics can make a large table look small.
const INDEX_SCANS_ONLY: [(&str, &str); 3] =
    [("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("enable_seqscan", "off")];

/// Migrates the database to this release's schema.
///
/// # Errors
/// When the database cannot be reached, a migration fails, or the schema is of a newer release.
pub async fn migrate(db: &PgPool) -> Result<()> {
    migration::migrate(db, MigrationPolicy::default()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pools_disable_jit_compilation() {
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
