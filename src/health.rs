//! What the process knows about itself: whether it is stopping, and whether its threads and its journal make progress.
//! The conditions of what it depends on (database, disk, peers) are in [`crate::telemetry::conditions`].

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hotline_persistence::ChangeLog;
use hotline_persistence::journal::Seq;
use parking_lot::Mutex;
use tokio::time::{Instant, interval};

/// The share of the journal, in percent, above which an operator should act; the rest gives them time before changes
/// are refused.
const JOURNAL_PERCENT_MAX: u64 = 80;

/// The interval of the heartbeat of a serving thread.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The health of the process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// When each serving thread had its last heartbeat ([`uptime_ms`]).
    threads: Mutex<Vec<Arc<AtomicI64>>>,
    stopping: AtomicBool,
    /// Requests since the stop was announced.
    late_requests: AtomicU64,
}

impl Health {
    /// Whether the journal is nearly full.
    pub fn is_journal_nearly_full(log: &ChangeLog) -> bool {
        let stats = log.journal_stats();
        stats.is_some_and(|stats| is_above(stats.live_bytes, stats.max_bytes, JOURNAL_PERCENT_MAX))
    }

    /// Starts the heartbeat of the serving thread that calls it.
    pub fn beat_here(&self) {
        let beat = Arc::new(AtomicI64::new(uptime_ms()));
        self.0.threads.lock().push(beat.clone());
        actix_rt::spawn(async move {
            let mut ticks = interval(BEAT_INTERVAL);
            loop {
                ticks.tick().await;
                beat.store(uptime_ms(), Ordering::Release);
            }
        });
    }

    /// Whether every serving thread has had a heartbeat within this time.
    fn are_threads_alive(&self, time: Duration) -> bool {
        let oldest = uptime_ms() - i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.0.threads.lock().iter().all(|beat| beat.load(Ordering::Acquire) >= oldest)
    }

    /// Announces the stop: from now on no client should begin anything here.
    pub fn announce_stop(&self) {
        self.0.stopping.store(true, Ordering::Release);
    }

    /// Whether the stop is announced.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    /// Counts a request that arrived after the stop was announced.
    pub fn count_late_request(&self) {
        self.0.late_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that arrived after the stop was announced.
    pub fn late_requests(&self) -> u64 {
        self.0.late_requests.load(Ordering::Relaxed)
    }
}

/// Milliseconds since the first call, on the monotonic clock: setting the machine's time does not change it.
fn uptime_ms() -> i64 {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    i64::try_from(STARTED.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(i64::MAX)
}

/// Checks for a watchdog whether the process still makes progress.
pub struct LivenessCheck {
    health: Health,
    log: ChangeLog,
    time_max: Duration,
    /// The newest durable entry at the last check.
    durable: Seq,
    /// When a check last found a newer durable entry, or none that waited.
    progress_at: Instant,
}

impl LivenessCheck {
    /// Creates a check that reports a part that has made no progress for `time_max`.
    pub fn new(health: Health, log: ChangeLog, time_max: Duration) -> Self {
        let durable = log.durable();
        Self { health, log, time_max, durable, progress_at: Instant::now() }
    }

    /// The part that makes no progress, if any. During a stop, parts end on purpose, so none is reported.
    pub fn stuck_part(&mut self) -> Option<&'static str> {
        let durable = self.log.durable();
        // Without a journal, entries wait for the database, which is not this process's fault.
        let is_waiting = self.log.journal_stats().is_some() && self.log.appended() > durable;
        if durable != self.durable || !is_waiting {
            self.durable = durable;
            self.progress_at = Instant::now();
        }
        if self.health.is_stopping() {
            None
        } else if !self.health.are_threads_alive(self.time_max) {
            Some("a serving thread")
        } else if self.progress_at.elapsed() > self.time_max {
            Some("the journal")
        } else {
            None
        }
    }
}

fn is_above(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 > u128::from(whole) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exact_for_large_numbers() {
        assert!(!is_above(u64::MAX / 2, u64::MAX, 80));
        assert!(is_above(81, 100, 80) && !is_above(80, 100, 80));
    }
}
