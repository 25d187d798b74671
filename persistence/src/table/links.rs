//! Tables that hold nothing but pairs: which records of one noun are linked to which of another.

use std::marker::PhantomData;

use sqlx::{AssertSqlSafe, PgExecutor};

use super::map_constraint;
use crate::error::with_timeout;
use crate::{CompanyId, Id, Result};

/// A table of pairs, from the side of the noun `A`.
pub struct Links<A, B> {
    table: &'static str,
    one: &'static str,
    other: &'static str,
    nouns: PhantomData<fn(A) -> B>,
}

impl<A, B> Links<A, B> {
    /// The table, and the columns that hold the ids of either side. Its key is both of them in the company.
    pub const fn new(table: &'static str, one: &'static str, other: &'static str) -> Self {
        Self { table, one, other, nouns: PhantomData }
    }

    /// Makes these what a record is linked to, and nothing else.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when one of them, or the record, is not the company's.
    pub async fn set(
        &self,
        db: impl PgExecutor<'_>,
        company: CompanyId,
        record: Id<A>,
        linked: &[Id<B>],
    ) -> Result<()> {
        let Self { table, one, other, .. } = self;
        // Made in one order by all, so that no two wait for each other.
        let set = format!(
            "with gone as (delete from {table} where company_id = $1 and {one} = $2 and {other} <> all($3))
             insert into {table} (company_id, {one}, {other})
             select $1, $2, id from (select distinct unnest($3) as id order by id) wanted
             on conflict do nothing"
        );
        let set = sqlx::query(AssertSqlSafe(set)).bind(company).bind(record).bind(linked);
        with_timeout(set.execute(db)).await.map_err(map_constraint(&[]))?;
        Ok(())
    }

    /// Links two records, and says whether they were not.
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

    /// Parts two records, and says whether they were linked.
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
        let remove =
            format!("delete from {} where company_id = $1 and {} = $2 and {} = $3", self.table, self.one, self.other);
        let remove = sqlx::query(AssertSqlSafe(remove)).bind(company).bind(record).bind(other);
        Ok(with_timeout(remove.execute(db)).await?.rows_affected() > 0)
    }
}
