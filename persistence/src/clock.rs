//! The service's clock. Decisions by the time of day, the idle times of actors and all limits per minute or hour use
//! it, so that a test can move the time instead of waiting.
//!
//! Pauses and deadlines of single calls are not affected: timers run in real time.

use std::time::Instant;

use chrono::{DateTime, SubsecRound, Utc};

/// The current time in milliseconds, the resolution of the API: a time is the same in answers, the journal and the
/// tables.
pub fn now() -> DateTime<Utc> {
    source::now().trunc_subsecs(3)
}

/// A monotonic time for measuring minutes and hours. In tests it moves with [`now`].
pub fn instant() -> Instant {
    source::instant()
}

#[cfg(not(feature = "failpoints"))]
mod source {
    use super::{DateTime, Instant, Utc};

    pub(super) fn now() -> DateTime<Utc> {
        Utc::now()
    }

    pub(super) fn instant() -> Instant {
        Instant::now()
    }
}

#[cfg(feature = "failpoints")]
pub use self::source::{advance, stop};

/// The machine's clock, until a test moves or stops it for its own process. The clocks of the database and of other
/// processes stay as they are.
#[cfg(feature = "failpoints")]
mod source {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{DateTime, Instant, Utc};

    static AHEAD_MS: AtomicU64 = AtomicU64::new(0);
    static STOPPED_AT: OnceLock<(DateTime<Utc>, Instant)> = OnceLock::new();

    pub(super) fn now() -> DateTime<Utc> {
        STOPPED_AT.get().map_or_else(Utc::now, |(now, _)| *now) + ahead()
    }

    pub(super) fn instant() -> Instant {
        STOPPED_AT.get().map_or_else(Instant::now, |(_, instant)| *instant) + ahead()
    }

    fn ahead() -> Duration {
        Duration::from_millis(AHEAD_MS.load(Ordering::Relaxed))
    }

    /// Moves the clock of this process ahead, by whole milliseconds.
    pub fn advance(time: Duration) {
        AHEAD_MS.fetch_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Stops the clock of this process: from here on only [`advance`] moves it.
    pub fn stop() {
        STOPPED_AT.get_or_init(|| (Utc::now(), Instant::now()));
    }
}
