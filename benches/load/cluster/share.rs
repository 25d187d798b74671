//! A share of the processors: a control group of the kernel for one process.
//! <https://docs.kernel.org/scheduler/sched-bwc.html>

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::outcome::Outcome;

/// A process gets its share in each period; short, so that a process that has used its share does not stop for long.
const PERIOD: Duration = Duration::from_millis(10);

const GROUPS: &str = "/sys/fs/cgroup";

/// How often, and at what interval, the removal of a group is tried after its process has ended.
const REMOVE_TRIES: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// The group of one process. Dropping it removes the group, which must be after the end of the process.
pub struct Share(PathBuf);

impl Share {
    /// A group for a process that may use this much of one processor, in percent.
    pub fn create(name: &str, percent: u64) -> Outcome<Self> {
        Self::make(name, percent)
            .map_err(|error| format!("shares of processors need root and control groups: {error}").into())
    }

    fn make(name: &str, percent: u64) -> io::Result<Self> {
        let period = PERIOD.as_micros() as u64;
        let quota = period * percent / 100;
        let name = format!("hotline-load-{}-{name}", std::process::id());
        let groups = Path::new(GROUPS);
        if groups.join("cgroup.controllers").exists() {
            fs::write(groups.join("cgroup.subtree_control"), "+cpu")?;
            let share = Self(groups.join(name));
            fs::create_dir(&share.0)?;
            fs::write(share.0.join("cpu.max"), format!("{quota} {period}"))?;
            return Ok(share);
        }
        // The first version of control groups has a tree for each resource.
        let share = Self(groups.join("cpu").join(name));
        fs::create_dir(&share.0)?;
        fs::write(share.0.join("cpu.cfs_period_us"), period.to_string())?;
        fs::write(share.0.join("cpu.cfs_quota_us"), quota.to_string())?;
        Ok(share)
    }

    /// Puts a process into the group, with all its threads.
    pub fn add_process(&self, process: u32) -> Outcome<()> {
        Ok(fs::write(self.0.join("cgroup.procs"), process.to_string())?)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        for _ in 0..REMOVE_TRIES {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            // A process that has ended leaves its group a moment later.
            std::thread::sleep(REMOVE_PAUSE);
        }
        eprintln!("load: {} is left", self.0.display());
    }
}
