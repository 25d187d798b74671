//! Metrics of visitors' sockets.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters.
#[derive(Debug, Default)]
pub struct SocketMetrics {
    opened: AtomicU64,
    closed: AtomicU64,
    pushed: AtomicU64,
    cut: AtomicU64,
}

impl SocketMetrics {
    /// A socket was opened.
    pub fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// A socket was closed.
    pub fn add_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// A message was pushed.
    pub fn add_pushed(&self) {
        self.pushed.fetch_add(1, Ordering::Relaxed);
    }

    /// A slow socket was closed.
    pub fn add_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of open sockets.
    pub fn open(&self) -> u64 {
        self.opened.load(Ordering::Relaxed).saturating_sub(self.closed.load(Ordering::Relaxed))
    }

    /// The number of pushed messages.
    pub fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }

    /// The number of slow sockets that were closed.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}
