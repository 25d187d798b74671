//! The private PostgreSQL cluster that Hotline runs when no database URL is given.
//!
//! One command must be enough to run Hotline, so this crate finds the PostgreSQL binaries, creates a cluster in
//! `<data-dir>/postgres` once, starts it on a unix socket only, restarts it if it exits, and stops it with the process.
//! The service, the command line, tests and benches all use it.
//!
//! One lock, `<data-dir>/postgres.lock`, decides who controls the cluster: its holder is the *owner*, the only process
//! that may start, restart or stop it. All other processes are *guests* and only connect.
//!
//! This crate must never start a second postmaster on a cluster that has one, never remove a `postmaster.pid` whose
//! process may be a running postmaster of the cluster, and never delete a cluster.

#![warn(missing_docs)]

mod binaries;
mod cluster;
mod error;
mod home;
mod initdb;
mod launch;
mod lock;
mod memory;
mod os_user;
mod pid_file;
mod postmaster;
mod programs;
mod socket;
mod supervisor;
pub mod template;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use cluster::Cluster;
pub use error::ClusterError;
pub use programs::{Program, find_program};

/// Environment variable with the folder of `postgres` and `initdb`.
pub const BINARIES_VARIABLE: &str = "HOTLINE_PG_BIN";

/// Oldest major version of PostgreSQL that Hotline supports.
const OLDEST_SUPPORTED: u32 = 15;

/// The superuser of the cluster. Hotline connects as this role.
const USER: &str = "hotline";

/// The database of Hotline's tables.
const DATABASE: &str = "hotline";

/// Default maximum number of connections: Hotline's pools, and some for `psql`.
const DEFAULT_MAX_CONNECTIONS: u16 = 100;

/// Maximum number of connections of a cluster that many test processes share, each with its own pools.
const SHARED_MAX_CONNECTIONS: u16 = 400;

/// Where a cluster is stored and how it is run.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Hotline's data folder; the cluster is in its `postgres` subfolder.
    pub data_dir: PathBuf,
    /// Folder of `postgres` and `initdb` (`--pg-bin`). `None`: `HOTLINE_PG_BIN`, `PATH` and the usual folders are
    /// searched.
    pub binaries: Option<PathBuf>,
    /// Whether commits survive a crash of the machine. False only for tests, because the journal deletes its segments
    /// once a commit is confirmed.
    pub fsync: bool,
    /// Maximum number of connections.
    pub max_connections: u16,
    /// Memory for which the server is configured, in bytes; `None`: a quarter of what this process may use.
    pub memory_bytes: Option<u64>,
    /// Size of the WAL at which a checkpoint is forced, in bytes; `None`: 4 GiB.
    pub wal_bytes: Option<u64>,
    /// Further server settings; they override those chosen here.
    pub settings: Vec<(String, String)>,
}

impl ClusterOptions {
    /// The options of the service.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            binaries: None,
            fsync: true,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            memory_bytes: None,
            wal_bytes: None,
            settings: Vec::new(),
        }
    }

    /// Whether the data folder contains a cluster, running or not.
    pub fn exists(&self) -> bool {
        self.data_dir.join(home::CLUSTER_NAME).symlink_metadata().is_ok()
    }

    /// The options of tests and benches that do not test durability: no fsync, and connections for many processes.
    pub fn for_tests(data_dir: impl Into<PathBuf>) -> Self {
        // A copied database goes into the WAL as a whole, and compressing that takes longer than copying it.
        let settings = [("wal_compression", "off"), ("max_wal_size", "1GB")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { fsync: false, max_connections: SHARED_MAX_CONNECTIONS, settings, ..Self::new(data_dir) }
    }
}

/// The folder of the cluster that all tests of a user share: in memory if that is large enough. Each test creates
/// a database of about five hundred files, which takes half a second on disk and a twentieth of that in memory.
pub fn shared_folder() -> PathBuf {
    memory_folder().unwrap_or_else(std::env::temp_dir).join(format!("hotline-test-{}", nix::unistd::getuid()))
}

/// Linux's in-memory folder, if it is large enough: the WAL and the tests' databases take up to 1 GiB each, and data
/// folders of tests are there too. The check uses the total size, not the free space, so that all processes get the
/// same answer.
#[cfg(target_os = "linux")]
fn memory_folder() -> Option<PathBuf> {
    use nix::sys::statfs::{TMPFS_MAGIC, statfs};
    const FOLDER: &str = "/dev/shm";
    const BYTES_MIN: u64 = 8 << 30;
    let statistics = statfs(FOLDER).ok().filter(|statistics| statistics.filesystem_type() == TMPFS_MAGIC)?;
    let bytes = statistics.blocks().saturating_mul(u64::try_from(statistics.block_size()).ok()?);
    (bytes >= BYTES_MIN).then(|| PathBuf::from(FOLDER))
}

#[cfg(not(target_os = "linux"))]
fn memory_folder() -> Option<PathBuf> {
    None
}
