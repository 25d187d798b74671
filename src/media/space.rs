//! The floor of free disk space: files are refused before the journal and the database run out of space.
//!
//! Anyone may send files in any amount, but acknowledged changes must always find room in the journal. So no file is
//! received while less than the floor is free, no matter who sends it: a visitor, a company or a provider. The free
//! space is read repeatedly, and the bytes written since the last reading are subtracted: however many files arrive at
//! once, they can reach the floor, but not use up the disk.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

/// How long a reading of the free space is used; not longer, because other programs also write to the disk.
const READING_VALID_FOR: Duration = Duration::from_secs(1);

/// The monitored disks. Cheap to clone.
#[derive(Clone)]
pub(super) struct DiskSpace(Arc<Inner>);

/// Returns the free bytes on the disks of these folders.
type SpaceReader = dyn Fn(&[PathBuf]) -> io::Result<u64> + Send + Sync;

struct Inner {
    folders: Vec<PathBuf>,
    free_bytes_min: u64,
    read_free_bytes: Box<SpaceReader>,
    reading: Mutex<Reading>,
}

/// The last reading.
#[derive(Default)]
struct Reading {
    taken_at: Option<Instant>,
    /// Bytes that may still be written.
    available: u64,
    is_full: bool,
}

/// The free space would fall below the floor, or is below it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoDiskSpace;

impl std::fmt::Debug for DiskSpace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("DiskSpace").field("folders", &self.0.folders).finish_non_exhaustive()
    }
}

impl DiskSpace {
    /// Monitors the disk of each of these folders; this many bytes must stay free.
    pub(super) fn of(folders: Vec<PathBuf>, free_bytes_min: u64) -> Self {
        Self::with_reader(folders, free_bytes_min, free_bytes)
    }

    fn with_reader(
        folders: Vec<PathBuf>,
        free_bytes_min: u64,
        read_free_bytes: impl Fn(&[PathBuf]) -> io::Result<u64> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            folders,
            free_bytes_min,
            read_free_bytes: Box::new(read_free_bytes),
            reading: Mutex::default(),
        }))
    }

    /// Reserves space for bytes that will be written.
    ///
    /// # Errors
    /// When this would go below the floor.
    pub(super) async fn reserve(&self, bytes: u64) -> Result<(), NoDiskSpace> {
        if self.0.free_bytes_min == 0 || self.reserve_from_reading(bytes, READING_VALID_FOR) {
            return Ok(());
        }
        let space = self.clone();
        // Reading the free space of a network disk may block.
        let result = spawn_blocking(move || space.refresh()).await;
        match result {
            Ok(Ok(())) => {}
            // If the free space is unknown, there may be enough; otherwise the write fails.
            Ok(Err(error)) => {
                tracing::debug!(%error, "could not read free disk space");
                return Ok(());
            }
            Err(_) => return Ok(()),
        }
        if self.reserve_from_reading(bytes, Duration::MAX) { Ok(()) } else { Err(NoDiskSpace) }
    }

    /// Reserves from the last reading, if that is recent enough.
    fn reserve_from_reading(&self, bytes: u64, valid_for: Duration) -> bool {
        let mut reading = self.0.reading.lock();
        let is_valid = reading.taken_at.is_some_and(|taken_at| taken_at.elapsed() < valid_for);
        match reading.available.checked_sub(bytes).filter(|_| is_valid) {
            Some(available) => {
                reading.available = available;
                true
            }
            None => false,
        }
    }

    /// Reads the free space.
    fn refresh(&self) -> io::Result<()> {
        let free = (self.0.read_free_bytes)(&self.0.folders)?;
        let mut reading = self.0.reading.lock();
        reading.taken_at = Some(Instant::now());
        reading.available = free.saturating_sub(self.0.free_bytes_min);
        let is_full = reading.available == 0;
        if is_full != reading.is_full {
            reading.is_full = is_full;
            let (free_mib, free_min_mib) = (free >> 20, self.0.free_bytes_min >> 20);
            // For debugging only: the service's monitor logs a full disk, even without uploads.
            match is_full {
                true => tracing::debug!(free_mib, free_min_mib, "uploads are refused while the disk is nearly full"),
                false => tracing::debug!(free_mib, free_min_mib, "uploads are accepted again"),
            }
        }
        Ok(())
    }
}

/// The free bytes, for non-root users, on the fullest of the folders' disks.
fn free_bytes(folders: &[PathBuf]) -> io::Result<u64> {
    let mut minimum = u64::MAX;
    for folder in folders {
        let stats = statvfs(folder)?;
        let fragments: u64 = stats.blocks_available();
        minimum = minimum.min(fragments.saturating_mul(stats.fragment_size()));
    }
    Ok(minimum)
}

#[cfg(test)]
#[allow(clippy::expect_used)] // A test that meets the unexpected fails loudly.
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const FLOOR: u64 = 1000;

    /// A disk with this much free space, which the test can change.
    fn disk_with(free: u64) -> (Arc<AtomicU64>, DiskSpace) {
        let free = Arc::new(AtomicU64::new(free));
        let current = free.clone();
        (free, DiskSpace::with_reader(Vec::new(), FLOOR, move |_| Ok(current.load(Ordering::Relaxed))))
    }

    #[tokio::test]
    async fn nothing_is_written_below_the_floor() {
        let (free, space) = disk_with(FLOOR + 10);
        assert_eq!(space.reserve(6).await, Ok(()));
        // The reading is unchanged, so the reserved bytes are subtracted.
        free.store(FLOOR + 4, Ordering::Relaxed);
        assert_eq!(space.reserve(5).await, Err(NoDiskSpace));
        assert_eq!(space.reserve(4).await, Ok(()));
        free.store(0, Ordering::Relaxed);
        assert_eq!(space.reserve(1).await, Err(NoDiskSpace));
        free.store(FLOOR + 1, Ordering::Relaxed);
        assert_eq!(space.reserve(1).await, Ok(()), "there is space again");
    }

    #[tokio::test]
    async fn files_are_accepted_if_the_free_space_is_unknown_or_there_is_no_floor() {
        let unknown = DiskSpace::with_reader(Vec::new(), FLOOR, |_| Err(io::ErrorKind::Unsupported.into()));
        assert_eq!(unknown.reserve(1 << 40).await, Ok(()));
        let no_floor = DiskSpace::with_reader(Vec::new(), 0, |_| Ok(0));
        assert_eq!(no_floor.reserve(1 << 40).await, Ok(()));
    }

    #[tokio::test]
    async fn the_free_space_of_a_real_disk_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let free = free_bytes(&[folder.path().to_owned()]).expect("the free space");
        assert!(free > 0 && free < 1 << 60, "{free}");
        assert!(free_bytes(&[folder.path().join("none")]).is_err());
        let space = DiskSpace::of(vec![folder.path().to_owned()], 1 << 60);
        assert_eq!(space.reserve(1).await, Err(NoDiskSpace));
    }
}
