//! The disks of the journal and of message files, and the file descriptors of this process.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Monitor;
use crate::metrics::process;
use crate::telemetry::conditions::Condition;

/// Timeout of a reading: a network disk that does not respond must not stop the other observations.
const READ_TIME_MAX: Duration = Duration::from_secs(2);

/// Percentages of open descriptors: from the first on, they count as nearly used up; below the second, no longer.
const DESCRIPTORS_HIGH: u64 = 95;
const DESCRIPTORS_LOW: u64 = 85;

/// A folder whose disk is observed.
#[derive(Clone, Debug)]
pub(super) struct ObservedDisk {
    /// The label in metrics.
    name: &'static str,
    folder: PathBuf,
    free_bytes_min: u64,
}

impl ObservedDisk {
    /// The disk of a folder.
    pub(super) fn of(name: &'static str, folder: PathBuf, free_bytes_min: u64) -> Self {
        Self { name, folder, free_bytes_min }
    }

    /// The free bytes for users without privileges; `None` if they cannot be read now.
    async fn free_bytes(&self) -> Option<u64> {
        let folder = self.folder.clone();
        let reading = spawn_blocking(move || statvfs(&folder).ok());
        let stats = timeout(READ_TIME_MAX, reading).await.ok()?.ok()??;
        let fragments: u64 = stats.blocks_available();
        Some(fragments.saturating_mul(stats.fragment_size()))
    }
}

/// Whether there is too little space. `None` slightly above the minimum, where the condition neither begins nor ends,
/// so that it does not change repeatedly.
fn is_nearly_full(free: u64, minimum: u64) -> Option<bool> {
    if free < minimum {
        return Some(true);
    }
    (free >= minimum + minimum / 8).then_some(false)
}

impl Monitor {
    pub(super) async fn observe_disks(&self) {
        for disk in &self.disks {
            let Some(free) = disk.free_bytes().await else { continue };
            self.app.metrics.host.set_free_bytes(disk.name, free);
            let subject = disk.folder.display().to_string();
            match is_nearly_full(free, disk.free_bytes_min) {
                Some(true) => {
                    let (free_mib, minimum_mib) = (free >> 20, disk.free_bytes_min >> 20);
                    let reason = format!("{free_mib} MiB are free, less than --min-free-space ({minimum_mib} MiB)");
                    self.conditions().begin(Condition::Disk, &subject, &reason);
                }
                Some(false) => self.conditions().end(Condition::Disk, &subject),
                None => {}
            }
        }
    }

    pub(super) fn observe_descriptors(&self) {
        let (Some(open), Some(limit)) = (process::open_files(), process::open_files_limit()) else { return };
        let percentage = open.saturating_mul(100) / limit.max(1);
        if percentage >= DESCRIPTORS_HIGH {
            self.conditions().begin(Condition::Files, "", &format!("{open} of {limit} are open"));
        } else if percentage < DESCRIPTORS_LOW {
            self.conditions().end(Condition::Files, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_near_its_minimum_does_not_change_its_state() {
        assert_eq!([799, 800, 899, 900].map(|free| is_nearly_full(free, 800)), [Some(true), None, None, Some(false)]);
        assert_eq!(is_nearly_full(0, 0), Some(false), "without a minimum no disk is full");
    }

    #[tokio::test]
    async fn the_free_space_of_a_folder_is_read_unless_the_folder_is_missing() {
        let free = |folder: &str| {
            let disk = ObservedDisk::of("test", PathBuf::from(folder), 1);
            async move { disk.free_bytes().await }
        };
        assert!(free("/").await.is_some());
        assert_eq!(free("/missing/folder").await, None);
    }
}
