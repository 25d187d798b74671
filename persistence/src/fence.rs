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
    is_over: Arc<Notify>,
    /// Whether the process itself is ending this life.
    is_left: Arc<AtomicBool>,
}

impl Fence {
    pub(crate) fn new(life: LifeId) -> Self {
        Self {
            begin: AssertSqlSafe(lives::begin_fenced(life)).into_sql_str(),
            is_over: Arc::default(),
            is_left: Arc::default(),
        }
    }

    /// Marks that the process is ending this life: later refusals are expected.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    /// Waits until a transaction was refused because another process ended this life.
    pub(crate) async fn is_over(&self) {
        self.is_over.notified().await;
    }

    /// Checks an outcome for a refusal by the fence.
    pub(crate) fn heard<T>(&self, outcome: sqlx::Result<T>) -> sqlx::Result<T> {
        if outcome.as_ref().is_err_and(is_fenced) && !self.is_left.load(Ordering::Acquire) {
            self.is_over.notify_one();
        }
        outcome
    }
}

/// Whether a statement may write, judged by its keywords. PostgreSQL refuses a write that was misjudged as a read, so a
/// mistake here means a failed request, never an unfenced write.
pub(crate) fn may_write(sql: &str) -> bool {
    const WORDS: [&str; 7] = ["insert", "update", "delete", "merge", "nextval", "setval", "share"];
    sql.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .any(|word| WORDS.iter().any(|writes| word.eq_ignore_ascii_case(writes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_write_is_told_by_its_words() {
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
