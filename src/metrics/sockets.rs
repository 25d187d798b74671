//! Visitors' sockets since the start.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted of sockets.
#[derive(Debug, Default)]
pub struct SocketFigures {
    opened: AtomicU64,
    closed: AtomicU64,
    pushed: AtomicU64,
    cut: AtomicU64,
}

impl SocketFigures {
    /// A socket was opened.
    pub fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// It is closed.
    pub fn add_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    /// A message was pushed.
    pub fn add_pushed(&self) {
        self.pushed.fetch_add(1, Ordering::Relaxed);
    }

    /// A socket did not keep up.
    pub fn add_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Sockets that are open.
    pub fn open(&self) -> u64 {
        self.opened.load(Ordering::Relaxed).saturating_sub(self.closed.load(Ordering::Relaxed))
    }

    /// Messages pushed.
    pub fn pushed(&self) -> u64 {
        self.pushed.load(Ordering::Relaxed)
    }

    /// Sockets that did not keep up.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }
}
