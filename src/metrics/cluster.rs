//! Metrics of a cluster member: requests that its edge (`crate::cluster`) forwards or receives, and slots.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hotline_persistence::histogram::{Histogram, HistogramSnapshot};
use parking_lot::Mutex;

use super::requests::LATENCY_NS_BOUNDS;

/// What a process counts and measures as a member of its cluster.
#[derive(Debug)]
pub struct ClusterMetrics {
    forwarded: AtomicU64,
    received: AtomicU64,
    retried: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    aborted: AtomicU64,
    fenced_lives: AtomicU64,
    canceled_moves: AtomicU64,
    opened_slots: AtomicU64,
    handed_over_slots: AtomicU64,
    forward_ns: Histogram,
    takeover_ms: AtomicU64,
    reachability: Mutex<BTreeMap<String, bool>>,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        Self {
            forwarded: 0.into(),
            received: 0.into(),
            retried: 0.into(),
            waited: 0.into(),
            refused: 0.into(),
            aborted: 0.into(),
            fenced_lives: 0.into(),
            canceled_moves: 0.into(),
            opened_slots: 0.into(),
            handed_over_slots: 0.into(),
            forward_ns: Histogram::new(LATENCY_NS_BOUNDS),
            takeover_ms: 0.into(),
            reachability: Mutex::default(),
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $add:ident, $total:ident;)*) => {
        impl ClusterMetrics {$(
            $(#[$doc])*
            pub fn $add(&self) {
                self.$total.fetch_add(1, Ordering::Relaxed);
            }

            /// The total so far.
            pub fn $total(&self) -> u64 {
                self.$total.load(Ordering::Relaxed)
            }
        )*}
    };
}

counters! {
    /// A request was forwarded to another process.
    add_forwarded, forwarded;
    /// A request was received from another process.
    add_received, received;
    /// The outcome of a forwarded request was unknown, but the request may be repeated, so it was sent again.
    add_retried, retried;
    /// A request waited for a process that serves its company.
    add_waited, waited;
    /// A request was refused with a retry time: no process serves its company, or this process's lease has expired.
    add_refused, refused;
    /// The connection of a request was closed, because its outcome is unknown.
    add_aborted, aborted;
    /// An unresponsive process was fenced: this process has ended its life.
    add_fenced_life, fenced_lives;
    /// A move of slots was canceled.
    add_canceled_move, canceled_moves;
}

impl ClusterMetrics {
    /// A forwarded request was answered after this time.
    pub fn add_response(&self, latency: Duration) {
        self.forward_ns.add(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The response times of forwarded requests, in nanoseconds.
    pub fn response_times(&self) -> HistogramSnapshot {
        self.forward_ns.read()
    }

    /// This many slots were opened here.
    pub fn add_opened_slots(&self, slots: usize) {
        self.opened_slots.fetch_add(slots as u64, Ordering::Relaxed);
    }

    /// The total of opened slots.
    pub fn opened_slots(&self) -> u64 {
        self.opened_slots.load(Ordering::Relaxed)
    }

    /// This many slots were handed over.
    pub fn add_handed_over_slots(&self, slots: usize) {
        self.handed_over_slots.fetch_add(slots as u64, Ordering::Relaxed);
    }

    /// The total of slots handed over.
    pub fn handed_over_slots(&self) -> u64 {
        self.handed_over_slots.load(Ordering::Relaxed)
    }

    /// The slots of a fenced process were reassigned this long after it was suspected to be dead.
    pub fn set_takeover(&self, duration: Duration) {
        self.takeover_ms.store(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Sets whether each of the other processes is reachable, by the name of its node.
    pub fn set_reachability(&self, reachability: BTreeMap<String, bool>) {
        *self.reachability.lock() = reachability;
    }

    /// Whether each of the other processes is reachable, by the name of its node.
    pub fn reachability(&self) -> BTreeMap<String, bool> {
        self.reachability.lock().clone()
    }

    /// The duration of the last takeover; zero if there was none.
    pub fn last_takeover(&self) -> Duration {
        Duration::from_millis(self.takeover_ms.load(Ordering::Relaxed))
    }
}
