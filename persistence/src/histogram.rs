//! Histograms for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A lock-free histogram: counts per bucket, and the sum of all values.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One counter per bound, and one for values above the last bound.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A snapshot of a histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Upper bound of each bucket except the last.
    pub bounds: &'static [u64],
    /// Number of values per bucket; there is one bucket more than there are bounds.
    pub counts: Vec<u64>,
    /// Sum of all values, in their unit.
    pub sum: u64,
}

impl Histogram {
    /// An empty histogram with ascending bounds.
    pub fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Adds a value.
    pub fn add(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// A snapshot. A concurrently added value may be in the counts but not yet in the sum.
    pub fn read(&self) -> HistogramSnapshot {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        HistogramSnapshot { bounds: self.bounds, counts, sum: self.sum.load(Ordering::Relaxed) }
    }
}

impl HistogramSnapshot {
    /// Number of values in all buckets.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_includes_its_upper_bound() {
        let histogram = Histogram::new(&[10, 20]);
        for value in [0, 10, 11, 20, 21, 1000] {
            histogram.add(value);
        }
        let snapshot = histogram.read();
        assert_eq!(snapshot.counts, [2, 2, 2]);
        assert_eq!((snapshot.count(), snapshot.sum), (6, 1062));
    }
}
