//! Waits at startup for a database that is unreachable or accepts no changes yet. If the process exited instead, its
//! service manager would restart it, and soon give up.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tokio::time::{Instant, sleep};

use crate::error::Reach;
use crate::requirements::{Purpose, prepare};
use crate::{Error, Result};

/// Pause between two attempts: short enough to start soon after the database, and long enough to spare its log.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until the database can be reached and accepts changes, for at most `time_max` plus the attempt that is then in
/// progress.
///
/// # Errors
/// [`Error::Unreachable`] when it still cannot be reached, or at once for a reason that waiting does not change;
/// [`Error::Unsuitable`] when it still accepts no changes.
pub async fn wait_for_database(database: &PgConnectOptions, time_max: Duration) -> Result<()> {
    let started_at = Instant::now();
    let mut is_waiting = false;
    loop {
        let error = match prepare(database, Purpose::Start).await.map(drop) {
            Err(error @ Error::Unreachable { reach: Reach::Away, .. }) => error,
            Err(Error::Unsuitable(unsuitable)) if unsuitable.is_temporary() => Error::Unsuitable(unsuitable),
            // The database can be reached. When the service opens it, everything that is wrong with it is reported.
            Err(Error::Unsuitable(_)) => return Ok(()),
            result => {
                if is_waiting && result.is_ok() {
                    tracing::info!(waited_s = started_at.elapsed().as_secs(), "the database can be reached; starting");
                }
                return result;
            }
        };
        let remaining = time_max.saturating_sub(started_at.elapsed());
        if remaining.is_zero() {
            return Err(error);
        }
        if !is_waiting {
            is_waiting = true;
            tracing::warn!(%error, wait_max_s = time_max.as_secs(), "waiting for the database");
        }
        sleep(PAUSE.min(remaining)).await;
    }
}
