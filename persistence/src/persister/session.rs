//! The persister's session in PostgreSQL, and the checks that end a flush whose session is lost.
//!
//! A flush has no time limit, since a large one takes a long time. But a connection that the network has dropped never
//! answers, and the operating system notices only after a quarter of an hour. So during a long flush, another session
//! checks whether the server is still working on it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::pool::PoolConnection;
use sqlx::{ConnectOptions, PgConnection, PgPool, Postgres};
use tokio::time::{sleep, timeout};

use crate::pool::WriterClaim;
use crate::unanswered;
use crate::{Error, Result};

/// How often the session of a flush in progress is checked.
const CHECK_EVERY: Duration = Duration::from_secs(4);

/// How long a check may take, including its connection.
const CHECK_TIME_MAX: Duration = Duration::from_secs(4);

/// This many checks in a row without progress end the wait, after at most 24 s. One is not enough: between two
/// statements the server also waits while this process computes or is suspended for a moment.
const STALLED_CHECKS_MAX: u32 = 3;

/// A connection of the persister. Dropped without [`WriterSession::put_back`], it closes the connection: the server may
/// never answer on it.
pub(super) struct WriterSession(Option<PoolConnection<Postgres>>);

impl WriterSession {
    pub(super) async fn of(db: &PgPool) -> Result<Self> {
        Ok(Self(Some(db.acquire().await?)))
    }

    pub(super) fn connection(&mut self) -> Result<&mut PgConnection> {
        Ok(self.0.as_deref_mut().ok_or(sqlx::Error::PoolClosed)?)
    }

    /// Returns it to the pool.
    pub(super) async fn put_back(mut self) {
        if let Some(connection) = self.0.take() {
            unanswered::put_back(connection).await;
        }
    }
}

impl Drop for WriterSession {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(connection.detach());
        }
    }
}

/// What another session sees of the persister's session.
#[derive(Debug, PartialEq, Eq)]
enum SessionState {
    /// The server is working on a statement of the session, or answers but refuses the check.
    Working,
    /// The server waits for this process, or has no such session (`None`).
    Waiting(Option<Progress>),
    /// The server does not answer.
    Unreachable,
}

/// How far the session has progressed; equal in two checks if nothing arrived in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// When the last statement began or ended.
    changed_at: Option<DateTime<Utc>>,
    /// What the `COPY` in progress has received: over a slow link, a `COPY` waits for data most of the time.
    copied_bytes: Option<i64>,
}

/// Runs `work` on the session of this claim, and gives up once the server has stopped working on it without an
/// answer.
///
/// # Errors
/// [`Error::Unavailable`] when the connection is lost; otherwise those of `work`.
pub(super) async fn unless_session_lost<T>(
    db: &PgPool,
    claim: &WriterClaim,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        outcome = work => outcome,
        () = wait_until_lost(db, claim) => {
            unanswered::record_loss();
            Err(Error::Unavailable("PostgreSQL no longer answers on the connection that writes".to_owned()))
        }
    }
}

/// Returns when the session of the claim is lost.
async fn wait_until_lost(db: &PgPool, claim: &WriterClaim) {
    let (mut previous, mut stalled_checks) = (None, 0);
    loop {
        sleep(CHECK_EVERY).await;
        let Some(pid) = claim.session_pid() else { continue };
        let state = check_session(db, pid).await;
        stalled_checks = match &state {
            SessionState::Working => 0,
            // The session is new, or something has changed since the last check: a new count starts with this one.
            SessionState::Waiting(_) if previous != Some((pid, state.progress())) => 1,
            SessionState::Waiting(_) | SessionState::Unreachable => stalled_checks + 1,
        };
        if stalled_checks >= STALLED_CHECKS_MAX {
            return;
        }
        previous = Some((pid, state.progress()));
    }
}

impl SessionState {
    fn progress(&self) -> Option<Progress> {
        match self {
            Self::Waiting(progress) => *progress,
            Self::Working | Self::Unreachable => None,
        }
    }
}

async fn check_session(db: &PgPool, pid: i32) -> SessionState {
    let options = db.connect_options().as_ref().clone().application_name("hotline");
    let result = timeout(CHECK_TIME_MAX, async {
        let mut connection = options.connect().await?;
        // The state is also `active` while the server waits for the rest of a statement, or for more data of a `COPY`;
        // then only the wait event shows that it waits for the client.
        let select =
            "select state like 'idle%' or coalesce(wait_event_type, '') = 'Client', state_change, bytes_processed
             from pg_stat_activity left join pg_stat_progress_copy using (pid) where pid = $1";
        sqlx::query_as::<_, (Option<bool>, Option<DateTime<Utc>>, Option<i64>)>(select)
            .bind(pid)
            .fetch_optional(&mut connection)
            .await
    });
    match result.await {
        Ok(Ok(None)) => SessionState::Waiting(None),
        Ok(Ok(Some((Some(true), changed_at, copied_bytes)))) => {
            SessionState::Waiting(Some(Progress { changed_at, copied_bytes }))
        }
        Ok(Ok(Some(_))) => SessionState::Working,
        // The server answers, but refuses the check, for example because it has too many connections.
        Ok(Err(sqlx::Error::Database(_))) => SessionState::Working,
        Ok(Err(_)) | Err(_) => SessionState::Unreachable,
    }
}
