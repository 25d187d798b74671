//! Metrics of event streams.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of event streams.
#[derive(Debug, Default)]
pub struct EventMetrics {
    opened: AtomicU64,
    closed: AtomicU64,
    sent: AtomicU64,
}

impl EventMetrics {
    /// A stream was opened.
    pub fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A stream was closed.
    pub fn add_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// This many events were sent.
    pub fn add_sent(&self, events: u64) {
        self.sent.fetch_add(events, Ordering::Relaxed);
    }

    /// The number of open streams.
    pub fn open(&self) -> u64 {
        self.opened.load(Ordering::Relaxed).saturating_sub(self.closed.load(Ordering::Relaxed))
    }

    /// The number of events sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}
