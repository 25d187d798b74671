//! The persister's session in PostgreSQL, and how a wait on a lost session ends.
//!
//! A flush has no time limit: a large one takes as long as it takes. But a connection that the network has dropped
//! never answers, and the operating system notices only after a quarter of an hour. So while a flush takes long,
//! another session checks whether the server still works on it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::pool::PoolConnection;
use sqlx::{ConnectOptions, PgConnection, PgPool, Postgres};
use tokio::time::{sleep, timeout};

use crate::pool::WriterClaim;
use crate::unanswered;
use crate::{Error, Result};

/// How often a flush in progress is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// How long a look may take, with its connection.
const LOOK_TIME_MAX: Duration = Duration::from_secs(4);

/// This many looks in a row without progress end the wait, after at most 24 s. One is not enough: between two
/// statements the server also waits while this process computes, or was stopped for a moment.
const LOOKS_MAX: u32 = 3;

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
enum Look {
    /// The server works on a statement of it, or cannot be asked at the moment.
    Working,
    /// The server waits for this process, or has no such session (`None`).
    Waiting(Option<Progress>),
    /// The server does not answer.
    Unreachable,
}

/// How far the session was; equal in two looks when nothing arrived in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// When the last statement began or ended.
    changed_at: Option<DateTime<Utc>>,
    /// What the `COPY` in progress has received: over a slow link it waits for its data most of the time.
    copied_bytes: Option<i64>,
}

/// Waits for `work`, which runs on the session of this claim, until the server has stopped working on it without an
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
        () = lost(db, claim) => {
            unanswered::record_loss();
            Err(Error::Unavailable("PostgreSQL no longer answers on the connection that writes".to_owned()))
        }
    }
}

/// Returns when the session of the claim is lost.
async fn lost(db: &PgPool, claim: &WriterClaim) {
    let (mut before, mut in_a_row) = (None, 0);
    loop {
        sleep(LOOK_EVERY).await;
        let Some(pid) = claim.session() else { continue };
        let seen = look(db, pid).await;
        in_a_row = match &seen {
            Look::Working => 0,
            // The session has made progress since the last look, so this look is the first of a new count.
            Look::Waiting(_) if before != Some((pid, seen.progress())) => 1,
            Look::Waiting(_) | Look::Unreachable => in_a_row + 1,
        };
        if in_a_row >= LOOKS_MAX {
            return;
        }
        before = Some((pid, seen.progress()));
    }
}

impl Look {
    fn progress(&self) -> Option<Progress> {
        match self {
            Self::Waiting(progress) => *progress,
            Self::Working | Self::Unreachable => None,
        }
    }
}

async fn look(db: &PgPool, pid: i32) -> Look {
    let options = db.connect_options().as_ref().clone().application_name("hotline");
    let looked = timeout(LOOK_TIME_MAX, async {
        let mut connection = options.connect().await?;
        // A statement of which only a part has arrived, and a `COPY` between two parts of its data, are active and
        // wait.
        let state =
            "select state like 'idle%' or coalesce(wait_event_type, '') = 'Client', state_change, bytes_processed
             from pg_stat_activity left join pg_stat_progress_copy using (pid) where pid = $1";
        sqlx::query_as::<_, (Option<bool>, Option<DateTime<Utc>>, Option<i64>)>(state)
            .bind(pid)
            .fetch_optional(&mut connection)
            .await
    });
    match looked.await {
        Ok(Ok(None)) => Look::Waiting(None),
        Ok(Ok(Some((Some(true), changed_at, copied_bytes)))) => {
            Look::Waiting(Some(Progress { changed_at, copied_bytes }))
        }
        Ok(Ok(Some(_))) => Look::Working,
        // The server answers, and has for example too many connections.
        Ok(Err(sqlx::Error::Database(_))) => Look::Working,
        Ok(Err(_)) | Err(_) => Look::Unreachable,
    }
}
