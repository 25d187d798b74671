//! Connections whose other end may have disappeared without notice: a machine that died, a firewall that dropped them.
//!
//! The operating system reports such a connection only after a quarter of an hour. Pools test an idle connection before
//! its use, but wait for the reply without limit. So the test has a time limit here. Once a connection is lost, all
//! that were last used before that moment are closed without a test, because each test would delay a request.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{Connection, PgConnection, Postgres};
use tokio::time::timeout;

/// How long an idle session may take to reply to a ping: less than a request waits for a connection, so that there is
/// time for another one.
const IDLE_REPLY_TIME_MAX: Duration = Duration::from_millis(1500);

/// How long a session may take to end what its last user left unfinished.
const REPLY_TIME_MAX: Duration = Duration::from_secs(5);

/// How long after a statement without a reply connections are also tested on their return to a pool, and before a
/// reader uses them.
const SUSPICION_TIME: Duration = Duration::from_secs(60);

/// When a statement was last given up without a reply. It may just have been slow.
static SUSPECTED: Mutex<Option<Instant>> = parking_lot::const_mutex(None);

/// When a connection was last found to be lost.
static LOST: Mutex<Option<Instant>> = parking_lot::const_mutex(None);

/// How long, after a session was found to be outdated, connections are closed on their return: those that were in use
/// at that moment may be outdated too.
const OUTDATED_TIME: Duration = Duration::from_secs(2);

/// When a session was last found to have prepared its statements before a migration.
static OUTDATED: Mutex<Option<Instant>> = parking_lot::const_mutex(None);

/// Records that a migration has changed tables: all sessions may have statements that were prepared before.
pub(crate) fn record_migration() {
    *OUTDATED.lock() = Some(Instant::now());
}

/// Whether a session that was last used at this time may have statements from before a migration.
fn is_outdated_since(used_at: Instant) -> bool {
    OUTDATED.lock().is_some_and(|at| at > used_at)
}

/// Records that a statement had no reply in time.
pub(crate) fn record_timeout() {
    *SUSPECTED.lock() = Some(Instant::now());
}

/// Whether a statement had no reply a short while ago.
pub(crate) fn is_suspected() -> bool {
    SUSPECTED.lock().is_some_and(|at| at.elapsed() < SUSPICION_TIME)
}

/// Records that a connection is lost.
pub(crate) fn record_loss() {
    record_timeout();
    *LOST.lock() = Some(Instant::now());
}

/// Whether any connection was lost after this one was last used.
fn is_lost_since(used_at: Instant) -> bool {
    LOST.lock().is_some_and(|at| at > used_at)
}

/// Whether an idle connection can be used. `used_at`: when it was last used.
pub(crate) async fn is_usable(connection: &mut PgConnection, used_at: Instant) -> bool {
    if is_lost_since(used_at) || is_outdated_since(used_at) {
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
    if OUTDATED.lock().is_some_and(|at| at.elapsed() < OUTDATED_TIME) {
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
        assert!(is_suspected() && is_lost_since(before));
        assert!(!is_lost_since(Instant::now() + Duration::from_secs(1)));
    }
}
