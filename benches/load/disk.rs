//! How long the disk takes to make a write durable.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use serde::Serialize;

use crate::outcome::Outcome;

/// Bytes that are written and synced each time.
const BYTES: usize = 4096;

/// Enough for a 99th percentile, and done in a second or two.
const SYNCS: usize = 2_000;

/// One append of 4 KiB and its `fdatasync`, on a file that grows, with the disk to itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SyncTimes {
    pub p50_us: u64,
    pub p99_us: u64,
}

impl SyncTimes {
    pub fn measure(folder: &Path) -> Outcome<Self> {
        let path = folder.join("sync");
        let mut file = File::create(&path)?;
        let block = [0x5a; BYTES];
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let began = Instant::now();
            file.write_all(&block)?;
            file.sync_data()?;
            times.push(began.elapsed());
        }
        std::fs::remove_file(path)?;
        times.sort_unstable();
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Ok(Self { p50_us: us(times[SYNCS / 2]), p99_us: us(times[SYNCS * 99 / 100]) })
    }
}

/// Fails if the folder is in memory, where a sync does nothing and figures would be too good.
pub fn check_durable(folder: &Path) -> Outcome<()> {
    if statfs(folder)?.filesystem_type() == TMPFS_MAGIC {
        return Err(format!("{} is in memory; set TMPDIR to a folder on a disk", folder.display()).into());
    }
    Ok(())
}
