//! Starts transactions on connections of a pool.

use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr, Transaction};

/// Begins a transaction, with `statement` instead of `BEGIN` if given. `guard` is held until the transaction has begun,
/// and returned with it.
///
/// The start runs in a task of its own, so a caller that gives up does not interrupt it: the transaction begins and is
/// rolled back. sqlx knows of a transaction only once the server has confirmed its start. If a start were
/// interrupted, the connection would return to the pool in an open transaction that is never ended, and writes of its
/// next users would be acknowledged but never committed.
pub(crate) async fn begin<T: Send + 'static>(
    pool: &PgPool,
    statement: Option<String>,
    guard: T,
) -> sqlx::Result<(Transaction<'static, Postgres>, T)> {
    let connection = pool.acquire().await?;
    let statement = statement.map(|statement| AssertSqlSafe(statement).into_sql_str());
    let task = tokio::spawn(async move { (Transaction::begin(connection, statement).await, guard) });
    // The task does not panic, and only the end of the runtime aborts it.
    let (transaction, guard) = task.await.map_err(|_| sqlx::Error::WorkerCrashed)?;
    Ok((transaction?, guard))
}
