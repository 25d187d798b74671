//! Access to the tables: every statement of a request runs within its company's share of the connections.
//!
//! [`crate::Store::db`] returns a [`Db`], the only part of the store that runs statements for a company. It acquires a
//! permit of the [`Scheduler`] before a connection, and releases it once the connection is free again. If a caller is
//! dropped, its connection is free only when the server has finished the statement, which `statement_timeout` bounds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Connection, Describe, Either, Execute, Executor, PgConnection, PgExecutor, Postgres, SqlStr, Transaction};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::begin::begin;
use crate::error::{STATEMENT_TIME_MAX, classify_commit, is_deadlock, is_stale_plan, unconfirmed_commit, with_timeout};
use crate::fence::{Fence, may_write};
use crate::large;
use crate::scheduler::{Permit, Scheduler, Weight};
use crate::{CompanyId, Result, unanswered};

/// Runs statements, one after another, on a company's share of the connections, or on a separate pool (the command
/// line, tests).
pub trait Database<'c>: PgExecutor<'c> + Copy {
    /// The same access, whose statements count as [`Weight::Heavy`] in a company's share.
    #[must_use]
    fn heavy(self) -> Self;

    /// Begins a transaction of a plain change.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the database is down, or the company's share is used up.
    fn transaction(self) -> BoxFuture<'c, Result<PlainTransaction>>;
}

impl<'c> Database<'c> for &'c PgPool {
    fn heavy(self) -> Self {
        self
    }

    fn transaction(self) -> BoxFuture<'c, Result<PlainTransaction>> {
        async { Ok(PlainTransaction::new(with_timeout(begin(self, None, ())).await?.0, None)) }.boxed()
    }
}

/// Time limit for a single-statement transaction including its commit. It is shorter than the caller's timeout
/// ([`STATEMENT_TIME_MAX`]).
const COMMIT_TIME_MAX: Duration = Duration::from_millis(STATEMENT_TIME_MAX.as_millis() as u64 - 250);

/// How long a statement whose caller was dropped may keep its connection: longer than the server lets it run.
const FINISH_TIME_MAX: Duration = Duration::from_secs(10);

/// A company's share of the connections.
#[derive(Clone, Copy)]
pub struct Db<'a> {
    pool: &'a PgPool,
    fence: Option<&'a Fence>,
    scheduler: &'a Arc<Scheduler>,
    company: CompanyId,
    weight: Weight,
}

impl<'a> Database<'a> for Db<'a> {
    fn heavy(self) -> Self {
        Self { weight: Weight::Heavy, ..self }
    }

    fn transaction(self) -> BoxFuture<'a, Result<PlainTransaction>> {
        self.begin().boxed()
    }
}

impl fmt::Debug for Db<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("company", &self.company).field("weight", &self.weight).finish_non_exhaustive()
    }
}

impl<'a> Db<'a> {
    pub(crate) fn new(
        pool: &'a PgPool,
        fence: Option<&'a Fence>,
        scheduler: &'a Arc<Scheduler>,
        company: CompanyId,
    ) -> Self {
        Self { pool, fence, scheduler, company, weight: Weight::Light }
    }

    /// The company whose share this is.
    pub fn company(&self) -> CompanyId {
        self.company
    }

    /// Begins a transaction of this company.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the database is down, or the company's share is used up.
    pub async fn begin(self) -> Result<PlainTransaction> {
        with_timeout(async {
            let permit = match large::has_permit() {
                true => None,
                false => Some(self.scheduler.permit_transaction(self.company, self.weight).await?),
            };
            let (transaction, permit) = begin_transaction(self.pool, self.fence, permit).await?;
            Ok(PlainTransaction::new(transaction, permit))
        })
        .await
    }

    /// The company whose permit a large result needs.
    fn large_result_company(self) -> Option<CompanyId> {
        Some(self.company)
    }

    async fn checkout(self) -> sqlx::Result<Checkout> {
        let permit = match large::has_permit() {
            true => None,
            false => Some(self.scheduler.permit(self.company, self.weight).await?),
        };
        let connection = self.pool.acquire().await?;
        Ok(Checkout::new(connection, permit))
    }
}

/// Begins a transaction, fenced for a cluster member. `guard` is held until the transaction has begun, and returned
/// with it.
async fn begin_transaction<T: Send + 'static>(
    pool: &PgPool,
    fence: Option<&Fence>,
    guard: T,
) -> sqlx::Result<(Transaction<'static, Postgres>, T)> {
    match fence {
        None => begin(pool, None, guard).await,
        Some(fence) => {
            let transaction = begin(pool, Some(fence.begin_statement.as_str().to_owned()), guard).await;
            fence.notify_if_refused(transaction)
        }
    }
}

/// Connections for the service's own writes, which take no company's share.
#[derive(Clone, Copy)]
pub struct Housekeeper<'a> {
    pool: &'a PgPool,
    fence: Option<&'a Fence>,
}

impl<'a> Housekeeper<'a> {
    pub(crate) fn new(pool: &'a PgPool, fence: Option<&'a Fence>) -> Self {
        Self { pool, fence }
    }

