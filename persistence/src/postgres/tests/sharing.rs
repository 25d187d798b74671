//! Several processes and one cluster.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::{Cluster, ClusterError};
use super::{Folder, eventually, scalar};

/// Names the folder to the process that a test starts of this same program.
const FOLDER_VARIABLE: &str = "HOTLINE_TEST_FOLDER";

#[tokio::test]
async fn a_second_service_is_refused_with_the_first_ones_process_id() {
    let folder = Folder::new();
    let first = Cluster::start(folder.options()).await.unwrap();
    let error = Cluster::start(folder.options()).await.unwrap_err();
    let ClusterError::InUse { pid, .. } = error else {
        unreachable!("{error}");
    };
    assert_eq!(pid, Some(std::process::id()));
    first.stop().await.unwrap();
}

#[tokio::test]
async fn a_command_is_the_guest_of_a_running_service() {
    let folder = Folder::new();
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
async fn a_command_without_a_service_runs_the_cluster_until_its_guests_left() {
    let folder = Folder::new();
    let command = Cluster::open(folder.options()).await.unwrap();
    assert!(command.is_owner());
    let guest = Cluster::open(folder.options()).await.unwrap();
    assert!(!guest.is_owner());

    {
        let stop = command.stop();
        tokio::pin!(stop);
        let early = tokio::time::timeout(Duration::from_millis(300), &mut stop).await;
        assert!(early.is_err(), "it stopped under its guest");
        assert_eq!(scalar(&guest, "select 1").await.unwrap(), 1);
        drop(guest);
        stop.await.unwrap();
    }
    assert!(!command.cluster_dir().join("postmaster.pid").exists());

    // A service waits for a command that is about to end.
    let command = Cluster::open(folder.options()).await.unwrap();
    let (service, stopped) = tokio::join!(Cluster::start(folder.options()), command.stop());
    stopped.unwrap();
    service.unwrap().stop().await.unwrap();
}

#[test]
fn two_threads_share_one_cluster() {
    let folder = Folder::new();
    let path = folder.data_dir();
    let shared = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let cluster = Cluster::shared(&path).await.unwrap();
            assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);
            cluster.stop().await.unwrap();
            cluster.pid().unwrap()
        })
    };
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(shared);
        let second = scope.spawn(shared);
        (first.join().unwrap(), second.join().unwrap())
    });
    assert_eq!(first, second);
}

#[tokio::test]
async fn processes_share_one_cluster_that_outlives_them() {
    let folder = Folder::new();
    let mut processes: Vec<Child> = (0..3).map(|_| process(&folder, "uses_a_shared_cluster")).collect();
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let cluster = Cluster::shared(folder.data_dir()).await.unwrap();
    let starts = std::fs::read_to_string(cluster.log_file()).unwrap();
    assert_eq!(starts.matches("ready to accept connections").count(), 1);
    assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);

    Cluster::stop_shared(folder.data_dir()).await.unwrap();
    assert_eq!(cluster.pid(), None);
}

/// Only does something in the process the test above starts.
#[tokio::test]
async fn uses_a_shared_cluster() {
    if let Some(path) = std::env::var_os(FOLDER_VARIABLE) {
        let cluster = Cluster::shared(path).await.unwrap();
        assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_killed_service_leaves_a_postmaster_to_take_over() {
    let folder = Folder::new();
    let mut service = process(&folder, "runs_a_service_until_killed");
    eventually("the service is up", async || folder.data_dir().join("up").exists()).await;
    let pid: u32 = std::fs::read_to_string(folder.data_dir().join("up")).unwrap().parse().unwrap();
    service.kill().unwrap();
    service.wait().unwrap();

    let next = Cluster::start(folder.options()).await.unwrap();
    assert_eq!(next.pid(), Some(pid));
    assert_eq!(scalar(&next, "select 1").await.unwrap(), 1);
    next.stop().await.unwrap();
}

/// Only does something in the process the test above starts and kills.
#[tokio::test]
async fn runs_a_service_until_killed() {
    if let Some(path) = std::env::var_os(FOLDER_VARIABLE) {
        let cluster = Cluster::start(super::options(path.into())).await.unwrap();
        let up = cluster.data_dir().join("up");
        let being_written = up.with_extension("tmp");
        std::fs::write(&being_written, cluster.pid().unwrap().to_string()).unwrap();
        std::fs::rename(being_written, up).unwrap();
        std::future::pending::<()>().await;
    }
}

/// This test program again, running one test in a process of its own.
fn process(folder: &Folder, test: &str) -> Child {
    let module = module_path!().split_once("::").unwrap().1;
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--quiet"])
        .env(FOLDER_VARIABLE, folder.data_dir())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}
