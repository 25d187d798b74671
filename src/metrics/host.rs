//! Metrics of what surrounds the process: disks and backups, as last observed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

/// The last observations.
#[derive(Debug, Default)]
pub struct HostMetrics {
    free_bytes: Mutex<BTreeMap<&'static str, u64>>,
    /// Seconds since 1970; 0: none is known.
    backup_completed_at_s: AtomicI64,
}

impl HostMetrics {
    /// Sets the free bytes on the disk of a folder.
    pub fn set_free_bytes(&self, folder: &'static str, bytes: u64) {
        self.free_bytes.lock().insert(folder, bytes);
    }

    /// The free bytes by folder.
    pub fn free_bytes(&self) -> BTreeMap<&'static str, u64> {
        self.free_bytes.lock().clone()
    }

    /// Sets when the last backup was completed.
    pub fn set_backup_completed_at_s(&self, at_s: i64) {
        self.backup_completed_at_s.store(at_s, Ordering::Relaxed);
    }

    /// When the last backup was completed; `None` if none is known.
    pub fn backup_completed_at_s(&self) -> Option<i64> {
        Some(self.backup_completed_at_s.load(Ordering::Relaxed)).filter(|at_s| *at_s > 0)
    }
}
