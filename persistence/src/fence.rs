//! What keeps a process of a cluster from writing once its life is over: the transactions that write begin with the lock on
//! its row, and all others are read-only to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};
use tokio::sync::Notify;

use crate::cluster::{LifeId, lives};
use crate::error::is_fenced;

/// What the transactions of one of many processes begin with: PostgreSQL lets those that do not only read. Tells who
/// stops the process when it is over.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    pub(crate) begin: SqlStr,
    is_over: Arc<Notify>,
    /// Whether the process itself ends this life.
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

    /// The process is about to end this life: what is refused from here on is no failure.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    /// Waits until a transaction was refused because another process has ended this life.
    pub(crate) async fn is_over(&self) {
        self.is_over.notified().await;
    }

    /// Notes a refusal.
    pub(crate) fn heard<T>(&self, outcome: sqlx::Result<T>) -> sqlx::Result<T> {
        if outcome.as_ref().is_err_and(is_fenced) && !self.is_left.load(Ordering::Acquire) {
            self.is_over.notify_one();
        }
        outcome
    }
}

/// Whether a statement may change something, by its words. One that does and is not taken for one is refused by the
/// server, so a mistake here is a failed request and never an unfenced write.
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
