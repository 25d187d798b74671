//! How a transaction of a pool begins.

use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr, Transaction};

/// Begins a transaction, by this statement if there is one; `held` is kept for as long as that takes, and answered with it.
///
/// Whoever asks may go away meanwhile, and then it begins all the same, and is rolled back. The library counts a
/// transaction once the server has said that it began, and puts a connection whose caller has gone before back into its pool
/// with one that nobody ends: what the next ones write there would be answered, and never stand.
pub(crate) async fn begin<T: Send + 'static>(
    pool: &PgPool,
    statement: Option<String>,
    held: T,
) -> sqlx::Result<(Transaction<'static, Postgres>, T)> {
    let connection = pool.acquire().await?;
    let statement = statement.map(|statement| AssertSqlSafe(statement).into_sql_str());
    let begun = tokio::spawn(async move { (Transaction::begin(connection, statement).await, held) });
    // It panics no more than its caller would, and is ended with the runtime only.
    let (transaction, held) = begun.await.map_err(|_| sqlx::Error::WorkerCrashed)?;
    Ok((transaction?, held))
}
