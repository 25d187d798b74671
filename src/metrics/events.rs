//! Streams of events since the start.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted of streams.
#[derive(Debug, Default)]
pub struct EventFigures {
    opened: AtomicU64,
    closed: AtomicU64,
    sent: AtomicU64,
}

impl EventFigures {
    /// A stream was opened.
    pub fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// It is closed.
    pub fn add_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Events were sent.
    pub fn add_sent(&self, events: u64) {
        self.sent.fetch_add(events, Ordering::Relaxed);
    }

    /// Streams that are open.
    pub fn open(&self) -> u64 {
        self.opened.load(Ordering::Relaxed).saturating_sub(self.closed.load(Ordering::Relaxed))
    }

    /// Events sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}
