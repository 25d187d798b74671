//! The persister's session in PostgreSQL, and the end of a wait for one that is no longer there.
//!
//! A flush has no time limit: a large one takes as long as it takes. But a connection that the network has forgotten never
//! answers, and the operating system notices only after a quarter of an hour. So while a flush takes long, another session
//! looks whether the server still works on it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::pool::PoolConnection;
use sqlx::{ConnectOptions, PgConnection, PgPool, Postgres};
use tokio::time::{sleep, timeout};

use crate::pool::WriterClaim;
use crate::unanswered;
use crate::{Error, Result};

/// How often a flush in progress is looked after.
const LOOK_EVERY: Duration = Duration::from_secs(4);

/// How long a look may take, from the connection on.
const LOOK_TIME_MAX: Duration = Duration::from_secs(4);

/// So many looks in a row without progress end the wait, after at most 24 s. Between two statements the server waits for a
/// process that has just been stopped, or computes.
const LOOKS_MAX: u32 = 3;

/// A connection of the persister. If its user is dropped before the end, so is the connection: the server may never answer
/// on it.
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

/// What another session sees of the persister's.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    /// The server works on a statement of it, or cannot be asked at the moment.
    Working,
    /// The server waits for a statement since then, or has no such session (`None`).
    Waiting(Option<DateTime<Utc>>),
    /// The server does not answer.
    Unreachable,
}

/// Waits for `work`, which runs on the session of this claim, until the server has stopped working on it without an answer.
///
/// # Errors
/// [`Error::Unavailable`] when the connection is lost; otherwise those of `work`.
pub(super) async fn attended<T>(db: &PgPool, claim: &WriterClaim, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        biased;
        outcome = work => outcome,
        () = lost(db, claim) => {
            unanswered::lose();
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
            // A session that is waiting for a statement again has made progress in between.
            Look::Waiting(_) if before.as_ref() != Some(&(pid, seen.since())) => 1,
            Look::Waiting(_) | Look::Unreachable => in_a_row + 1,
        };
        if in_a_row >= LOOKS_MAX {
            return;
        }
        before = Some((pid, seen.since()));
    }
}

impl Look {
    fn since(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Waiting(since) => *since,
            Self::Working | Self::Unreachable => None,
        }
    }
}

async fn look(db: &PgPool, pid: i32) -> Look {
    let options = db.connect_options().as_ref().clone().application_name("hotline");
    let looked = timeout(LOOK_TIME_MAX, async {
        let mut connection = options.connect().await?;
        let state = "select state, state_change from pg_stat_activity where pid = $1";
        sqlx::query_as::<_, (Option<String>, Option<DateTime<Utc>>)>(state)
            .bind(pid)
            .fetch_optional(&mut connection)
            .await
    });
    match looked.await {
        Ok(Ok(None)) => Look::Waiting(None),
        Ok(Ok(Some((state, since)))) => match state.as_deref() {
            Some("idle" | "idle in transaction" | "idle in transaction (aborted)") => Look::Waiting(since),
            _ => Look::Working,
        },
        // The server answers, and has for example too many connections.
        Ok(Err(sqlx::Error::Database(_))) => Look::Working,
        Ok(Err(_)) | Err(_) => Look::Unreachable,
    }
}