    /// `None`: the service's own results are small, and need no permit.
    fn large_result_company(self) -> Option<CompanyId> {
        None
    }

    async fn checkout(self) -> sqlx::Result<Checkout> {
        Ok(Checkout::new(self.pool.acquire().await?, None))
    }
}

impl<'a> Database<'a> for Housekeeper<'a> {
    fn heavy(self) -> Self {
        self
    }

    fn transaction(self) -> BoxFuture<'a, Result<PlainTransaction>> {
        with_timeout(async move {
            let (transaction, ()) = begin_transaction(self.pool, self.fence, ()).await?;
            Ok(PlainTransaction::new(transaction, None))
        })
        .boxed()
    }
}

impl fmt::Debug for Housekeeper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Housekeeper").finish_non_exhaustive()
    }
}

/// A connection with its scheduler permit.
struct Checkout {
    connection: Option<PoolConnection<Postgres>>,
    permit: Option<Permit>,
    /// Whether a statement was started and not awaited to its end.
    is_busy: bool,
    /// Whether the server may be in a transaction that sqlx does not know of, because its start was not awaited.
    /// Such a transaction would never be ended.
    may_be_in_transaction: bool,
    /// The runtime in which the connection was acquired. A connection can be returned to the pool only within a
    /// runtime, and an actor's thread that ends drops its tasks outside of it.
    runtime: Handle,
}

impl Checkout {
    fn new(connection: PoolConnection<Postgres>, permit: Option<Permit>) -> Self {
        let runtime = Handle::current();
        Self { connection: Some(connection), permit, is_busy: false, may_be_in_transaction: false, runtime }
    }

    /// Marks the connection as busy, and returns it for one statement.
    fn start_statement(&mut self) -> sqlx::Result<&mut PgConnection> {
        self.is_busy = true;
        self.connection.as_deref_mut().ok_or(sqlx::Error::PoolClosed)
    }

    /// The same for a transaction of one statement; also returns the flag to clear once it has begun.
    fn start_transaction(&mut self) -> sqlx::Result<(&mut PgConnection, &mut bool)> {
        (self.is_busy, self.may_be_in_transaction) = (true, true);
        let connection = self.connection.as_deref_mut().ok_or(sqlx::Error::PoolClosed)?;
        Ok((connection, &mut self.may_be_in_transaction))
    }

    fn finish_statement(&mut self) {
        self.is_busy = false;
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        let (Some(mut connection), permit) = (self.connection.take(), self.permit.take()) else { return };
        if self.may_be_in_transaction {
            connection.close_on_drop();
        } else if self.is_busy {
            // The caller was dropped, but the server still executes the statement.
            self.runtime.spawn(async move {
                // `statement_timeout` ends the statement earlier, unless the server is frozen or unreachable.
                match timeout(FINISH_TIME_MAX, connection.ping()).await {
                    Ok(_) => drop(connection),
                    Err(_) => {
                        unanswered::record_loss();
                        drop(connection.detach());
                    }
                }
                drop(permit);
            });
        }
    }
}

/// Runs a statement that neither reads nor writes rows, such as `describe`.
macro_rules! run {
    ($db:ident, $connection:ident => $statement:expr) => {
        async move {
            let mut checkout = $db.checkout().await?;
            let $connection = checkout.start_statement()?;
            let result = $statement.await;
            checkout.finish_statement();
            result
        }
        .boxed()
    };
}

/// Runs any other statement. In a cluster, a statement that may write runs in its own transaction, which begins with
/// the fence: PostgreSQL refuses it if this life is over. A statement that PostgreSQL has rolled back is repeated once:
/// if the session had prepared it before a migration, or if it was in a deadlock, for example with a migration.
macro_rules! run_fenced {
    ($db:ident, $query:ident, $connection:ident, $statement:ident => $run:expr) => {
        async move {
            let started_at = Instant::now();
            let mut query = $query;
            let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?;
            let is_persistent = query.persistent();
            let sql = query.sql();
            let fence = $db.fence.filter(|_| may_write(sql.as_str()));
            let mut checkout = $db.checkout().await?;
            let (mut is_repeated, mut is_commit_answered) = (false, true);
            let result = loop {
                let result = async {
                    let Some(fence) = fence else {
                        let $connection = checkout.start_statement()?;
                        return run_rebuilt!(sql, arguments, is_persistent, $statement => $run);
                    };
                    let (connection, may_be_in_transaction) = checkout.start_transaction()?;
                    let transaction = connection.begin_with(fence.begin_statement.clone()).await;
                    let mut transaction = fence.notify_if_refused(transaction)?;
                    *may_be_in_transaction = false;
                    let $connection = &mut *transaction;
                    let result = run_rebuilt!(sql, arguments, is_persistent, $statement => $run)?;
                    // This limit is below the caller's timeout, so the caller learns that the commit's outcome is
                    // unknown.
                    match timeout_at(started_at + COMMIT_TIME_MAX, transaction.commit()).await {
                        Ok(outcome) => classify_commit(outcome)?,
                        Err(_) => {
                            unanswered::record_timeout();
                            is_commit_answered = false;
                            return Err(unconfirmed_commit(format!("no response within {COMMIT_TIME_MAX:?}")));
                        }
                    }
                    Ok(result)
                }
                .await;
                match result {
                    Err(error) if !is_repeated && is_stale_plan(&error) => {
                        unanswered::record_migration();
                        checkout.start_statement()?.clear_cached_statements().await?;
                        is_repeated = true;
                    }
                    Err(error) if !is_repeated && is_deadlock(&error) => is_repeated = true,
                    result => break result,
                }
            };
            // While the server may still commit, the connection stays busy.
            if is_commit_answered {
                checkout.finish_statement();
            }
            result
        }
        .boxed()
    };
}

