//! One postmaster process: starting it, detecting its exit, stopping it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::binaries::Binaries;
use super::home::Home;
use super::{ClusterError, ClusterOptions, memory, os_user, pid_file, socket};

/// A fast shutdown writes a final checkpoint; with 4 GB of WAL on a slow disk that takes tens of seconds.
const FAST_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// After an immediate shutdown PostgreSQL itself kills processes that do not exit within 5 s.
const IMMEDIATE_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Poll interval for a postmaster that is not our child; nothing signals its exit.
const ADOPTED_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// If the log exceeds this size, it is rotated; one older log is retained.
const LOG_MAX_BYTES: u64 = 16 << 20;

/// PostgreSQL is configured for a quarter of the usable memory; the rest is for Hotline and the system.
const USABLE_DIVISOR: u64 = 4;

/// Used when the system does not report its memory: 256 MiB of shared buffers.
const UNKNOWN_MEMORY_BYTES: u64 = 1 << 30;

/// Default size of the WAL. Batches are written continuously; fewer checkpoints mean fewer full pages in the WAL.
const DEFAULT_WAL_BYTES: u64 = 4 << 30;

/// Minimum `max_wal_size`, in MiB. Half of it is the lowest `min_wal_size` that PostgreSQL accepts, two segments.
const WAL_MIB_MIN: u64 = 64;

/// PostgreSQL's default `min_wal_size`, in MiB.
const DEFAULT_MIN_WAL_MIB: u64 = 80;

/// Bytes at the end of the log that are read for an error message.
const LOG_TAIL_BYTES: u64 = 4 << 10;

/// Lines of the log that are quoted in an error message.
const LOG_TAIL_LINES: usize = 10;

/// A postmaster, started by this process or adopted.
#[derive(Debug)]
pub(super) struct Postmaster {
    pub(super) pid: u32,
    /// `None` if another process started it.
    child: Option<Child>,
    /// Position in the log file at which this run's lines start, in bytes.
    log_start: u64,
}

impl Postmaster {
    /// The postmaster already running on the cluster, if any.
    pub(super) fn find(home: &Home) -> Result<Option<Self>, ClusterError> {
        Ok(pid_file::running_pid(&home.cluster)?.map(|pid| Self { pid, child: None, log_start: 0 }))
    }

    /// Starts a postmaster; it accepts connections some time later. Requires the owner lock, and that none is running.
    pub(super) fn spawn(home: &Home, binaries: &Binaries, options: &ClusterOptions) -> Result<Self, ClusterError> {
        socket::prepare(&home.socket_dir, &home.user)?;
        let (log, log_start) = open_log(&home.log_file)?;
        let error_log = log.try_clone().map_err(ClusterError::io("open", &home.log_file))?;
        let program = binaries.postgres();
        let mut command = home.user.command(&program);
        command.arg("-D").arg(&home.cluster);
        for (name, value) in settings(home, options) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = command
            .stdout(log)
            .stderr(error_log)
            // Ctrl-C in a terminal goes to the whole process group; PostgreSQL must outlive Hotline's last flush.
            .process_group(0)
            .spawn()
            .map_err(ClusterError::io("run", &program))?;
        Ok(Self {
            // A child has an id until it has been waited for.
            pid: child.id().unwrap_or_default(),
            child: Some(child),
            log_start,
        })
    }

    pub(super) fn is_adopted(&self) -> bool {
        self.child.is_none()
    }

    /// Waits until the postmaster has exited; returns its status if it was our child. Cancel-safe.
    pub(super) async fn wait_for_exit(&mut self, home: &Home) -> Option<ExitStatus> {
        if let Some(child) = &mut self.child {
            return child.wait().await.ok();
        }
        while pid_file::is_postmaster_of(self.pid, &home.cluster) {
            sleep(ADOPTED_POLL_INTERVAL).await;
        }
        None
    }

