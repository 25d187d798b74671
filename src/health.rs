//! What the process knows of its own condition. A health check must answer within a second in any outage, so it waits
//! for nothing: a watcher asks the database and counts descriptors, and the check reads what the watcher last saw.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hotline_persistence::journal::Seq;
use hotline_persistence::{ChangeLog, Store, clock, pool, rejected};
use nix::sys::resource::{Resource, getrlimit};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// How often the database is asked.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Time for its answer: far above what it needs, and below what balancers wait for a check.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);

/// How long the service's own work may use every connection before the database counts as unavailable: longer than any
/// of its statements may take.
const BUSY_TIME_MAX: Duration = Duration::from_secs(10);

/// How often open descriptors are counted: reading a hundred thousand takes some ten milliseconds of a thread.
const FILES_INTERVAL: Duration = Duration::from_secs(10);

/// The share of the descriptors, in percent, above which an operator should act.
const FILES_PERCENT_MAX: u64 = 90;

/// The share of the journal, in percent, above which an operator should act: with a fifth left there is time.
const JOURNAL_PERCENT_MAX: u64 = 80;

/// How often a serving thread shows that it works.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Where Linux lists the open descriptors of a process.
const OPEN_FILES: &str = "/proc/self/fd";

/// The condition of the process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Conditions>);

#[derive(Debug, Default)]
struct Conditions {
    database: Fault,
    rows: Fault,
    files: Fault,
    threads: Mutex<Vec<Arc<AtomicI64>>>,
    stopping: AtomicBool,
    /// Requests since the stop was announced.
    late_requests: AtomicU64,
}

/// A condition that an operator must end, and when it began.
#[derive(Debug, Default)]
struct Fault {
    /// Milliseconds since 1970; 0: there is no fault.
    since: AtomicI64,
}

impl Fault {
    fn set(&self, holds: bool) {
        if !holds {
            self.since.store(0, Ordering::Release);
        } else if self.since.load(Ordering::Acquire) == 0 {
            self.since.store(clock::now().timestamp_millis().max(1), Ordering::Release);
        }
    }

    fn since(&self) -> Option<DateTime<Utc>> {
        match self.since.load(Ordering::Acquire) {
            0 => None,
            since => DateTime::from_timestamp_millis(since),
        }
    }
}

impl Health {
    /// Since when the database has not answered; `None`: it answers.
    pub fn database_unavailable_since(&self) -> Option<DateTime<Utc>> {
        self.0.database.since()
    }

    /// Since when there are rows that PostgreSQL refused and nobody has dealt with.
    pub fn rows_rejected_since(&self) -> Option<DateTime<Utc>> {
        self.0.rows.since()
    }

    /// Since when nearly all descriptors are open.
    pub fn files_exhausted_since(&self) -> Option<DateTime<Utc>> {
        self.0.files.since()
    }

    /// Whether the journal is nearly full.
    pub fn is_journal_filling(log: &ChangeLog) -> bool {
        let stats = log.journal_stats();
        stats.is_some_and(|stats| is_above(stats.live_bytes, stats.max_bytes, JOURNAL_PERCENT_MAX))
    }

    /// Shows from now on that this serving thread works. To be called on it.
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

    /// Whether every serving thread has worked in this time.
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

