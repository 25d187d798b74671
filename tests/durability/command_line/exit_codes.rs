//! The exit code of each kind of failure, a start that waits for its database, and a stop without one.

use std::net::TcpListener;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use hotline::exit_code::Exit;
use hotline_postgres::{Cluster, ClusterOptions};
use serde_json::json;

use super::url;
use crate::process::{Process, SERVE, command, data_folder, run, serving};
use crate::support::template::prepared_folder;
use crate::support::{Api, Company, TestDatabase, eventually, free_address, patience};

/// Maximum duration of a stop without the database: it waits a while for the database, and for requests in progress.
const STOP_TIME_MAX: Duration = Duration::from_secs(20);

#[track_caller]
fn assert_exit(output: &Output, exit: Exit) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(exit.code().into()), "{stderr}");
    stderr
}

#[track_caller]
fn assert_run_exits(folder: &Path, arguments: &[&str], exit: Exit) -> String {
    assert_exit(&run(folder, arguments), exit)
}

#[actix_web::test]
async fn a_wrong_command_line_ends_with_64_and_help_with_0() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    for arguments in [
        &["company", "dance"][..],
        &["company", "list", "--json", "--color"],
        &["serve", "--listen", "8080"],
        &["token", "revoke", "7", "--database-url", &url],
        &["serve", "--database-url", "mysql://localhost/x"],
    ] {
        assert_run_exits(folder.path(), arguments, Exit::Usage);
    }
    // A check that finds a problem is not a failure of the command.
    assert_run_exits(folder.path(), &["cluster", "check", "--database-url", &url], Exit::Finding);
    let help = run(folder.path(), &["--help"]);
    assert_exit(&help, Exit::Success);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(Exit::ALL.iter().all(|exit| help.contains(exit.meaning())), "{help}");
    database.drop().await;
}

#[actix_web::test]
async fn a_wrong_configuration_ends_with_78_and_a_denied_user_with_77() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    let file = folder.path().join("hotline.toml");
    std::fs::write(&file, "colour = \"red\"\n").expect("written");
    let file = file.display().to_string();
    assert_run_exits(folder.path(), &["company", "list", "--config", &file], Exit::Configuration);
    // A folder without an installation, and a database that does not exist.
    assert_run_exits(&folder.path().join("mistyped"), &["company", "list"], Exit::Configuration);
    let missing = url.replace("postgres:///test_", "postgres:///nothing_");
    assert_run_exits(folder.path(), &["company", "list", "--database-url", &missing], Exit::Configuration);
    let stranger = format!("{}&user=stranger", url.split("&user=").next().expect("a URL"));
    let stderr = assert_run_exits(folder.path(), &["company", "list", "--database-url", &stranger], Exit::AccessDenied);
    assert!(stderr.contains("stranger"), "{stderr}");
    // A schema that only newer releases know.
    sqlx::query("update schema_needs set least = 9000").execute(&database.db).await.expect("its needs");
    assert_run_exits(folder.path(), &["company", "list", "--database-url", &url], Exit::Configuration);
    database.drop().await;
}

#[actix_web::test]
async fn a_folder_that_cannot_be_created_ends_with_73() {
    let folder = data_folder();
    let database = TestDatabase::migrated().await;
    let url = url(&database);
    let arguments = [SERVE, &["--database-url", &url]].concat();
    let stderr = assert_run_exits(Path::new("/proc/hotline"), &arguments, Exit::CannotCreate);
    assert!(stderr.contains("/proc/hotline"), "{stderr}");
    std::fs::write(folder.path().join("journal"), "no folder").expect("written");
    let stderr = assert_run_exits(folder.path(), &arguments, Exit::CannotCreate);
    assert!(stderr.contains("journal"), "{stderr}");
    database.drop().await;
}

#[actix_web::test]
async fn a_port_or_a_folder_that_another_process_uses_ends_with_75() {
    let folder = prepared_folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("address").to_string();
    assert_run_exits(data_folder().path(), &["serve", "--listen", &address], Exit::Retry);
    // So does an address that the machine does not have yet, here one that none has (RFC 5737).
    assert_run_exits(data_folder().path(), &["serve", "--listen", "192.0.2.1:8080"], Exit::Retry);
    let process = Process::serve(folder.path());
    let stderr = assert_run_exits(folder.path(), SERVE, Exit::Retry);
    assert!(stderr.contains(&format!("process {}", process.pid())), "{stderr}");
    process.kill();
}

