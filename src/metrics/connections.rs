//! Metrics of HTTP connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The counters.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    open: AtomicU64,
    refused: AtomicU64,
    limit: AtomicUsize,
}

/// A connection, counted until this is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<ConnectionMetrics>);

impl ConnectionMetrics {
    /// Counts an accepted connection until the returned value is dropped.
    pub fn count_open(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }

    /// A connection was closed at once, because its address has too many.
    pub fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the maximum number of open connections; further ones are not accepted.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Open connections.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The maximum number of open connections; 0 before it is set.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed) as u64
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
