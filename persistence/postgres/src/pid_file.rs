//! `postmaster.pid`: which postmaster, if any, is running on a cluster.

use std::io::ErrorKind;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::ClusterError;

const FILE: &str = "postmaster.pid";

/// Line of the file, counted from 0, on which PostgreSQL writes the postmaster's status.
const STATUS_LINE: usize = 7;

/// The status of a postmaster that accepts connections.
const READY: &str = "ready";

/// Process id of the postmaster running on the cluster; `None` if none is.
///
/// A file that names an unrelated process is removed: PostgreSQL would mistake that process for a postmaster and refuse
/// to start. A file whose process has exited stays, because PostgreSQL needs it: the file names the shared memory that
/// backends of a killed postmaster may still use.
pub(super) fn running_pid(cluster: &Path) -> Result<Option<u32>, ClusterError> {
    let path = cluster.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ClusterError::io("read", &path)(error)),
    };
    // Negative for PostgreSQL in single-user mode.
    let pid = text.lines().next().and_then(|line| line.trim().parse().ok()).map(i32::unsigned_abs);
    if let Some(pid) = pid {
        if is_postmaster_of(pid, cluster) {
            return Ok(Some(pid));
        }
        if !process_exists(pid) {
            return Ok(None);
        }
    }
    tracing::warn!(
        cluster = %cluster.display(),
        pid,
        "removing a stale postmaster.pid"
    );
    std::fs::remove_file(&path).map_err(ClusterError::io("remove", &path))?;
    Ok(None)
}

/// Whether a postmaster runs on the cluster and says that it accepts connections. Changes nothing.
pub(super) fn is_ready(cluster: &Path) -> bool {
    let text = std::fs::read_to_string(cluster.join(FILE)).unwrap_or_default();
    let pid = text.lines().next().and_then(|line| line.trim().parse().ok());
    let status = text.lines().nth(STATUS_LINE).map(str::trim);
    status == Some(READY) && pid.is_some_and(|pid| is_postmaster_of(pid, cluster))
}

/// Whether the process exists, even as a zombie or with another owner.
fn process_exists(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else {
        return false;
    };
    kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}

/// Whether the process is a live postmaster of the cluster. A PostgreSQL process whose working directory may not be
/// inspected counts as one.
#[cfg(target_os = "linux")]
pub(super) fn is_postmaster_of(pid: u32, cluster: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let process = Path::new("/proc").join(pid.to_string());
    // `<pid> (<program>) <state> …`, where the program's name may itself hold parentheses.
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let Some((program, state)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") ")) else {
        return false;
    };
    if state.starts_with(['Z', 'X']) || !matches!(program, "postgres" | "postmaster") {
        return false;
    }
    // A postmaster's working directory is its cluster, even if that has been moved since.
    match (process.join("cwd").metadata(), cluster.metadata()) {
        (Ok(cwd), Ok(cluster)) => (cwd.dev(), cwd.ino()) == (cluster.dev(), cluster.ino()),
        // In a container, root may lack the right to inspect another user's process.
        (Err(error), _) => error.kind() == ErrorKind::PermissionDenied,
        (Ok(_), Err(_)) => false,
    }
}

/// Whether the process is a live postmaster of the cluster.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_postmaster_of(pid: u32, cluster: &Path) -> bool {
    let Ok(output) =
        std::process::Command::new("ps").args(["-ww", "-o", "stat=,command=", "-p"]).arg(pid.to_string()).output()
    else {
        return process_exists(pid);
    };
    let line = String::from_utf8_lossy(&output.stdout);
    let line = line.trim();
    !line.is_empty()
        && !line.starts_with('Z')
        && line.contains("postgres")
        && line.contains(&*cluster.to_string_lossy())
}
