//! Data folders that are elsewhere, inaccessible or occupied.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use super::super::os_user::OsUser;
use super::super::{Cluster, ClusterError, socket};
use super::{Folder, kill_postmaster, options, scalar};

#[tokio::test]
async fn the_socket_of_a_long_path_is_in_tmp() {
    let folder = Folder::new();
    let data_dir = folder.root().join("long ".repeat(30));
    let cluster = Cluster::start(options(data_dir.clone())).await.unwrap();
    assert!(!cluster.socket_dir().starts_with(folder.root()));
    assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);

    let guest = Cluster::open(options(data_dir)).await.unwrap();
    assert_eq!(scalar(&guest, "select 1").await.unwrap(), 1);
    cluster.stop().await.unwrap();
    std::fs::remove_dir_all(cluster.socket_dir()).unwrap();
}

#[test]
fn the_socket_of_a_path_with_special_characters_is_in_tmp() {
    assert_eq!(socket::directory(Path::new("/srv/hotline/postgres")), Path::new("/srv/hotline/postgres/socket"));
    for unusual in ["/srv/a,b", "/srv/a b", "/srv/\"a\""] {
        assert!(socket::directory(Path::new(unusual)).starts_with("/tmp"));
    }
}

#[tokio::test]
async fn the_url_connects_to_the_same_database() {
    let folder = Folder::new();
    let cluster = Cluster::start(options(folder.root().join("ä & b"))).await.unwrap();
    let options_of_url: PgConnectOptions = cluster.url().parse().unwrap();
    assert_eq!(options_of_url.get_username(), "hotline");
    assert_eq!(options_of_url.get_database(), Some("hotline"));
    assert_eq!(options_of_url.get_socket().map(PathBuf::as_path), Some(cluster.socket_dir()));
    options_of_url.connect().await.unwrap();
    cluster.stop().await.unwrap();
    std::fs::remove_dir_all(cluster.socket_dir()).unwrap();

    let url = socket::url(Path::new("/ä &"));
    assert_eq!(url, "postgres:///hotline?host=/%C3%A4%20%26&port=5432&user=hotline");
}

#[test]
fn a_linked_socket_folder_is_refused_and_permissions_are_restricted() {
    let folder = Folder::new();
    let user = OsUser::choose(None).unwrap();
    let path = folder.root().join("socket");

    symlink(folder.root(), &path).unwrap();
    let error = socket::prepare(&path, &user).unwrap_err();
    assert!(matches!(error, ClusterError::SocketDirectory { .. }), "{error}");
    std::fs::remove_file(&path).unwrap();

    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    socket::prepare(&path, &user).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o700);
}

#[test]
#[ignore = "needs root, to give a folder to another user"]
fn a_socket_folder_of_another_user_is_refused_as_root() {
    let folder = Folder::new();
    let user = OsUser::choose(None).unwrap();
    let path = folder.root().join("socket");
    std::fs::create_dir(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    let error = socket::prepare(&path, &user).unwrap_err();
    assert!(matches!(error, ClusterError::SocketDirectory { .. }), "{error}");
}

#[tokio::test]
async fn other_files_in_the_cluster_folder_are_preserved() {
    let folder = Folder::new();
    let other_folder = folder.data_dir().join("postgres/letters");
    std::fs::create_dir_all(&other_folder).unwrap();
    let error = Cluster::start(folder.options()).await.unwrap_err();
    assert!(matches!(error, ClusterError::NotACluster { .. }), "{error}");
    assert!(other_folder.exists());
}

#[tokio::test]
#[ignore = "needs root, to own the files of a cluster"]
async fn a_restored_cluster_gets_its_owner_back_as_root() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    cluster.stop().await.unwrap();
    let owner = cluster.cluster_dir().metadata().unwrap().uid();
    let status = std::process::Command::new("chown").args(["-R", "0:0"]).arg(cluster.cluster_dir()).status().unwrap();
    assert!(status.success());

    let restarted = Cluster::start(folder.options()).await.unwrap();
    assert_eq!(scalar(&restarted, "select 1").await.unwrap(), 1);
    assert_eq!(restarted.cluster_dir().metadata().unwrap().uid(), owner);
    restarted.stop().await.unwrap();
}

/// A cluster outside the test's temporary folder, which is removed on drop.
struct ExternalCluster {
    data_dir: PathBuf,
    cluster: PathBuf,
}

impl Drop for ExternalCluster {
    fn drop(&mut self) {
        kill_postmaster(&self.data_dir);
        let _ = std::fs::remove_dir_all(&self.cluster);
        // Only if it is empty.
        let _ = std::fs::remove_dir(self.cluster.parent().unwrap());
    }
}

#[tokio::test]
#[ignore = "needs root, to enter a folder that PostgreSQL's user cannot"]
async fn a_cluster_below_an_inaccessible_folder_is_external_as_root() {
    let folder = Folder::new();
    let closed = folder.root().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let data_dir = closed.join("data");
    let link = data_dir.join("postgres");

    let cluster = Cluster::start(options(data_dir.clone())).await.unwrap();
    let external = ExternalCluster { data_dir: data_dir.clone(), cluster: cluster.cluster_dir().to_owned() };
    let path = &external.cluster;
    assert!(path.starts_with("/var/lib/hotline"));
    assert_eq!(&link.read_link().unwrap(), path);
    assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);
    cluster.stop().await.unwrap();

    // As if the process was killed between the creation of the link and the rename: the next start renames the folder.
    let unfinished = PathBuf::from(format!("{}.new", path.display()));
    std::fs::rename(path, &unfinished).unwrap();
    let restarted = Cluster::start(options(data_dir.clone())).await.unwrap();
    assert_eq!(restarted.cluster_dir(), path);
    restarted.stop().await.unwrap();

    // A lost link must neither reuse nor replace the cluster.
    std::fs::remove_file(&link).unwrap();
    let error = Cluster::start(options(data_dir.clone())).await.unwrap_err();
    assert!(matches!(error, ClusterError::Unlinked { .. }), "{error}");

    // Nor must a lost cluster be replaced by an empty one.
    symlink(path, &link).unwrap();
    let moved = closed.join("aside");
    let status = std::process::Command::new("mv").arg(path).arg(&moved).status();
    assert!(status.unwrap().success());
    let error = Cluster::start(options(data_dir)).await.unwrap_err();
    assert!(matches!(error, ClusterError::TargetMissing { .. }), "{error}");
}

#[tokio::test]
#[ignore = "needs root, to enter a folder that PostgreSQL's user cannot"]
async fn a_folder_that_becomes_inaccessible_is_reported_as_root() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    cluster.stop().await.unwrap();
    std::fs::set_permissions(folder.data_dir(), Permissions::from_mode(0o700)).unwrap();
    let error = Cluster::start(folder.options()).await.unwrap_err();
    let ClusterError::Unreachable { path, .. } = error else {
        unreachable!("{error}");
    };
    assert_eq!(path, folder.data_dir().canonicalize().unwrap());
}
