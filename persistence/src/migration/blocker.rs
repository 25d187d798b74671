//! Finds the session that a migration waits for. It uses a second connection, because the migration's own is waiting.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, FromRow, PgConnection};
use tokio::time::{sleep, timeout};

/// How often the watcher looks for a blocker: several times during each wait for a lock.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Maximum time to look for a blocker.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// A session of the database that blocks another one.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Blocker {
    /// Its process on the database server; 0: a prepared transaction.
    pub pid: i32,
    /// Its `application_name`, which may be empty.
    pub application: String,
    /// The start of its transaction, or else of the session; `None` if this user may not see it.
    pub since: Option<DateTime<Utc>>,
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.application.as_str()) {
            (0, _) => formatter.write_str("a prepared transaction"),
            (pid, "") => write!(formatter, "the database session {pid}"),
            (pid, application) => write!(formatter, "the database session {pid} ({application})"),
        }?;
        match &self.since {
            Some(since) => write!(formatter, " since {}", since.to_rfc3339_opts(SecondsFormat::Secs, true)),
            None => Ok(()),
        }
    }
}

/// Finds the session with the oldest transaction among those that block another session.
const FIND_BLOCKER: &str = "select blocking.pid, coalesce(activity.application_name, '') as application,
        coalesce(activity.xact_start, activity.backend_start) as since
    from unnest(pg_blocking_pids($1)) as blocking (pid) left join pg_stat_activity activity on activity.pid = blocking.pid
    order by since nulls last, blocking.pid limit 1";

/// Watches which session blocks the migration's session.
pub(super) struct Watcher {
    options: Arc<PgConnectOptions>,
    /// Opened when the watcher first looks for a blocker: most migrations end before that.
    connection: Option<PgConnection>,
    /// The migration's session.
    pid: i32,
    /// The last blocker that was found.
    pub(super) last_blocker: Option<Blocker>,
}

impl Watcher {
    pub(super) fn new(options: Arc<PgConnectOptions>, pid: i32) -> Self {
        Self { options, connection: None, pid, last_blocker: None }
    }

    /// Does `work`, and reports each new session that blocks it.
    pub(super) async fn watch<T>(&mut self, work: impl Future<Output = T>, mut report: impl FnMut(&Blocker)) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                output = &mut work => return output,
                () = sleep(LOOK_EVERY) => self.look_for_blocker(&mut report).await,
            }
        }
    }

    async fn look_for_blocker(&mut self, report: &mut impl FnMut(&Blocker)) {
        match timeout(LOOK_TIME_MAX, self.find_blocker()).await {
            Ok(Ok(Some(blocker))) => {
                if self.last_blocker.as_ref().is_none_or(|last| last.pid != blocker.pid) {
                    report(&blocker);
                }
                self.last_blocker = Some(blocker);
            }
            Ok(Ok(None)) => {}
            // The query failed or took too long; the migration itself continues.
            _ => self.connection = None,
        }
    }

    async fn find_blocker(&mut self) -> sqlx::Result<Option<Blocker>> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.options.connect().await?),
        };
        sqlx::query_as(FIND_BLOCKER).bind(self.pid).fetch_optional(connection).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocker_is_described_by_its_known_fields() {
        let blocker = |pid, application: &str, since| Blocker { pid, application: application.to_owned(), since };
        let since = DateTime::from_timestamp(1_800_000_000, 0);
        let full = blocker(7, "pg_dump", since).to_string();
        assert_eq!(full, "the database session 7 (pg_dump) since 2027-01-15T08:00:00Z");
        assert_eq!(blocker(7, "", None).to_string(), "the database session 7");
        assert_eq!(blocker(0, "", None).to_string(), "a prepared transaction");
    }
}
