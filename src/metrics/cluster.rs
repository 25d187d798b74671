//! Metrics of a cluster member: requests that its edge forwards or receives, and slots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hotline_persistence::figures::{Histogram, Spread};

use super::requests::LATENCY_NS_BOUNDS;

/// The counters.
#[derive(Debug)]
pub struct ClusterFigures {
    forwarded: AtomicU64,
    taken: AtomicU64,
    sent_again: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
    sealed: AtomicU64,
    called_off: AtomicU64,
    opened: AtomicU64,
    handed_over: AtomicU64,
    forward_ns: Histogram,
    takeover_ms: AtomicU64,
}

impl Default for ClusterFigures {
    fn default() -> Self {
        Self {
            forwarded: 0.into(),
            taken: 0.into(),
            sent_again: 0.into(),
            waited: 0.into(),
            refused: 0.into(),
            cut: 0.into(),
            sealed: 0.into(),
            called_off: 0.into(),
            opened: 0.into(),
            handed_over: 0.into(),
            forward_ns: Histogram::new(LATENCY_NS_BOUNDS),
            takeover_ms: 0.into(),
        }
    }
}

macro_rules! count {
    ($($(#[$doc:meta])* $name:ident, $all:ident;)*) => {
        impl ClusterFigures {$(
            $(#[$doc])*
            pub fn $name(&self) {
                self.$name.fetch_add(1, Ordering::Relaxed);
            }

            /// The total so far.
            pub fn $all(&self) -> u64 {
                self.$name.load(Ordering::Relaxed)
            }
        )*}
    };
}

count! {
    /// A request was forwarded to another process.
    forwarded, all_forwarded;
    /// A request was received from another process.
    taken, all_taken;
    /// A request with unknown outcome was forwarded again, because it may be repeated.
    sent_again, all_sent_again;
    /// A request waited for an owner of its company.
    waited, all_waited;
    /// A request was told to retry later: its company has no owner, or the lease has expired.
    refused, all_refused;
    /// The connection of a request was closed, because its outcome is unknown.
    cut, all_cut;
    /// The life of an unresponsive process was ended.
    sealed, all_sealed;
    /// A move of slots was cancelled.
    called_off, all_called_off;
}

impl ClusterFigures {
    /// A forwarded request was answered after this time.
    pub fn answered(&self, took: Duration) {
        self.forward_ns.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The response times of forwarded requests, in nanoseconds.
    pub fn forwards(&self) -> Spread {
        self.forward_ns.read()
    }

    /// This many slots were opened here.
    pub fn opened(&self, slots: usize) {
        self.opened.fetch_add(slots as u64, Ordering::Relaxed);
    }

    /// The total of opened slots.
    pub fn all_opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// This many slots were handed over.
    pub fn handed_over(&self, slots: usize) {
        self.handed_over.fetch_add(slots as u64, Ordering::Relaxed);
    }

    /// The total of slots handed over.
    pub fn all_handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The slots of an ended life were reassigned, this long after it was suspected.
    pub fn took_over(&self, took: Duration) {
        self.takeover_ms.store(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The duration of the last takeover; zero if there was none.
    pub fn last_takeover(&self) -> Duration {
        Duration::from_millis(self.takeover_ms.load(Ordering::Relaxed))
    }
}
