//! Several processes that share one cluster.

#![allow(clippy::unwrap_used)] // A failed expectation fails the test.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hotline_postgres::{Cluster, ClusterError, ClusterOptions, shared_folder, template};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

/// Timeout after which a condition counts as never met, even on a machine that is busy with other work.
const DEADLINE: Duration = Duration::from_secs(120);

/// Poll interval for a condition.
const INTERVAL: Duration = Duration::from_millis(10);

#[tokio::test]
async fn a_second_service_is_refused_with_the_process_id_of_the_first() {
    let folder = Folder::prepared().await;
    let first = Cluster::start(folder.options()).await.unwrap();
    let error = Cluster::start(folder.options()).await.unwrap_err();
    let ClusterError::InUse { pid, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(pid, Some(std::process::id()));
    first.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_uses_the_cluster_of_a_running_service() {
    let folder = Folder::prepared().await;
    let service = Cluster::start(folder.options()).await.unwrap();
    let guest = Cluster::open(folder.options()).await.unwrap();
    assert!(!guest.is_owner());
    assert_eq!(guest.pid(), service.pid());
    assert_eq!(guest.url(), service.url());
    assert_eq!(scalar(&guest, "select 1").await.unwrap(), 1);

    guest.stop().await.unwrap();
    assert_eq!(scalar(&service, "select 1").await.unwrap(), 1);
    // A service does not wait for its guests.
    service.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_that_owns_the_cluster_waits_for_its_guests() {
    let folder = Folder::prepared().await;
    let command = Cluster::open(folder.options()).await.unwrap();
    assert!(command.is_owner());
    let guest = Cluster::open(folder.options()).await.unwrap();
    assert!(!guest.is_owner());

    {
        let stop = command.stop();
        tokio::pin!(stop);
        let queries = async {
            for _ in 0..20 {
                assert_eq!(scalar(&guest, "select 1").await.unwrap(), 1);
            }
        };
        tokio::select! {
            _ = &mut stop => panic!("the cluster was stopped under its guest"),
            () = queries => {}
        }
        drop(guest);
        stop.await.unwrap();
    }
    assert!(!command.cluster_dir().join("postmaster.pid").exists());

    // A service that starts waits for a command to end.
    let command = Cluster::open(folder.options()).await.unwrap();
    let (service, stopped) = tokio::join!(Cluster::start(folder.options()), command.stop());
    stopped.unwrap();
    service.unwrap().stop().await.unwrap();
}

#[test]
fn two_threads_share_one_cluster() {
    let folder = Folder::new();
    let path = folder.data_dir();
    let use_cluster = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let cluster = Cluster::shared(&path).await.unwrap();
            assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);
            cluster.stop().await.unwrap();
            cluster.pid().unwrap()
        })
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(use_cluster);
        let second = scope.spawn(use_cluster);
        (first.join().unwrap(), second.join().unwrap())
    });
    assert_eq!(first, second);
    // The postmaster is a child of this process, which must reap it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Cluster::stop_shared(&path)).unwrap();
}

#[tokio::test]
async fn processes_share_one_cluster_that_outlives_them() {
    let folder = Folder::new();
    let mut processes: Vec<Child> = (0..3).map(|_| process(&folder, "share")).collect();
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let cluster = Cluster::shared(folder.data_dir()).await.unwrap();
    let log = std::fs::read_to_string(cluster.log_file()).unwrap();
    assert_eq!(log.matches("ready to accept connections").count(), 1, "starts");
    assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);

    Cluster::stop_shared(folder.data_dir()).await.unwrap();
    assert_eq!(cluster.pid(), None);
}

#[tokio::test]
async fn the_postmaster_of_a_killed_service_is_adopted() {
    let folder = Folder::prepared().await;
    let mut service = process(&folder, "serve");
    eventually("the service is up", async || folder.data_dir().join("up").exists()).await;
    let pid: u32 = std::fs::read_to_string(folder.data_dir().join("up")).unwrap().parse().unwrap();
    service.kill().unwrap();
    service.wait().unwrap();

    let next = Cluster::start(folder.options()).await.unwrap();
    assert_eq!(next.pid(), Some(pid));
    assert_eq!(scalar(&next, "select 1").await.unwrap(), 1);
    next.stop().await.unwrap();
}

/// Starts another process with the action `share` or `serve` (see `sharing/process.rs`) on the folder's cluster.
fn process(folder: &Folder, action: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cluster_process"))
        .arg(action)
        .arg(folder.data_dir())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A data folder that PostgreSQL's user can reach and that leaves no postmaster behind, even when a test fails.
struct Folder {
    root: TempDir,
}

impl Folder {
    fn new() -> Self {
        let root = TempDir::new_in(shared_folder().parent().unwrap()).unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o711)).unwrap();
        Self { root }
    }

    /// A folder that already contains a cluster.
    async fn prepared() -> Self {
        let folder = Self::new();
        template::copy("empty", "1", &folder.data_dir(), async |_| Ok(())).await.unwrap();
        folder
    }

    fn data_dir(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Options like the service's, but without fsync.
    fn options(&self) -> ClusterOptions {
        ClusterOptions { fsync: false, ..ClusterOptions::new(self.data_dir()) }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The first line of the file is the postmaster's process id; a stop removes the file.
        let pid_file = std::fs::read_to_string(self.data_dir().join("postgres/postmaster.pid")).unwrap_or_default();
        let Some(pid) = pid_file.lines().next().and_then(|line| line.parse().ok()).map(Pid::from_raw) else { return };
        let _ = kill(pid, Signal::SIGQUIT);
        let started_at = Instant::now();
        while kill(pid, None).is_ok() && started_at.elapsed() < DEADLINE {
            std::thread::sleep(INTERVAL);
        }
    }
}

async fn scalar(cluster: &Cluster, sql: &'static str) -> Result<i32, sqlx::Error> {
    let mut connection = PgConnection::connect_with(&cluster.connect_options()).await?;
    let answer = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(answer)
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
