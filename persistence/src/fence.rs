//! Fences a cluster process that has lost its life: writing transactions begin by locking the row of the life, and all
//! others are read-only in PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};
use tokio::sync::Notify;

use crate::cluster::{LifeId, lives};
use crate::error::is_fenced;

/// The statement with which a cluster process begins writing transactions; without it PostgreSQL allows only reads.
/// Also notifies the process when its life is over.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) begin: SqlStr,
    end: Arc<Notify>,
    /// Whether the process itself is ending this life.
    is_end_expected: Arc<AtomicBool>,
}

impl Fence {
    pub(crate) fn new(life: LifeId) -> Self {
        Self {
            begin: AssertSqlSafe(lives::begin_fenced(life)).into_sql_str(),
            end: Arc::default(),
            is_end_expected: Arc::default(),
        }
    }

    /// Marks that the process is ending this life: later refusals are expected.
    pub(crate) fn expect_end(&self) {
        self.is_end_expected.store(true, Ordering::Release);
    }

    /// Waits until a transaction was refused because another process ended this life.
    pub(crate) async fn wait_for_end(&self) {
        self.end.notified().await;
    }

    /// Checks a result for a refusal by the fence.
    pub(crate) fn check<T>(&self, result: sqlx::Result<T>) -> sqlx::Result<T> {
        if result.as_ref().is_err_and(is_fenced) && !self.is_end_expected.load(Ordering::Acquire) {
            self.end.notify_one();
        }
        result
    }
}

/// Whether a statement may write, judged by its keywords. PostgreSQL refuses a write that was misjudged as a read, so a
/// mistake here means a failed request, never an unfenced write.
pub(crate) fn may_write(sql: &str) -> bool {
    const KEYWORDS: [&str; 7] = ["insert", "update", "delete", "merge", "nextval", "setval", "share"];
    sql.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
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
