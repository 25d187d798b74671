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
use super::{ClusterError, ClusterOptions, pid_file, socket};

/// A fast shutdown writes a final checkpoint; with 4 GB of WAL on a slow disk that takes tens of seconds.
const FAST_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// After an immediate shutdown PostgreSQL itself kills processes that do not exit within 5 s.
const IMMEDIATE_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Poll interval for a postmaster that is not our child; nothing signals its exit.
const ADOPTED_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// If the log exceeds this size, it is rotated at the next start; one older log is retained.
const LOG_MAX_BYTES: u64 = 16 << 20;

/// Bytes of the log that are searched for an error message.
const LOG_TAIL_BYTES: u64 = 4 << 10;

/// Lines of the log that are quoted in an error message.
const LOG_TAIL_LINES: usize = 10;

/// A postmaster, started by this process or adopted.
#[derive(Debug)]
pub(super) struct Postmaster {
    pub(super) pid: u32,
    /// `None` if another process started it.
    child: Option<Child>,
    /// Where this run's part of the log starts.
    log_start: u64,
}

impl Postmaster {
    /// The postmaster already running on the cluster, if any.
    pub(super) fn find(home: &Home) -> Result<Option<Self>, ClusterError> {
        Ok(pid_file::running(&home.cluster)?.map(|pid| Self { pid, child: None, log_start: 0 }))
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
            // It has an id until it was waited for.
            pid: child.id().unwrap_or_default(),
            child: Some(child),
            log_start,
        })
    }

    pub(super) fn is_adopted(&self) -> bool {
        self.child.is_none()
    }

    /// Waits until it has exited; returns its status if it was our child. Cancel-safe.
    pub(super) async fn wait_for_exit(&mut self, home: &Home) -> Option<ExitStatus> {
        if let Some(child) = &mut self.child {
            return child.wait().await.ok();
        }
        while pid_file::is_postmaster_of(self.pid, &home.cluster) {
            sleep(ADOPTED_POLL_INTERVAL).await;
        }
        None
    }

    /// Shuts it down: fast, or immediate if that takes too long.
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
        ("shared_buffers", format!("{}MB", shared_buffers_mib())),
        // Batches are written continuously; fewer checkpoints mean fewer full pages in the WAL.
        ("max_wal_size", "4GB".to_owned()),
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
    defaults.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(options.settings.iter().cloned()).collect()
}

/// A sixteenth of the machine's memory, so that the indexes for new messages stay cached: between 128 MiB, PostgreSQL's
/// own default, and 1 GiB; 256 MiB if the memory size is unknown.
fn shared_buffers_mib() -> u64 {
    const DEFAULT: u64 = 256;
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let total_kib: Option<u64> = total_kib.and_then(|kib| kib.trim().parse().ok());
    total_kib.map_or(DEFAULT, |kib| (kib / 1024 / 16).clamp(128, 1024))
}

/// The log, rotated if it is too large, and its size.
fn open_log(path: &Path) -> Result<(File, u64), ClusterError> {
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    let start = if size > LOG_MAX_BYTES {
        let rotated = path.with_extension("log.1");
        std::fs::rename(path, &rotated).map_err(ClusterError::io("rename", path))?;
        0
    } else {
        size
    };
    let file =
        OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(ClusterError::io("open", path))?;
    Ok((file, start))
}

fn read_tail(path: &Path, from: u64) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(from.max(size.saturating_sub(LOG_TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
