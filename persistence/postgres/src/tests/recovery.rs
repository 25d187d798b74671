//! Recovery after a process was killed.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::os_user::OsUser;
use super::super::{Cluster, ClusterError, ClusterOptions};
use super::{Folder, connect, eventually, execute, scalar, to_pid};

#[tokio::test]
async fn a_killed_postmaster_is_restarted() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    execute(&cluster, "create table kept (n int); insert into kept values (7)").await;

    for _ in 0..2 {
        let killed = cluster.pid().unwrap();
        kill(to_pid(killed), Signal::SIGKILL).unwrap();
        eventually("a new postmaster answers", async || {
            cluster.pid().is_some_and(|pid| pid != killed)
                && scalar(&cluster, "select n from kept").await.ok() == Some(7)
        })
        .await;
    }
    cluster.stop().await.unwrap();
    assert!(!cluster.cluster_dir().join("postmaster.pid").exists());
}

#[tokio::test]
async fn a_running_postmaster_is_adopted_and_restarted() {
    let folder = Folder::prepared().await;
    let first = Cluster::start(folder.options()).await.unwrap();
    let pid = first.pid().unwrap();
    drop(first);

    let second = Cluster::start(folder.options()).await.unwrap();
    assert_eq!(second.pid(), Some(pid));
    assert_eq!(scalar(&second, "select 1").await.unwrap(), 1);

    kill(to_pid(pid), Signal::SIGKILL).unwrap();
    eventually("a new postmaster answers", async || {
        second.pid().is_some_and(|new| new != pid) && scalar(&second, "select 1").await.is_ok()
    })
    .await;
    second.stop().await.unwrap();
    assert!(!second.cluster_dir().join("postmaster.pid").exists());
}

#[tokio::test]
async fn an_adopted_postmaster_can_be_stopped() {
    let folder = Folder::prepared().await;
    drop(Cluster::start(folder.options()).await.unwrap());
    let cluster = Cluster::start(folder.options()).await.unwrap();
    cluster.stop().await.unwrap();
    assert!(!cluster.cluster_dir().join("postmaster.pid").exists());
}

#[tokio::test]
async fn a_start_right_after_a_kill_waits_for_the_backends_and_recovers() {
    let folder = Folder::prepared().await;
    let first = Cluster::start(folder.options()).await.unwrap();
    execute(&first, "create table kept (n int); insert into kept values (7)").await;
    // A backend that is computing does not notice that its postmaster has exited. It computes until the test ends it,
    // or for five minutes if the test fails first.
    let mut connection = connect(&first).await.unwrap();
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
    sqlx::raw_sql("set statement_timeout = '5min'").execute(&mut connection).await.unwrap();
    let query = tokio::spawn(async move {
        // Raw SQL is not prepared first, so the state `active` means that the loop is running.
        sqlx::raw_sql("do $$ begin loop null; end loop; end $$").execute(&mut connection).await.is_ok()
    });
    eventually("the backend computes", async || {
        let count_active = "select count(*)::int from pg_stat_activity where state = 'active' and query like 'do %'";
        scalar(&first, count_active).await.unwrap() == 1
    })
    .await;
    let killed = first.pid().unwrap();
    let log_file = first.log_file().to_owned();
    drop(first);
    kill(to_pid(killed), Signal::SIGKILL).unwrap();

    let end_backend = async {
        eventually("a new postmaster has found the old backend", async || {
            std::fs::read_to_string(&log_file).is_ok_and(|log| log.contains("pre-existing shared memory block"))
        })
        .await;
        kill(Pid::from_raw(backend), Signal::SIGTERM).unwrap();
    };
    let (second, ()) = tokio::join!(Cluster::start(folder.options()), end_backend);
    let second = second.unwrap();
    assert_ne!(second.pid(), Some(killed));
    assert_eq!(scalar(&second, "select n from kept").await.unwrap(), 7);
    second.stop().await.unwrap();
    query.abort();
}

#[tokio::test]
async fn a_pid_file_naming_an_unrelated_process_is_removed() {
    let folder = Folder::prepared().await;
    let cluster = Cluster::start(folder.options()).await.unwrap();
    cluster.stop().await.unwrap();
    let pid_file = cluster.cluster_dir().join("postmaster.pid");
    // Run as PostgreSQL's own user, because PostgreSQL ignores the processes of other users.
    let unrelated =
        OsUser::choose(None).unwrap().command(Path::new("/bin/sleep")).arg("600").kill_on_drop(true).spawn().unwrap();
    let pid = unrelated.id().unwrap();
    // PostgreSQL writes a negative id in single-user mode, and a crash may leave the file empty.
    for text in [format!("{pid}\n"), format!("-{pid}\n"), String::new()] {
        std::fs::write(&pid_file, text).unwrap();
        let restarted = Cluster::start(folder.options()).await.unwrap();
        assert_eq!(scalar(&restarted, "select 1").await.unwrap(), 1);
        restarted.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_postmaster_on_another_socket_is_refused_and_not_stopped() {
    let folder = Folder::new();
    let mut options = folder.options();
    options.settings.push(("port".to_owned(), "5433".to_owned()));
    // The port is part of the socket's name, so the start waits for a socket that never appears. Aborting it leaves a
    // postmaster like one that was started by hand.
    let start = tokio::spawn(Cluster::start(options));
    let pid_file = folder.data_dir().join("postgres/postmaster.pid");
    eventually("it is ready", async || std::fs::read_to_string(&pid_file).is_ok_and(|text| text.contains("ready")))
        .await;
    start.abort();
    assert!(start.await.is_err());

    let error = Cluster::start(folder.options()).await.unwrap_err();
    let ClusterError::Foreign { pid, .. } = error else {
        unreachable!("{error}");
    };
    // Sends no signal, and fails if the process no longer exists.
    kill(to_pid(pid), None).unwrap();
}

#[tokio::test]
async fn a_postmaster_without_fsync_is_restarted_by_a_service() {
    let folder = Folder::prepared().await;
    let first = Cluster::shared(folder.data_dir()).await.unwrap();
    let pid = first.pid().unwrap();

    let service = Cluster::start(ClusterOptions::new(folder.data_dir())).await.unwrap();
    assert_ne!(service.pid(), Some(pid));
    let query = "select count(*)::int from pg_settings where name = 'fsync' and setting = 'on'";
    assert_eq!(scalar(&service, query).await.unwrap(), 1);
    service.stop().await.unwrap();
}

#[tokio::test]
async fn leftovers_of_a_killed_initdb_are_cleaned_up() {
    let folder = Folder::new();
    let leftover = folder.data_dir().join("postgres.new");
    std::fs::create_dir_all(leftover.join("base")).unwrap();
    let cluster = Cluster::start(folder.options()).await.unwrap();
    assert_eq!(scalar(&cluster, "select 1").await.unwrap(), 1);
    assert!(!leftover.exists());
    cluster.stop().await.unwrap();
}
