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
    /// A connection was accepted.
    pub fn count(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }

    /// A connection was closed at once, because its address has too many.
    pub fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets how many may be open; further ones are not accepted.
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

    /// How many may be open; 0 before anything is accepted.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed) as u64
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
