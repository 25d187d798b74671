//! Metrics of the persister.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::histogram::Histogram;

/// Histogram bounds for the changes per transaction, up to the batch limit.
const FLUSH_CHANGES_BOUNDS: &[u64] = &[1, 3, 10, 30, 100, 300, 1_000, 3_000, super::BATCH_CHANGES_MAX as u64];

/// Histogram bounds for the duration of a transaction, in nanoseconds: 1 ms to 10 s.
const FLUSH_NS_BOUNDS: &[u64] = &[
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// What the persister has written since startup.
#[derive(Debug)]
pub struct Flushes {
    /// Changes per committed transaction.
    pub changes: Histogram,
    /// Duration per committed transaction in nanoseconds, without failed attempts.
    pub duration_ns: Histogram,
    pub(super) failed: AtomicU64,
}

impl Flushes {
    pub(super) fn new() -> Self {
        let (changes, duration_ns) = (Histogram::new(FLUSH_CHANGES_BOUNDS), Histogram::new(FLUSH_NS_BOUNDS));
        Self { changes, duration_ns, failed: AtomicU64::new(0) }
    }

    /// Failed attempts; each is retried.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}