    /// Requests a fast shutdown, then an immediate one if that takes too long.
    pub(super) async fn shut_down(&mut self, home: &Home) -> Result<(), ClusterError> {
        let steps = [(Signal::SIGINT, FAST_SHUTDOWN_TIMEOUT), (Signal::SIGQUIT, IMMEDIATE_SHUTDOWN_TIMEOUT)];
        for (signal, limit) in steps {
            self.signal(signal, home)?;
            if timeout(limit, self.wait_for_exit(home)).await.is_ok() {
                return Ok(());
            }
            tracing::warn!(
                pid = self.pid,
                %signal,
                duration_ms = limit.as_millis(),
                "PostgreSQL did not stop in time"
            );
        }
        Err(ClusterError::StillRunning { pid: self.pid, log_file: home.log_file.clone() })
    }

    /// Its last log lines, joined into one line.
    pub(super) fn log_tail(&self, home: &Home) -> String {
        let tail = read_tail(&home.log_file, self.log_start).unwrap_or_default();
        let mut lines: Vec<&str> = tail.lines().rev().take(LOG_TAIL_LINES).collect();
        lines.reverse();
        lines.join("; ")
    }

    fn signal(&mut self, signal: Signal, home: &Home) -> Result<(), ClusterError> {
        // Do not signal a child that was waited for, or an adopted process that exited: the id may belong to another
        // process by now.
        let is_running = match &self.child {
            Some(child) => child.id().is_some(),
            None => pid_file::is_postmaster_of(self.pid, &home.cluster),
        };
        let Some(pid) = i32::try_from(self.pid).ok().filter(|pid| is_running && *pid > 0) else {
            return Ok(());
        };
        match kill(Pid::from_raw(pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(errno) => Err(ClusterError::io("signal the postmaster of", &home.cluster)(errno.into())),
        }
    }
}

/// Settings for the command line, where they override the cluster's own files.
fn settings(home: &Home, options: &ClusterOptions) -> Vec<(String, String)> {
    let on_or_off = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let defaults = [
        // The unix socket is the only way to connect.
        ("listen_addresses", String::new()),
        ("port", socket::PORT.to_string()),
        ("unix_socket_directories", home.socket_dir.to_string_lossy().into_owned()),
        ("unix_socket_permissions", "0700".to_owned()),
        ("max_connections", options.max_connections.to_string()),
        ("wal_compression", "on".to_owned()),
        // JIT pays off for long analytical statements; ours are short.
        ("jit", "off".to_owned()),
        // The journal releases segments once a commit is confirmed.
        ("synchronous_commit", "on".to_owned()),
        ("fsync", on_or_off(options.fsync)),
        ("full_page_writes", on_or_off(options.fsync)),
        // Statements and details contain customers' messages, which must not be logged.
        ("log_min_error_statement", "panic".to_owned()),
        ("log_error_verbosity", "terse".to_owned()),
        ("logging_collector", "off".to_owned()),
        ("log_destination", "stderr".to_owned()),
    ];
    let size_limits = memory_settings(options).into_iter().chain(wal_settings(options));
    defaults
        .into_iter()
        .chain(size_limits)
        .map(|(name, value)| (name.to_owned(), value))
        .chain(options.settings.iter().cloned())
        .collect()
}

/// The settings that depend on PostgreSQL's memory. A quarter of it is for shared buffers, so that the indexes for new
/// messages stay cached; more than 1 GiB is of no use.
fn memory_settings(options: &ClusterOptions) -> [(&'static str, String); 2] {
    let memory = options.memory_bytes.or_else(|| memory::usable_bytes().map(|bytes| bytes / USABLE_DIVISOR));
    let memory_mib = memory.unwrap_or(UNKNOWN_MEMORY_BYTES) >> 20;
    let shared_buffers = (memory_mib / 4).clamp(16, 1024);
    // PostgreSQL's default is 64 MiB; each autovacuum worker may use that much.
    let maintenance = (memory_mib / 16).clamp(8, 64);
    [("shared_buffers", format!("{shared_buffers}MB")), ("maintenance_work_mem", format!("{maintenance}MB"))]
}

/// The limits of the WAL.
fn wal_settings(options: &ClusterOptions) -> [(&'static str, String); 2] {
    let max_mib = (options.wal_bytes.unwrap_or(DEFAULT_WAL_BYTES) >> 20).max(WAL_MIB_MIN);
    let min_mib = (max_mib / 2).clamp(WAL_MIB_MIN / 2, DEFAULT_MIN_WAL_MIB);
    [("max_wal_size", format!("{max_mib}MB")), ("min_wal_size", format!("{min_mib}MB"))]
}

/// Opens the log, after rotating it if it is too large. Returns the file and its size in bytes.
fn open_log(path: &Path) -> Result<(File, u64), ClusterError> {
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    let log_start = if size > LOG_MAX_BYTES {
        let rotated = path.with_extension("log.1");
        std::fs::rename(path, &rotated).map_err(ClusterError::io("rename", path))?;
        0
    } else {
        size
    };
    let file = os_user::open_or_create(OpenOptions::new().append(true).mode(0o600), path)
        .map_err(ClusterError::io("open", path))?;
    Ok((file, log_start))
}

/// Rotates the log of a running server, if it is too large: copies the file, then truncates it. The server appends, so
/// it continues at the beginning; lines that it writes between the copy and the truncation are lost.
pub(super) fn rotate_live_log(path: &Path) -> std::io::Result<()> {
    rotate_live_log_above(path, LOG_MAX_BYTES)
}

fn rotate_live_log_above(path: &Path, max_bytes: u64) -> std::io::Result<()> {
    let file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    if file.metadata()?.len() <= max_bytes {
        return Ok(());
    }
    std::fs::copy(path, path.with_extension("log.1"))?;
    file.set_len(0)
}

fn read_tail(path: &Path, from: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    // A log that is shorter was rotated in the meantime.
    let from = if from > size { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(size.saturating_sub(LOG_TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use std::io::Write;

    use super::*;

    fn value<'a>(settings: &'a [(&'static str, String)], name: &str) -> &'a str {
        &settings.iter().find(|(key, _)| *key == name).unwrap().1
    }

    #[test]
    fn memory_and_wal_follow_the_options() {
        let settings_of = |memory_bytes, wal_bytes| {
            let options = ClusterOptions { memory_bytes, wal_bytes, ..ClusterOptions::new("data") };
            memory_settings(&options).into_iter().chain(wal_settings(&options)).collect::<Vec<_>>()
        };
        for (memory_mib, shared_buffers, maintenance) in
            [(1, "16MB", "8MB"), (128, "32MB", "8MB"), (512, "128MB", "32MB"), (1 << 20, "1024MB", "64MB")]
        {
            let settings = settings_of(Some(memory_mib << 20), None);
            assert_eq!(value(&settings, "shared_buffers"), shared_buffers, "{memory_mib} MiB");
            assert_eq!(value(&settings, "maintenance_work_mem"), maintenance, "{memory_mib} MiB");
        }
        let settings = settings_of(None, None);
        assert_eq!((value(&settings, "max_wal_size"), value(&settings, "min_wal_size")), ("4096MB", "80MB"));
        let settings = settings_of(None, Some(96 << 20));
        assert_eq!((value(&settings, "max_wal_size"), value(&settings, "min_wal_size")), ("96MB", "48MB"));
        let settings = settings_of(None, Some(1));
        assert_eq!((value(&settings, "max_wal_size"), value(&settings, "min_wal_size")), ("64MB", "32MB"));
    }

    #[test]
    fn the_log_of_a_running_server_is_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgres.log");
        rotate_live_log(&path).unwrap();
        let (mut log, start) = open_log(&path).unwrap();
        assert_eq!(start, 0);
        log.write_all(&[b'a'; 100]).unwrap();
        rotate_live_log_above(&path, 100).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 100, "at the limit it is not rotated");
        log.write_all(b"b").unwrap();
        rotate_live_log_above(&path, 100).unwrap();
        log.write_all(b"after\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"after\n");
        assert_eq!(std::fs::read(folder.path().join("postgres.log.1")).unwrap().len(), 101);
        // The log was 101 bytes long before the rotation, and is shorter now.
        assert_eq!(read_tail(&path, 101).unwrap(), "after\n");
    }

    #[test]
    fn a_log_that_cannot_be_copied_is_not_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgres.log");
        std::fs::write(&path, "before\n").unwrap();
        // Not even root can write a folder as a file.
        std::fs::create_dir(folder.path().join("postgres.log.1")).unwrap();
        rotate_live_log_above(&path, 1).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"before\n");
    }
}
