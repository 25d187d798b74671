//! What a process does as one of many: at its edge with requests whose companies others serve, and with slots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hotline_persistence::figures::{Histogram, Spread};

use super::requests::LATENCY_NS_BOUNDS;

/// What is counted.
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

            /// How many so far.
            pub fn $all(&self) -> u64 {
                self.$name.load(Ordering::Relaxed)
            }
        )*}
    };
}

count! {
    /// A request is handed to another process.
    forwarded, all_forwarded;
    /// One comes from another process.
    taken, all_taken;
    /// One is handed on again, since nobody knows what became of it and it may be.
    sent_again, all_sent_again;
    /// One waits for somebody to serve its company.
    waited, all_waited;
    /// One is told to come again: nobody serves its company, or the lease is over.
    refused, all_refused;
    /// The connection of one is cut, since nobody knows what became of it.
    cut, all_cut;
    /// The life of another process is ended, which was not heard of any more.
    sealed, all_sealed;
    /// Slots that were to move stay.
    called_off, all_called_off;
}

impl ClusterFigures {
    /// A request that was handed on was answered so long after.
    pub fn answered(&self, took: Duration) {
        self.forward_ns.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How long those took, in nanoseconds.
    pub fn forwards(&self) -> Spread {
        self.forward_ns.read()
    }

    /// So many slots are served here from now on.
    pub fn opened(&self, slots: usize) {
        self.opened.fetch_add(slots as u64, Ordering::Relaxed);
    }

    /// How many were opened so far.
    pub fn all_opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// So many slots are others' from now on.
    pub fn handed_over(&self, slots: usize) {
        self.handed_over.fetch_add(slots as u64, Ordering::Relaxed);
    }

    /// How many were handed over so far.
    pub fn all_handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The slots of a life that was ended are others' so long after it was suspected.
    pub fn took_over(&self, took: Duration) {
        self.takeover_ms.store(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long the last one took; zero: there was none.
    pub fn last_takeover(&self) -> Duration {
        Duration::from_millis(self.takeover_ms.load(Ordering::Relaxed))
    }
}
