//! Link tables: which records of one noun are linked to which of another.

use std::marker::PhantomData;

use sqlx::{AssertSqlSafe, PgExecutor};

use super::map_constraint;
use crate::error::with_timeout;
use crate::{CompanyId, Id, Result};

/// A link table, seen from the noun `A`.
pub struct Links<A, B> {
    table: &'static str,
    one: &'static str,
    other: &'static str,
    /// The condition of the links that are replaced or removed.
    replaced: &'static str,
    nouns: PhantomData<fn(A) -> B>,
}

impl<A, B> Links<A, B> {
    /// The table, and the columns with the ids of either side. Its key is the company and both of them.
    pub const fn new(table: &'static str, one: &'static str, other: &'static str) -> Self {
        Self { table, one, other, replaced: "true", nouns: PhantomData }
    }

    /// Replaces and removes only links of which this is true. The company is `$1`.
    #[must_use]
    pub const fn replacing(self, replaced: &'static str) -> Self {
        Self { replaced, ..self }
    }

    /// Replaces the links of a record with these; returns whether any has changed.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when one of them, or the record, is not the company's.
    pub async fn set(
        &self,
        db: impl PgExecutor<'_>,
        company: CompanyId,
        record: Id<A>,
        linked: &[Id<B>],
    ) -> Result<bool> {
        let Self { table, one, other, replaced, .. } = self;
        // Everybody inserts in the same order, which avoids deadlocks.
        let set = format!(
            "with gone as (delete from {table} where company_id = $1 and {one} = $2 and {other} <> all($3)
                     and {replaced} returning 1),
             added as (
                 insert into {table} (company_id, {one}, {other})
                 select $1, $2, id from (select distinct unnest($3) as id order by id) wanted
                 on conflict do nothing returning 1)
             select exists (select from gone) or exists (select from added)"
        );
        let set = sqlx::query_scalar(AssertSqlSafe(set)).bind(company).bind(record).bind(linked);
        with_timeout(set.fetch_one(db)).await.map_err(map_constraint(&[]))
    }

    /// Links two records; returns whether they were not linked before.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when one of them is not the company's.
    pub async fn add(&self, db: impl PgExecutor<'_>, company: CompanyId, record: Id<A>, other: Id<B>) -> Result<bool> {
        let add = format!(
            "insert into {} (company_id, {}, {}) values ($1, $2, $3) on conflict do nothing",
            self.table, self.one, self.other
        );
        let add = sqlx::query(AssertSqlSafe(add)).bind(company).bind(record).bind(other);
        Ok(with_timeout(add.execute(db)).await.map_err(map_constraint(&[]))?.rows_affected() > 0)
    }

    /// Unlinks two records; returns whether they were linked.
    ///
    /// # Errors
    /// When the database cannot answer.
    pub async fn remove(
        &self,
        db: impl PgExecutor<'_>,
        company: CompanyId,
        record: Id<A>,
        other: Id<B>,
    ) -> Result<bool> {
        let Self { table, one, other: column, replaced, .. } = self;
        let remove =
            format!("delete from {table} where company_id = $1 and {one} = $2 and {column} = $3 and {replaced}");
        let remove = sqlx::query(AssertSqlSafe(remove)).bind(company).bind(record).bind(other);
        Ok(with_timeout(remove.execute(db)).await?.rows_affected() > 0)
    }
}