#[actix_web::test]
async fn a_start_waits_for_its_database_and_ends_with_69_when_it_stays_away() {
    let folder = data_folder();
    let database = format!("postgres://hotline@{}/desk", free_address());
    let began = Instant::now();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--database-url", &database, "--start-wait"];
    // Longer than the first attempt takes: without time left after it, a start does not wait.
    let stderr = assert_run_exits(folder.path(), &[&arguments[..], &["5s"]].concat(), Exit::Unavailable);
    assert!(began.elapsed().as_secs() >= 5, "it did not wait: {stderr}");
    assert_eq!(stderr.matches("waiting for the database").count(), 1, "one line for the whole wait: {stderr}");
    let stderr = assert_run_exits(folder.path(), &[&arguments[..], &["0"]].concat(), Exit::Unavailable);
    assert!(!stderr.contains("waiting"), "{stderr}");
    // Other commands do not wait.
    assert_run_exits(folder.path(), &["company", "list", "--database-url", &database], Exit::Unavailable);
}

#[actix_web::test]
async fn a_start_continues_once_its_database_is_there() {
    let (folder, data) = (prepared_folder(), data_folder());
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let url = crate::support::database::url(&cluster.connect_options());
    cluster.stop().await.expect("PostgreSQL stops");
    let path = data.path().to_owned();
    let starting = std::thread::spawn(move || Process::start(&path, serving(&path).args(["--database-url", &url])));
    let log = data.path().join("service.log");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the start waits", || async { read().contains("waiting for the database") }).await;
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    let started =
        actix_web::rt::task::spawn_blocking(move || starting.join()).await.expect("joined").expect("a thread");
    let mut process = started.unwrap_or_else(|log| panic!("not served: {log}"));
    assert_eq!(read().matches("the database can be reached").count(), 1, "{}", read());
    process.terminate();
    assert_eq!(process.wait().code(), Some(0));
    assert!(process.log().contains("stopped; all changes are written"), "{}", process.log());
    cluster.stop().await.expect("PostgreSQL stops");
}

#[actix_web::test]
async fn a_stop_without_the_database_is_clean_and_the_next_start_has_every_change() {
    stop_without_database().await;
}

#[actix_web::test]
async fn a_stop_without_the_database_ends_soon_measured() {
    let took = stop_without_database().await;
    assert!(took < patience(STOP_TIME_MAX), "the stop took {took:?}");
}

/// Stops a service whose database is away, and starts it again; returns how long the stop took.
async fn stop_without_database() -> Duration {
    let (folder, data) = (prepared_folder(), data_folder());
    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL");
    let db = crate::support::database::pool(cluster.connect_options());
    let company = Company::create(&db, "Acme").await;
    db.close().await;
    let url = crate::support::database::url(&cluster.connect_options());
    let serve = || {
        let mut serve = command(data.path(), SERVE);
        serve.args(["--database-url", &url, "--journal-segment-size", "1MiB"]);
        Process::start(data.path(), &mut serve).unwrap_or_else(|log| panic!("not served: {log}"))
    };
    let mut process = serve();
    let api = Api::new(process.address, &company.key);
    let text = json!({"channelId": company.phone, "number": "5511900000001", "type": "text", "body": "hot"});
    api.post("/messages", text.clone()).await.data(202);
    cluster.stop().await.expect("PostgreSQL stops");
    api.post("/messages", text).await.data(202);
    let began = Instant::now();
    process.terminate();
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    let took = began.elapsed();
    assert!(process.log().contains("the journal keeps the last changes"), "{}", process.log());

    let cluster = Cluster::start(ClusterOptions::for_tests(folder.path())).await.expect("PostgreSQL is back");
    let process = serve();
    assert!(process.replayed() > 0, "nothing was in the journal");
    let api = Api::new(process.address, &company.key);
    eventually("both messages are there", || async { api.all("/messages").await.len() == 2 }).await;
    process.kill();
    cluster.stop().await.expect("PostgreSQL stops");
    took
}
