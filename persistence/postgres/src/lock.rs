//! Ownership of the cluster: a file lock, which the kernel releases however its holder exits.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{ClusterError, os_user};

pub(super) const OWNER_FILE: &str = "postgres.lock";
const GUESTS_FILE: &str = "postgres.guests.lock";

/// Interval between lock attempts: short compared with a start, cheap enough to poll.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// How long to wait for a service's lock before reporting it: a service that is stopping, or a child between fork and
/// exec, holds it a little longer.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the owner keeps the lock. It is written to the file, for processes that find it locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerRole {
    /// Until the service ends: do not wait for it.
    Service,
    /// For the duration of a command or a start: it will be released soon.
    Temporary,
}

/// The exclusive right to start, restart and stop the cluster, until dropped.
#[derive(Debug)]
pub(super) struct OwnerLock {
    _file: File,
}

impl OwnerLock {
    /// Takes the lock; `None` if another process has it.
    pub(super) fn try_acquire(data_dir: &Path, role: OwnerRole) -> Result<Option<Self>, ClusterError> {
        let path = data_dir.join(OWNER_FILE);
        let mut file = open(&path)?;
        if !is_acquired(file.try_lock(), &path)? {
            return Ok(None);
        }
        let role_name = match role {
            OwnerRole::Service => "service",
            OwnerRole::Temporary => "passing",
        };
        // A crash of the machine releases the lock anyway, so no sync is needed.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{} {role_name}", std::process::id()))
            .map_err(ClusterError::io("write", &path))?;
        Ok(Some(Self { _file: file }))
    }

    /// Takes the lock; waits for a temporary owner, but only briefly for a service.
    pub(super) async fn acquire(data_dir: &Path, role: OwnerRole, timeout: Duration) -> Result<Self, ClusterError> {
        let started_at = Instant::now();
        loop {
            if let Some(lock) = Self::try_acquire(data_dir, role)? {
                return Ok(lock);
            }
            let (pid, holder_role) = holder(data_dir);
            let limit = match holder_role {
                Some(OwnerRole::Service) => SERVICE_TIMEOUT.min(timeout),
                _ => timeout,
            };
            if started_at.elapsed() > limit {
                return Err(ClusterError::InUse { data_dir: data_dir.to_owned(), pid });
            }
            sleep(RETRY_INTERVAL).await;
        }
    }
}

/// The process id and role that the holder of the owner lock wrote; `None` for what is missing or unreadable.
pub(super) fn holder(data_dir: &Path) -> (Option<u32>, Option<OwnerRole>) {
    let text = std::fs::read_to_string(data_dir.join(OWNER_FILE)).unwrap_or_default();
    let mut words = text.split_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok());
    let role = words.next().map(|word| match word {
        "service" => OwnerRole::Service,
        _ => OwnerRole::Temporary,
    });
    (pid, role)
}

/// A lock that every guest shares, so that a command that owns the cluster does not stop it while others use it. To
/// stop the cluster, the command takes the lock exclusively.
#[derive(Debug)]
pub(super) struct GuestLock {
    _file: File,
}

impl GuestLock {
    /// Enters as a guest, unless the owner is about to stop the cluster.
    pub(super) fn try_enter(data_dir: &Path) -> Result<Option<Self>, ClusterError> {
        let path = data_dir.join(GUESTS_FILE);
        let file = open(&path)?;
        Ok(is_acquired(file.try_lock_shared(), &path)?.then_some(Self { _file: file }))
    }

    /// Waits until no guest is left, and excludes new ones while this is held. `None` on timeout.
    pub(super) async fn exclude_guests(data_dir: &Path, timeout: Duration) -> Result<Option<Self>, ClusterError> {
        let path = data_dir.join(GUESTS_FILE);
        let file = open(&path)?;
        let started_at = Instant::now();
        while !is_acquired(file.try_lock(), &path)? {
            if started_at.elapsed() > timeout {
                return Ok(None);
            }
            sleep(RETRY_INTERVAL).await;
        }
        Ok(Some(Self { _file: file }))
    }
}

fn open(path: &Path) -> Result<File, ClusterError> {
    os_user::open_or_create(OpenOptions::new().read(true).write(true).mode(0o600), path)
        .map_err(ClusterError::io("open", path))
}

fn is_acquired(attempt: Result<(), TryLockError>, path: &Path) -> Result<bool, ClusterError> {
    match attempt {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(ClusterError::io("lock", path)(error)),
    }
}
