//! Records with a position among others: lower positions come first.

use sqlx::{AssertSqlSafe, Encode, PgConnection, PgExecutor, Postgres, Type};

use super::{Table, select};
use crate::document;
use crate::error::with_timeout;
use crate::{CompanyId, Id, Result};

/// A table whose rows have a `position` within a parent.
pub trait Ordered: Table {
    /// The column with the parent's id.
    const PARENT: &'static str;
    /// The type of that column.
    type Parent: Copy + Send + for<'q> Encode<'q, Postgres> + Type<Postgres> + 'static;
}

/// Every row of a parent, sorted by position.
pub async fn all_of<T: Ordered>(db: impl PgExecutor<'_>, company: CompanyId, parent: T::Parent) -> Result<Vec<T>> {
    select_in_order(db, company, parent, "").await
}

/// As [`all_of`], for callers that will refer to the rows: until the transaction ends, none of them can be deleted or
/// change its key.
pub async fn lock_all_of<T: Ordered>(db: &mut PgConnection, company: CompanyId, parent: T::Parent) -> Result<Vec<T>> {
    // The lock that a new reference takes anyway; changes to other columns do not wait for it.
    select_in_order(db, company, parent, " for key share").await
}

async fn select_in_order<T: Ordered>(
    db: impl PgExecutor<'_>,
    company: CompanyId,
    parent: T::Parent,
    locking_clause: &'static str,
) -> Result<Vec<T>> {
    let statement =
        format!("{} where company_id = $1 and {} = $2 order by position, id{locking_clause}", select::<T>(), T::PARENT);
    let rows = with_timeout(sqlx::query(AssertSqlSafe(statement)).bind(company).bind(parent).fetch_all(db)).await?;
    Ok(document::read_all(&rows))
}

/// Locks the rows of a parent against concurrent inserts and reordering until the transaction ends.
pub async fn lock_order<T: Ordered>(db: &mut PgConnection, company: CompanyId, parent: T::Parent) -> Result<()> {
    // One statement text per table: prepared statements are cached by their text, and parents have different types.
    let lock =
        format!("select pg_advisory_xact_lock(hashtextextended('{}:' || $1::text || ':' || $2::text, 0))", T::NAME);
    with_timeout(sqlx::query(AssertSqlSafe(lock)).bind(company).bind(parent).execute(db)).await?;
    Ok(())
}

/// The position after the last row of a parent. It stays free while the caller holds the lock of [`lock_order`].
pub async fn next_position<T: Ordered>(db: &mut PgConnection, company: CompanyId, parent: T::Parent) -> Result<i32> {
    let (table, column) = (T::NAME, T::PARENT);
    let select = format!("select coalesce(max(position), 0) + 1 from {table} where company_id = $1 and {column} = $2");
    with_timeout(sqlx::query_scalar(AssertSqlSafe(select)).bind(company).bind(parent).fetch_one(db)).await
}

/// Renumbers the rows of a parent in the order of `ids`, from position 1, and returns all of them. `None` unless `ids`
/// contains each row exactly once.
pub async fn reorder<T: Ordered<Id = Id<N>>, N: 'static>(
    db: &mut PgConnection,
    company: CompanyId,
    parent: T::Parent,
    ids: &[Id<N>],
) -> Result<Option<Vec<T>>> {
    lock_order::<T>(db, company, parent).await?;
    let (table, column) = (T::NAME, T::PARENT);
    let select = format!("select id from {table} where company_id = $1 and {column} = $2 order by id");
    let existing: Vec<Id<N>> =
        with_timeout(sqlx::query_scalar(AssertSqlSafe(select)).bind(company).bind(parent).fetch_all(&mut *db)).await?;
    let mut requested = ids.to_vec();
    requested.sort_unstable();
    if existing != requested {
        return Ok(None);
    }
    let update = format!(
        "update {table} set position = x.position, updated_at = greatest(now(), {table}.updated_at + interval '1 millisecond')
         from unnest($2::bigint[]) with ordinality as x (id, position)
         where {table}.company_id = $1 and {table}.id = x.id and {table}.position <> x.position"
    );
    with_timeout(sqlx::query(AssertSqlSafe(update)).bind(company).bind(ids).execute(&mut *db)).await?;
    all_of(db, company, parent).await.map(Some)
}
