//! Link tables: which records of one noun are linked to which of another.

use std::marker::PhantomData;

use sqlx::{AssertSqlSafe, PgConnection, PgExecutor};

use super::map_constraint;
use crate::error::with_timeout;
use crate::{CompanyId, Id, Result};

/// A link table, seen from the noun `A`.
pub struct Links<A, B> {
    table: &'static str,
    record_column: &'static str,
    linked_column: &'static str,
    /// The condition on links that may be replaced or removed.
    replaceable: &'static str,
    nouns: PhantomData<fn(A) -> B>,
}

impl<A, B> Links<A, B> {
    /// The table, and the columns with the ids of both sides. The primary key is the company and these columns.
    pub const fn new(table: &'static str, record_column: &'static str, linked_column: &'static str) -> Self {
        Self { table, record_column, linked_column, replaceable: "true", nouns: PhantomData }
    }

    /// Restricts replacing and removing to links that meet this condition. The company is `$1`.
    #[must_use]
    pub const fn replacing(self, replaceable: &'static str) -> Self {
        Self { replaceable, ..self }
    }

    /// Replaces the links of a record with these; returns whether any has changed.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when the company does not have the record, or one of the linked ones.
    pub async fn set(
        &self,
        db: impl PgExecutor<'_>,
        company: CompanyId,
        record: Id<A>,
        linked: &[Id<B>],
    ) -> Result<bool> {
        let Self { table, record_column, linked_column, replaceable, .. } = self;
        // All transactions insert in the same order, which avoids deadlocks.
        let statement = format!(
            "with removed as (
                 delete from {table} where company_id = $1 and {record_column} = $2 and {linked_column} <> all($3)
                     and {replaceable} returning 1),
             added as (
                 insert into {table} (company_id, {record_column}, {linked_column})
                 select $1, $2, id from (select distinct unnest($3) as id order by id) wanted
                 on conflict do nothing returning 1)
             select exists (select from removed) or exists (select from added)"
        );
        let query = sqlx::query_scalar(AssertSqlSafe(statement)).bind(company).bind(record).bind(linked);
        with_timeout(query.fetch_one(db)).await.map_err(map_constraint(&[]))
    }

    /// Links two records; returns whether they were not linked before.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] when the company does not have one of them.
    pub async fn add(&self, db: impl PgExecutor<'_>, company: CompanyId, record: Id<A>, linked: Id<B>) -> Result<bool> {
        let statement = format!(
            "insert into {} (company_id, {}, {}) values ($1, $2, $3) on conflict do nothing",
            self.table, self.record_column, self.linked_column
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(company).bind(record).bind(linked);
        Ok(with_timeout(query.execute(db)).await.map_err(map_constraint(&[]))?.rows_affected() > 0)
    }

    /// Whether a company has at least this many links: [`super::has_at_least`].
    pub async fn has_at_least(&self, db: &mut PgConnection, company: CompanyId, count: i64) -> Result<bool> {
        super::has_at_least(db, company, self.table, count).await
    }

    /// Unlinks two records; returns whether they were linked.
    pub async fn remove(
        &self,
        db: impl PgExecutor<'_>,
        company: CompanyId,
        record: Id<A>,
        linked: Id<B>,
    ) -> Result<bool> {
        let Self { table, record_column, linked_column, replaceable, .. } = self;
        let statement = format!(
            "delete from {table} where company_id = $1 and {record_column} = $2 and {linked_column} = $3 and {replaceable}"
        );
        let query = sqlx::query(AssertSqlSafe(statement)).bind(company).bind(record).bind(linked);
        Ok(with_timeout(query.execute(db)).await?.rows_affected() > 0)
    }
}
