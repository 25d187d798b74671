//! Append-only tables, partitioned by the time of their rows: expired rows are dropped as a whole partition instead of
//! being deleted one by one.
//!
//! Each table is partitioned by ranges of its column `created_at`. The migration that creates it also creates its
//! default partition `<table>_default`, which takes rows that fit no other one (from a wrong clock, or from a journal
//! that is replayed a month later), so no row waits for its partition to be created.

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use sqlx::AssertSqlSafe;

use crate::error::with_timeout;
use crate::{Database, Result};

/// Partitions created ahead of the current one: current rows have a partition even if sweeps fail for this many spans.
const PARTITIONS_AHEAD: i32 = 2;

/// How long a change of partitions waits for its lock. Later writers queue behind it.
const LOCK_TIME_MAX: Duration = Duration::from_millis(300);

/// Maximum expired rows of the default partition that one statement deletes.
const DELETED_ROWS_MAX: i64 = 10_000;

/// Encoding of a partition's start in its name: the hour, in UTC.
const NAME_FORMAT: &str = "%Y%m%d_%H";

/// The partitions of one table.
#[derive(Clone, Copy, Debug)]
pub struct Partitions {
    /// The table's name.
    pub table: &'static str,
    /// The length of a partition: hours that divide a day, or whole days.
    pub span: TimeDelta,
}

impl Partitions {
    /// Creates the partition of `now` and the following ones if they are missing.
    ///
    /// # Errors
    /// When the database cannot answer, or the table is locked for too long; the next sweep retries.
    pub async fn create_ahead(&self, db: impl Database<'_>, now: DateTime<Utc>) -> Result<()> {
        let Ok(first) = now.duration_trunc(self.span) else { return Ok(()) };
        for start in (0..=PARTITIONS_AHEAD).map(|spans| first + self.span * spans) {
            self.create(db, start).await?;
        }
        Ok(())
    }

    /// Drops the partitions that end at `before` or earlier, and deletes rows of that age from the default one.
    ///
    /// # Errors
    /// Like [`Partitions::create_ahead`].
    pub async fn drop_expired(&self, db: impl Database<'_>, before: DateTime<Utc>) -> Result<()> {
        let table = self.table;
        for (name, start) in self.list(db).await? {
            if start + self.span <= before {
                self.execute_in_transaction(db, &[format!("drop table {name}")]).await?;
            }
        }
        let delete = format!(
            "delete from {table}_default where ctid = any(array(
                 select ctid from {table}_default where created_at <= $1 limit {DELETED_ROWS_MAX}))"
        );
        loop {
            let deleted = with_timeout(sqlx::query(AssertSqlSafe(delete.as_str())).bind(before).execute(db)).await?;
            if deleted.rows_affected() < DELETED_ROWS_MAX.unsigned_abs() {
                return Ok(());
            }
        }
    }

    /// The partitions except the default one, each with its start.
    async fn list(&self, db: impl Database<'_>) -> Result<Vec<(String, DateTime<Utc>)>> {
        let names: Vec<String> = with_timeout(
            sqlx::query_scalar(
                "select part.relname::text from pg_inherits join pg_class as part on part.oid = inhrelid
                 where inhparent = to_regclass($1)",
            )
            .bind(self.table)
            .fetch_all(db),
        )
        .await?;
        Ok(names.into_iter().filter_map(|name| Some((name.clone(), self.start_of(&name)?))).collect())
    }

    fn name_of(&self, start: DateTime<Utc>) -> String {
        format!("{}_p{}", self.table, start.format(NAME_FORMAT))
    }

    fn start_of(&self, name: &str) -> Option<DateTime<Utc>> {
        let hour = name.strip_prefix(self.table)?.strip_prefix("_p")?;
        // The name contains no minutes, and a time cannot be parsed without them.
        let start = chrono::NaiveDateTime::parse_from_str(&format!("{hour}00"), &format!("{NAME_FORMAT}%M")).ok()?;
        Some(start.and_utc())
    }

    async fn create(&self, db: impl Database<'_>, start: DateTime<Utc>) -> Result<()> {
        let (table, name) = (self.table, self.name_of(start));
        let exists: bool =
            with_timeout(sqlx::query_scalar("select to_regclass($1) is not null").bind(&name).fetch_one(db)).await?;
        if exists {
            return Ok(());
        }
        // Attached rather than created in place, so that writers of other partitions are not blocked.
        let (from, to) = (start.to_rfc3339(), (start + self.span).to_rfc3339());
        let statements = [
            // Rows are inserted once and dropped with the partition: an autovacuum after inserts would have no work.
            format!("create table {name} (like {table} including all) with (autovacuum_vacuum_insert_threshold = -1)"),
            format!("alter table {name} alter column company_id set statistics 0"),
            // Moves rows that were written before this partition existed.
            format!(
                "with moved as (delete from {table}_default where created_at >= '{from}' and created_at < '{to}'
                     returning *)
                 insert into {name} select * from moved"
            ),
            format!("alter table {table} attach partition {name} for values from ('{from}') to ('{to}')"),
        ];
        self.execute_in_transaction(db, &statements).await
    }

    async fn execute_in_transaction(&self, db: impl Database<'_>, statements: &[String]) -> Result<()> {
        let mut transaction = db.transaction().await?;
        let lock_timeout = format!("set local lock_timeout = {}", LOCK_TIME_MAX.as_millis());
        for statement in [&lock_timeout].into_iter().chain(statements) {
            with_timeout(sqlx::query(AssertSqlSafe(statement.as_str())).execute(transaction.connection()?)).await?;
        }
        transaction.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_partition_encodes_its_start() {
        for hours in [1, 6, 24] {
            let partitions = Partitions { table: "events", span: TimeDelta::hours(hours) };
            let start = DateTime::UNIX_EPOCH + TimeDelta::hours(20_000 * 24 + 18 / hours * hours);
            let name = partitions.name_of(start);
            assert_eq!(partitions.start_of(&name), Some(start), "{name}");
        }
        let partitions = Partitions { table: "events", span: TimeDelta::hours(1) };
        assert_eq!(partitions.name_of(DateTime::UNIX_EPOCH), "events_p19700101_00");
        for other in ["events_default", "events", "events_p1", "keys_p19700101_00", "events_p19700101_24"] {
            assert_eq!(partitions.start_of(other), None, "{other}");
        }
    }
}