/// Rebuilds a statement from its parts, and runs it.
macro_rules! run_rebuilt {
    ($sql:ident, $arguments:ident, $is_persistent:ident, $statement:ident => $run:expr) => {
        match $arguments.clone() {
            Some(arguments) => {
                let $statement = sqlx::query_with($sql.clone(), arguments).persistent($is_persistent);
                $run.await
            }
            None => {
                let $statement = sqlx::raw_sql($sql.clone());
                $run.await
            }
        }
    };
}

macro_rules! executor {
    ($executor_type:ident) => {
        impl<'c> Executor<'c> for $executor_type<'c> {
            type Database = Postgres;

            fn execute<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<PgQueryResult>>
            where
                'c: 'e,
                E: 'q + Execute<'q, Postgres>,
            {
                run_fenced!(self, query, connection, statement => connection.execute(statement))
            }

            fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Either<PgQueryResult, PgRow>>>
            where
                'c: 'e,
                E: 'q + Execute<'q, Postgres>,
            {
                // Fetch all rows: a slowly read stream would keep its connection from others.
                let company = self.large_result_company();
                let results = run_fenced!(self, query, connection, statement =>
                    large::collect(company, connection.fetch_many(statement), large::row_in));
                let to_stream = |results: sqlx::Result<Vec<_>>| match results {
                    Ok(results) => stream::iter(results.into_iter().map(Ok)).boxed(),
                    Err(error) => stream::once(async move { Err(error) }).boxed(),
                };
                results.map(to_stream).flatten_stream().boxed()
            }

            fn fetch_all<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Vec<PgRow>>>
            where
                'c: 'e,
                E: 'q + Execute<'q, Postgres>,
            {
                let company = self.large_result_company();
                run_fenced!(self, query, connection, statement => large::collect(company, connection.fetch(statement), large::as_row))
            }

            fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
            where
                'c: 'e,
                E: 'q + Execute<'q, Postgres>,
            {
                run_fenced!(self, query, connection, statement => connection.fetch_optional(statement))
            }

            fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, sqlx::Result<PgStatement>>
            where
                'c: 'e,
            {
                run!(self, connection => connection.prepare_with(sql, parameters))
            }

            fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, sqlx::Result<Describe<Postgres>>>
            where
                'c: 'e,
            {
                run!(self, connection => connection.describe(sql))
            }
        }
    };
}

executor!(Db);
executor!(Housekeeper);

/// A transaction of a plain change. Dropping it rolls it back.
pub struct PlainTransaction {
    transaction: Option<Transaction<'static, Postgres>>,
    permit: Option<Permit>,
    /// See `Checkout::runtime`.
    runtime: Handle,
}

impl PlainTransaction {
    fn new(transaction: Transaction<'static, Postgres>, permit: Option<Permit>) -> Self {
        Self { transaction: Some(transaction), permit, runtime: Handle::current() }
    }

    /// The connection of the transaction.
    ///
    /// # Errors
    /// Never in practice: `commit` and rollback consume the transaction.
    pub fn connection(&mut self) -> Result<&mut PgConnection> {
        Ok(self.transaction.as_deref_mut().ok_or(sqlx::Error::PoolClosed)?)
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// [`crate::Error::Unknown`] when the database does not answer: then it is unknown whether the change was
    /// committed.
    pub async fn commit(mut self) -> Result<()> {
        let Some(transaction) = self.transaction.take() else { return Err(sqlx::Error::PoolClosed.into()) };
        match timeout(STATEMENT_TIME_MAX, transaction.commit()).await {
            Ok(result) => Ok(classify_commit(result)?),
            Err(_) => {
                unanswered::record_timeout();
                Err(unconfirmed_commit(format!("no response within {} s", STATEMENT_TIME_MAX.as_secs())).into())
            }
        }
    }
}

impl Drop for PlainTransaction {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        let (Some(transaction), permit) = (self.transaction.take(), self.permit.take()) else { return };
        // A statement whose caller was dropped may still be running.
        self.runtime.spawn(async move {
            if timeout(FINISH_TIME_MAX, transaction.rollback()).await.is_err() {
                unanswered::record_timeout();
            }
            drop(permit);
        });
    }
}
