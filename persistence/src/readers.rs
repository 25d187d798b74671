//! Connections for frequent reads. Each thread that serves requests has its own, unless there are more threads than
//! connections.
//!
//! Each statement of these reads has a single plan that suits all values, so PostgreSQL plans it once per
//! connection. If it planned each execution, it would spend most of its time on planning.
//!
//! These statements only read, so they can be retried. Connections are therefore not tested before use or on return,
//! which saves two of a pool's three round trips. If a connection has died, the statement fails and is retried on
//! another one. For some time after a statement got no reply, connections are tested before use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::cluster::LifeId;
use crate::error::{is_outage, with_timeout};
use crate::pool::{PLAN_ONCE, READERS_MAX, STATEMENT_TIMEOUT, for_life, request_shares};
use crate::probe::Probe;
use crate::scheduler::{Scheduler, Shares, Weight};
use crate::session::with_defaults;
use crate::{CompanyId, Result, unanswered};

/// A statement that can be retried. It returns a [`BoxFuture`], which is `Send`; a trait bound cannot
/// require that of the future of an async closure.
pub trait Statement<T>: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<T>> + Send + Sync {}

impl<T, F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<T>> + Send + Sync> Statement<T> for F {}

/// The connections of this process for frequent reads, opened on demand.
#[derive(Debug)]
pub struct Readers {
    options: PgConnectOptions,
    pools: Box<[ReaderPool]>,
}

/// The connections of one thread, or of all threads when there are more threads than connections.
#[derive(Debug)]
struct ReaderPool {
    scheduler: Arc<Scheduler>,
    /// Idle connections, each with the time of its last use.
    idle: Mutex<Vec<(PgConnection, Instant)>>,
}

impl Readers {
    /// Creates the readers of a database; they connect on demand.
    pub fn new(options: PgConnectOptions, life: Option<LifeId>) -> Self {
        let threads = available_parallelism().map_or(1, usize::from);
        let pool_count = if threads > READERS_MAX as usize { 1 } else { threads };
        let pool_size = READERS_MAX as usize / pool_count;
        // One company may use all of a pool; the next company only waits for running statements.
        let shares = Shares { all: pool_size, company: pool_size, ..request_shares() };
        let new_pool = |_| ReaderPool { scheduler: Scheduler::new(shares), idle: Mutex::default() };
        let options = for_life(with_defaults(options).options([PLAN_ONCE, STATEMENT_TIMEOUT]), life);
        Self { options, pools: (0..pool_count).map(new_pool).collect() }
    }

    /// Runs a company's statement, and retries it on another connection if the first one has died.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the database is down or slow, otherwise the statement's error.
    pub async fn read<T>(&self, company: CompanyId, statement: impl Statement<T>) -> Result<T> {
        with_timeout(self.attempt(company, statement)).await
    }

    async fn attempt<T>(&self, company: CompanyId, statement: impl Statement<T>) -> sqlx::Result<T> {
        // Each thread keeps to one pool: a connection's replies also wake the thread that opened it.
        let pool = &self.pools[number_of_this_thread() % self.pools.len()];
        let _permit = pool.scheduler.permit(company, Weight::Light).await?;
        // A connection on which a statement failed or was canceled is closed by being dropped.
        while let Some((mut connection, used_at)) = pool.take() {
            if unanswered::is_suspected() && !unanswered::is_usable(&mut connection, used_at).await {
                continue;
            }
            match statement(&mut connection).await {
                Ok(result) => {
                    pool.put_back(connection);
                    return Ok(result);
                }
                Err(error) if is_outage(&error) => tracing::debug!(%error, "pooled connection is broken; reconnecting"),
                Err(error) => return Err(error),
            }
        }
        let mut connection = self.options.connect().await?;
        let result = statement(&mut connection).await?;
        pool.put_back(connection);
        Ok(result)
    }

    /// A probe of the same database.
    pub(crate) fn probe(&self) -> Probe {
        Probe::new(self.options.clone())
    }

    /// Closes all connections; later reads fail.
    pub fn close(&self) {
        for pool in &self.pools {
            pool.scheduler.close();
            pool.idle.lock().clear();
        }
    }
}

impl ReaderPool {
    /// The most recently used connection, whose caches are the warmest; `None` if none is idle.
    fn take(&self) -> Option<(PgConnection, Instant)> {
        self.idle.lock().pop()
    }

    fn put_back(&self, connection: PgConnection) {
        self.idle.lock().push((connection, Instant::now()));
    }
}

/// Threads are numbered on first use, which spreads them evenly.
fn number_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}
