//! The fence: keeps a cluster process from writing once another process has ended its life. Writing transactions begin
//! by locking the row of the life, which fails without that row; all others are read-only in PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};
use tokio::sync::Notify;

use crate::cluster::{LifeId, lives};
use crate::error::is_fenced;

/// The statement with which a cluster process begins writing transactions; without it PostgreSQL allows only reads.
/// Also notifies the process when another one has ended its life.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) begin_statement: SqlStr,
    /// Notified when another process has ended this life.
    ended_by_other: Arc<Notify>,
    /// Whether the process itself is ending this life.
    is_end_expected: Arc<AtomicBool>,
}

impl Fence {
    pub(crate) fn new(life: LifeId) -> Self {
        Self {
            begin_statement: AssertSqlSafe(lives::begin_fenced(life)).into_sql_str(),
            ended_by_other: Arc::default(),
            is_end_expected: Arc::default(),
        }
    }

    /// Marks that the process is ending this life: later refusals are expected.
    pub(crate) fn expect_end(&self) {
        self.is_end_expected.store(true, Ordering::Release);
    }

    /// Waits until a transaction was refused because another process ended this life.
    pub(crate) async fn wait_for_end(&self) {
        self.ended_by_other.notified().await;
    }

    /// Notifies the process if the fence refused the statement because another process ended this life. Returns the
    /// result.
    pub(crate) fn notify_if_refused<T>(&self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        if result.as_ref().is_err_and(is_fenced) && !self.is_end_expected.load(Ordering::Acquire) {
            self.ended_by_other.notify_one();
        }
        result
    }
}

/// Whether a statement may write, judged by its keywords. PostgreSQL refuses a write that was misjudged as a read, so a
/// mistake here means a failed request, never an unfenced write.
pub(crate) fn may_write(sql: &str) -> bool {
    const KEYWORDS: [&str; 7] = ["insert", "update", "delete", "merge", "nextval", "setval", "share"];
    sql.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .any(|word| KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_statements_are_recognized_by_their_keywords() {
        for sql in [
            "insert into tags (company_id) values ($1)",
            "with gone as (DELETE from tags) select 1",
            "select id from tags for update",
            "select id from tags for share",
            "update\ntags set name = $1",
        ] {
            assert!(may_write(sql), "{sql}");
        }
        for sql in ["select updated_at, deleted from tags", "with recent as (select 1) select * from recent"] {
            assert!(!may_write(sql), "{sql}");
        }
    }
}
