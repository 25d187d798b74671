//! Finds connections whose other end disappeared without notice: a machine died, or a firewall dropped the connection.
//!
//! The operating system reports such a connection only after a quarter of an hour. sqlx's pools ping an idle connection
//! before its use, but wait for the reply without limit. So the ping has a timeout here. Once a connection is lost, all
//! that were last used before that moment are closed without a ping, because each ping would delay a request.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{Connection, PgConnection, Postgres};
use tokio::time::timeout;

/// Timeout of the ping of an idle connection: shorter than a request waits for a connection, so that there is time to
/// open another one.
const IDLE_REPLY_TIME_MAX: Duration = Duration::from_millis(1500);

/// Timeout of the ping when a connection returns to its pool: the session may still be ending a canceled statement.
const REPLY_TIME_MAX: Duration = Duration::from_secs(5);

/// For this long after a timeout of a statement, connections are also pinged on their return to a pool, and before a
/// reader uses them.
const SUSPICION_TIME: Duration = Duration::from_secs(60);

/// When a statement last had no reply in time. It may just have been slow.
static LAST_TIMEOUT: Mutex<Option<Instant>> = parking_lot::const_mutex(None);

/// When a connection was last found to be lost.
static LAST_LOSS: Mutex<Option<Instant>> = parking_lot::const_mutex(None);

/// For this long after a session was found to be outdated, connections are closed on their return to a pool: those in
/// use at that moment may be outdated too.
const OUTDATED_TIME: Duration = Duration::from_secs(2);

/// When a session was last found to be outdated: it had prepared its statements before a migration.
static LAST_OUTDATED: Mutex<Option<Instant>> = parking_lot::const_mutex(None);

/// Records that a migration has changed tables: all sessions may have statements prepared before it.
pub(crate) fn record_migration() {
    *LAST_OUTDATED.lock() = Some(Instant::now());
}

/// Whether a session that was last used at this time may have statements from before a migration.
fn any_outdated_since(last_used_at: Instant) -> bool {
    LAST_OUTDATED.lock().is_some_and(|at| at > last_used_at)
}

/// Records that a statement had no reply in time.
pub(crate) fn record_timeout() {
    *LAST_TIMEOUT.lock() = Some(Instant::now());
}

/// Whether connections are suspected to be lost: a statement had no reply in the last [`SUSPICION_TIME`].
pub(crate) fn is_suspected() -> bool {
    LAST_TIMEOUT.lock().is_some_and(|at| at.elapsed() < SUSPICION_TIME)
}

/// Records that a connection is lost.
pub(crate) fn record_loss() {
    record_timeout();
    *LAST_LOSS.lock() = Some(Instant::now());
}

/// Whether any connection was lost after this one was last used.
fn any_lost_since(last_used_at: Instant) -> bool {
    LAST_LOSS.lock().is_some_and(|at| at > last_used_at)
}

/// Whether an idle connection can be used.
pub(crate) async fn is_usable(connection: &mut PgConnection, last_used_at: Instant) -> bool {
    if any_lost_since(last_used_at) || any_outdated_since(last_used_at) {
        return false;
    }
    match timeout(IDLE_REPLY_TIME_MAX, connection.ping()).await {
        Ok(reply) => reply.is_ok(),
        Err(_) => {
            record_loss();
            false
        }
    }
}

/// Whether a returned connection may stay in its pool.
pub(crate) async fn may_stay(connection: &mut PgConnection) -> bool {
    if LAST_OUTDATED.lock().is_some_and(|at| at.elapsed() < OUTDATED_TIME) {
        return false;
    }
    !is_suspected() || timeout(REPLY_TIME_MAX, connection.ping()).await.is_ok_and(|reply| reply.is_ok())
}

/// Returns a connection to its pool, or closes it if the other end does not reply.
pub(crate) async fn put_back(mut connection: PoolConnection<Postgres>) {
    // On a timeout the connection is dropped, which closes it, and the pool may open another one.
    if timeout(REPLY_TIME_MAX, connection.return_to_pool()).await.is_err() {
        record_loss();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_loss_only_connections_that_were_idle_before_it_count_as_lost() {
        let before = Instant::now();
        record_loss();
        assert!(is_suspected() && any_lost_since(before));
        assert!(!any_lost_since(Instant::now() + Duration::from_secs(1)));
    }
}
