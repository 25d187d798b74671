//! Each test runs a real PostgreSQL in its own folder.

#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod lifecycle;
mod locations;
mod recovery;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

use super::{Cluster, ClusterOptions, template};

/// Timeout after which a condition counts as never met, even on a machine that is busy with other work.
const DEADLINE: Duration = Duration::from_secs(120);

/// Poll interval for a condition.
const INTERVAL: Duration = Duration::from_millis(10);

/// A data folder that PostgreSQL's user can reach and that leaves no postmaster behind, even when a test fails.
struct Folder {
    root: TempDir,
}

impl Folder {
    fn new() -> Self {
        let root = crate::memory_folder().map_or_else(TempDir::new, TempDir::new_in).unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o711)).unwrap();
        Self { root }
    }

    /// A data folder whose cluster exists already.
    async fn prepared() -> Self {
        let folder = Self::new();
        template::copy("empty", "1", &folder.data_dir(), async |_| Ok(())).await.unwrap();
        folder
    }

    fn root(&self) -> &Path {
        self.root.path()
    }

    fn data_dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    fn options(&self) -> ClusterOptions {
        options(self.data_dir())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        kill_postmaster(&self.data_dir());
    }
}

/// Options like the service's, but without fsync.
fn options(data_dir: PathBuf) -> ClusterOptions {
    ClusterOptions { fsync: false, ..ClusterOptions::new(data_dir) }
}

/// Kills the postmaster of the cluster, and waits until it has exited.
fn kill_postmaster(data_dir: &Path) {
    let cluster = data_dir.join("postgres");
    let Ok(Some(pid)) = super::pid_file::running_pid(&cluster) else {
        return;
    };
    let _ = kill(to_pid(pid), Signal::SIGQUIT);
    let started_at = Instant::now();
    while super::pid_file::is_postmaster_of(pid, &cluster) && started_at.elapsed() < DEADLINE {
        std::thread::sleep(INTERVAL);
    }
}

async fn connect(cluster: &Cluster) -> Result<PgConnection, sqlx::Error> {
    PgConnection::connect_with(&cluster.connect_options()).await
}

async fn scalar(cluster: &Cluster, sql: &'static str) -> Result<i32, sqlx::Error> {
    let mut connection = connect(cluster).await?;
    let answer = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(answer)
}

async fn execute(cluster: &Cluster, sql: &'static str) {
    let mut connection = connect(cluster).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Waits until the condition holds; fails the test on timeout.
async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started_at = Instant::now();
    loop {
        // Read before the check, so that a slow machine still has one check after the deadline.
        let is_late = started_at.elapsed() >= DEADLINE;
        if condition().await {
            return;
        }
        assert!(!is_late, "never happened: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}

fn to_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap())
}
