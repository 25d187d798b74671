//! The days of the log: each is a partition, made ahead and dropped as a whole.

use chrono::{Days, NaiveDate};
use sqlx::{AssertSqlSafe, PgPool};

use crate::Result;
use crate::error::with_timeout;

/// How long the making or dropping of a day waits for the table. It keeps others waiting meanwhile, and is tried again.
const LOCK_WAIT: &str = "200ms";

fn name(day: NaiveDate) -> String {
    format!("events_d{}", day.format("%Y%m%d"))
}

/// Makes the partitions of some days from one on. Those that are there stay; a day whose events have gone to the undated
/// ones already stays with them.
///
/// # Errors
/// When the database cannot answer.
pub async fn make_days(db: &PgPool, from: NaiveDate, days: u64) -> Result<()> {
    for day in (0..days).filter_map(|ahead| from.checked_add_days(Days::new(ahead))) {
        let Some(next) = day.checked_add_days(Days::new(1)) else { continue };
        let partition = name(day);
        let is_there = sqlx::query_scalar("select to_regclass($1) is not null").bind(&partition);
        if with_timeout(is_there.fetch_one(db)).await? {
            continue;
        }
        let make = format!(
            "begin; set local lock_timeout = '{LOCK_WAIT}';
             create table if not exists {partition} partition of events for values from ('{day} 00:00+00') to ('{next} 00:00+00');
             alter table {partition} alter column company_id set statistics 0; commit"
        );
        if let Err(error) = execute(db, make).await {
            tracing::info!(%error, %day, "the events of a day have no partition of their own");
        }
    }
    Ok(())
}

/// Drops the days before one, and deletes what is older of those without a day; answers how many days went.
///
/// # Errors
/// When the database cannot answer, or the log is too busy now.
pub async fn drop_old_days(db: &PgPool, before: NaiveDate) -> Result<u64> {
    let partitions: Vec<String> = with_timeout(
        sqlx::query_scalar(
            "select c.relname::text from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = 'events'::regclass and c.relname like 'events\\_d%' order by 1",
        )
        .fetch_all(db),
    )
    .await?;
    let mut dropped = 0;
    for partition in partitions.into_iter().filter(|partition| *partition < name(before)) {
        execute(db, format!("begin; set local lock_timeout = '{LOCK_WAIT}'; drop table if exists {partition}; commit"))
            .await?;
        dropped += 1;
    }
    let undated = sqlx::query("delete from events_undated where created_at < $1");
    with_timeout(undated.bind(before.and_time(chrono::NaiveTime::MIN).and_utc()).execute(db)).await?;
    Ok(dropped)
}

/// Carries out statements that are one transaction; of one that fails nothing is left open.
async fn execute(db: &PgPool, statements: String) -> Result<()> {
    let mut connection = db.acquire().await?;
    let outcome = with_timeout(sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut *connection)).await;
    if outcome.is_err() {
        with_timeout(sqlx::raw_sql("rollback").execute(&mut *connection)).await?;
    }
    outcome.map(drop)
}
