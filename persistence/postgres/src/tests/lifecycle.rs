//! Start, use, stop, start again.

use std::os::unix::fs::MetadataExt;

use super::super::binaries::{choose_binaries, parse_major_version};
use super::super::os_user::OsUser;
use super::super::{Cluster, ClusterError, ClusterOptions};
use super::{Folder, connect, execute, scalar};

#[tokio::test]
async fn a_cluster_starts_answers_and_stops() {
    let folder = Folder::new();
    let cluster = Cluster::start(folder.options()).await.unwrap();

    assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);
    assert!(cluster.is_owner());
    assert!(cluster.pid().is_some());
    assert!(cluster.cluster_dir().join("postmaster.pid").exists());

    cluster.stop().await.unwrap();
    assert_eq!(cluster.pid(), None);
    assert!(!cluster.cluster_dir().join("postmaster.pid").exists());
    assert!(connect(&cluster).await.is_err());
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_start_finds_the_rows_of_the_first() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    execute(&cluster, "create table numbers (n int); insert into numbers values (7)").await;
    cluster.stop().await.unwrap();

    // `cluster` still exists: the stop has released the lock.
    let restarted = Cluster::start(folder.options()).await.unwrap();
    assert_eq!(scalar(&restarted, "select n from numbers").await.unwrap(), 7);
    restarted.stop().await.unwrap();
}

#[tokio::test]
async fn commits_are_durable_by_default() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(ClusterOptions::new(folder.data_dir())).await.unwrap();
    let query = "select count(*)::int from pg_settings where setting = 'on' and \
                 name in ('fsync', 'full_page_writes', 'synchronous_commit')";
    assert_eq!(scalar(&cluster, query).await.unwrap(), 3);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn only_the_private_socket_accepts_connections() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    let socket_dir = cluster.socket_dir().metadata().unwrap();
    assert_eq!(socket_dir.mode() & 0o7777, 0o700);
    assert_eq!(socket_dir.uid(), cluster.cluster_dir().metadata().unwrap().uid());
    let query = "select count(*)::int from pg_settings where name = 'listen_addresses' and setting = ''";
    assert_eq!(scalar(&cluster, query).await.unwrap(), 1);
    cluster.stop().await.unwrap();
}

#[tokio::test]
#[ignore = "needs root, to start PostgreSQL as another user"]
async fn postgres_runs_as_another_user_when_started_as_root() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", cluster.pid().unwrap())).unwrap();
    let ids = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().skip(1).map(|id| id.parse().unwrap()).collect::<Vec<u32>>()
    };
    // Real, effective, saved and file system ids.
    assert!(ids("Uid:").iter().all(|id| *id != 0));
    assert!(ids("Gid:").iter().all(|id| *id != 0));
    assert_eq!(ids("Groups:"), Vec::<u32>::new(), "groups of root");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn settings_of_the_caller_take_precedence() {
    let folder = Folder::prepared().await;
    let mut options = folder.options();
    options.settings.push(("max_connections".to_owned(), "33".to_owned()));
    let cluster = Cluster::start(options).await.unwrap();
    let query = "select setting::int from pg_settings where name = 'max_connections'";
    assert_eq!(scalar(&cluster, query).await.unwrap(), 33);
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_start_reports_the_reason() {
    let folder = Folder::prepared().await;
    let mut options = folder.options();
    options.settings.push(("max_connections".to_owned(), "many".to_owned()));
    let error = Cluster::start(options).await.unwrap_err();
    assert!(matches!(error, ClusterError::ExitedEarly { .. }));
    let text = error.to_string();
    assert!(text.contains("exit status: 1") && text.contains("max_connections"), "{text}");
}

#[tokio::test]
async fn missing_binaries_are_reported_with_the_packages_to_install() {
    let user = OsUser::choose(None).unwrap();
    let error = choose_binaries(Vec::new(), None, &user).await.unwrap_err();
    let text = error.to_string();
    for hint in [
        "apt-get install postgresql",
        "dnf install postgresql-server postgresql-contrib",
        "apk add postgresql postgresql-contrib",
        "brew install postgresql@16",
        "--database-url",
    ] {
        assert!(text.contains(hint), "{hint} is missing in: {text}");
    }

    let folder = Folder::new();
    let mut options = folder.options();
    options.binaries = Some(folder.root().to_owned());
    let error = Cluster::start(options).await.unwrap_err();
    assert!(matches!(error, ClusterError::BadBinaries { .. }), "{error}");
}

#[tokio::test]
async fn a_cluster_of_another_version_is_refused() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    cluster.stop().await.unwrap();
    let version_file = cluster.cluster_dir().join("PG_VERSION");
    std::fs::write(&version_file, "9\n").unwrap();

    let error = Cluster::start(folder.options()).await.unwrap_err();
    assert!(matches!(error, ClusterError::OtherVersion { cluster_version: 9, .. }), "{error}");
}

#[test]
fn versions_are_parsed_from_the_output_of_postgres() {
    assert_eq!(parse_major_version("postgres (PostgreSQL) 15.13 (Debian 15.13-0)"), Some(15));
    assert_eq!(parse_major_version("postgres (PostgreSQL) 17beta1"), Some(17));
    assert_eq!(parse_major_version("postgres (PostgreSQL) 9.6.24"), Some(9));
    assert_eq!(parse_major_version("postgres: command not found"), None);
}