    /// Watches for as long as the process lives.
    pub async fn watch(self, store: Arc<Store>) {
        let mut ticks = interval(PROBE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answered_at = Instant::now();
        let mut counted_at: Option<Instant> = None;
        loop {
            ticks.tick().await;
            let probe = probe(&store).await;
            if probe != Probe::Busy {
                answered_at = Instant::now();
            }
            self.record(probe, answered_at.elapsed());
            if counted_at.is_none_or(|at| at.elapsed() >= FILES_INTERVAL) {
                counted_at = Some(Instant::now());
                self.count_files().await;
            }
        }
    }

    fn record(&self, probe: Probe, busy_for: Duration) {
        match probe {
            Probe::Answered { has_rejected } => {
                self.0.database.set(false);
                self.0.rows.set(has_rejected);
            }
            Probe::Failed => self.0.database.set(true),
            // The work comes first, and waiting for a connection is no outage, unless it never ends.
            Probe::Busy if busy_for < BUSY_TIME_MAX => {}
            Probe::Busy => self.0.database.set(true),
        }
    }

    async fn count_files(&self) {
        let counted = tokio::task::spawn_blocking(|| {
            let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
            let open = std::fs::read_dir(OPEN_FILES).ok()?.count();
            Some(is_above(u64::try_from(open).ok()?, limit, FILES_PERCENT_MAX))
        });
        // Where they cannot be counted, nothing is said of them.
        if let Ok(Some(is_exhausted)) = counted.await {
            self.0.files.set(is_exhausted);
        }
    }
}

/// Milliseconds by a clock that no one sets.
fn uptime_ms() -> i64 {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    i64::try_from(STARTED.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(i64::MAX)
}

/// Whether the process still works, as a watchdog asks.
pub struct LivenessCheck {
    health: Health,
    log: ChangeLog,
    time_max: Duration,
    /// The newest durable entry, and when it was first seen.
    durable: (Seq, Instant),
}

impl LivenessCheck {
    /// A check that finds what has not worked for this time.
    pub fn new(health: Health, log: ChangeLog, time_max: Duration) -> Self {
        let durable = (log.durable(), Instant::now());
        Self { health, log, time_max, durable }
    }

    /// The part that does not work. While the service stops, parts end.
    pub fn stuck_part(&mut self) -> Option<&'static str> {
        let durable = self.log.durable();
        // Without a journal, entries wait for the database, which is no fault of this process.
        let is_waiting = self.log.journal_stats().is_some() && self.log.appended() > durable;
        if durable != self.durable.0 || !is_waiting {
            self.durable = (durable, Instant::now());
        }
        if self.health.is_stopping() {
            None
        } else if !self.health.are_threads_alive(self.time_max) {
            Some("a serving thread")
        } else if self.durable.1.elapsed() > self.time_max {
            Some("the journal")
        } else {
            None
        }
    }
}

/// What the database said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Answered {
        has_rejected: bool,
    },
    Failed,
    /// The service's own work uses every connection.
    Busy,
}

async fn probe(store: &Store) -> Probe {
    let own = &store.housekeeping;
    if own.num_idle() == 0 && own.size() >= pool::HOUSEKEEPING_MAX {
        return Probe::Busy;
    }
    match timeout(PROBE_TIME_MAX, rejected::exist(own)).await {
        Ok(Ok(has_rejected)) => Probe::Answered { has_rejected },
        Ok(Err(_)) | Err(_) => Probe::Failed,
    }
}

fn is_above(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 > u128::from(whole) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_keeps_its_beginning_until_it_ends() {
        let health = Health::default();
        assert_eq!(health.database_unavailable_since(), None);
        health.record(Probe::Failed, Duration::ZERO);
        let since = health.database_unavailable_since();
        assert!(since.is_some());
        health.record(Probe::Failed, Duration::ZERO);
        assert_eq!(health.database_unavailable_since(), since);
        health.record(Probe::Answered { has_rejected: true }, Duration::ZERO);
        assert_eq!(health.database_unavailable_since(), None);
        assert!(health.rows_rejected_since().is_some());
    }

    #[test]
    fn connections_in_use_are_an_outage_only_when_they_stay_in_use() {
        let health = Health::default();
        health.record(Probe::Busy, BUSY_TIME_MAX / 2);
        assert_eq!(health.database_unavailable_since(), None);
        health.record(Probe::Busy, BUSY_TIME_MAX);
        assert!(health.database_unavailable_since().is_some());
    }

    #[test]
    fn a_share_is_exact_for_large_numbers() {
        assert!(!is_above(u64::MAX / 2, u64::MAX, 80));
        assert!(is_above(81, 100, 80) && !is_above(80, 100, 80));
    }
}
