//! Health checks and signals while a process starts or its database does not answer, and the commands `health` and
//! `config`.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{ANSWER_TIME_MAX, Starting, signal_postgres};
use crate::process::{Process, database, hotline, postmaster, run};
use crate::support::template::prepared_folder;
use crate::support::{PATIENCE, eventually, patience};

/// A folder whose PostgreSQL runs, and whose service was killed.
fn folder_of_killed_service() -> tempfile::TempDir {
    let folder = prepared_folder();
    Process::serve(folder.path()).kill();
    folder
}

/// Takes all connections of a folder's PostgreSQL, so that it answers, but no start continues until they are closed.
/// A start soon gives up on a PostgreSQL that does not answer at all.
async fn take_connections(folder: &Path) -> Vec<PgConnection> {
    let options = database(folder).await.connect_options();
    let mut taken: Vec<PgConnection> = Vec::new();
    let deadline = Instant::now() + patience(PATIENCE);
    loop {
        let error = match PgConnection::connect_with(&options).await {
            Ok(connection) => {
                taken.push(connection);
                continue;
            }
            Err(error) => error,
        };
        let code = error.as_database_error().and_then(|error| error.code());
        assert_eq!(code.as_deref(), Some("53300"), "another error than too many connections: {error}");
        // A session of the killed service leaves its place when it ends.
        let count = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
        let sessions: i64 = sqlx::query_scalar(count).fetch_one(&mut taken[0]).await.expect("a count");
        if sessions == taken.len() as i64 {
            return taken;
        }
        assert!(Instant::now() < deadline, "{} of {sessions} connections are taken", taken.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn check_starting(process: &Starting) {
    eventually("health checks are answered", || async { process.get("/health/live").await.is_some() }).await;
    let (status, live) = process.get("/health/live").await.expect("an answer");
    assert_eq!((status, live), (200, json!({"status": "live"})));
    let (status, ready) = process.get("/health/ready").await.expect("an answer");
    assert_eq!((status, &ready["status"]), (503, &json!("starting")), "{ready}");
    assert_eq!(ready["reasons"][0]["reason"], "starting", "{ready}");
    assert_eq!(ready["parts"]["accepting"], "not ready", "{ready}");
    let (status, refusal) = process.get("/api/v1/tickets").await.expect("an answer");
    assert_eq!((status, &refusal["error"]["code"]), (503, &json!("ERR_API_UNAVAILABLE")), "{refusal}");
}

#[actix_web::test]
async fn a_start_answers_health_checks_and_sigterm_stops_its_postgresql() {
    let folder = folder_of_killed_service();
    // Migrations wait for the lock that follows.
    let db = database(folder.path()).await;
    let mut connection = PgConnection::connect_with(&db.connect_options()).await.expect("a connection");
    let mut held = connection.begin().await.expect("a transaction");
    let lock = "lock table _sqlx_migrations, schema_needs, ownership in access exclusive mode";
    sqlx::query(lock).execute(&mut *held).await.expect("a lock");

    let mut process = Starting::serve(folder.path(), &[]);
    check_starting(&process).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    assert_eq!(postmaster(folder.path()), None, "PostgreSQL was left");
    assert!(process.log().contains("stopped during the start"), "{}", process.log());

    let mut process = Starting::serve(folder.path(), &[]);
    process.wait_until_ready().await;
    process.signal(Signal::SIGINT);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn sigterm_while_the_private_postgresql_starts_stops_both() {
    let folder = folder_of_killed_service();
    let taken = take_connections(folder.path()).await;
    let mut process = Starting::serve(folder.path(), &[]);
    check_starting(&process).await;
    process.signal(Signal::SIGTERM);
    eventually("it stops", || async { process.log().contains("stopping") }).await;
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    drop(taken);
    assert_eq!(postmaster(folder.path()), None, "PostgreSQL was left");
}

#[actix_web::test]
async fn sigterm_while_a_database_does_not_answer_ends_with_status_0() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("postgres://hotline@{}/hotline", silent.local_addr().expect("an address"));
    let folder = crate::process::data_folder();
    let mut process = Starting::serve(folder.path(), &["--database-url", &url]);
    check_starting(&process).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn a_frozen_database_degrades_a_service_that_stays_ready() {
    degrades_while_frozen(ANSWER_TIME_MAX).await;
}

#[actix_web::test]
async fn a_service_with_a_frozen_database_answers_at_once_measured() {
    degrades_while_frozen(Duration::from_secs(1)).await;
}

/// Freezes the database, and lets it continue; each answer meanwhile takes at most `time_max`.
async fn degrades_while_frozen(time_max: Duration) {
    let folder = prepared_folder();
    let mut process = Starting::serve(folder.path(), &[]);
    process.wait_until_ready().await;
    signal_postgres(folder.path(), Signal::SIGSTOP);
    eventually("the outage is seen", || async {
        let (status, ready) = process.get_within("/health/ready", time_max).await.expect("an answer in time");
        assert_eq!(status, 200, "{ready}");
        ready["status"] == "degraded" && ready["reasons"][0]["reason"] == "database"
    })
    .await;
    signal_postgres(folder.path(), Signal::SIGCONT);
    eventually("the end is seen", || async {
        process.get("/health/ready").await.is_some_and(|(_, ready)| ready["status"] == "ready")
    })
    .await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn the_health_command_calls_the_configured_address() {
    let folder = prepared_folder();
    let mut process = Starting::serve(folder.path(), &[]);
    process.wait_until_ready().await;
    let health = |options: &[&str]| {
        let mut command = hotline();
        command.env("HOTLINE_LISTEN", process.address.to_string());
        command.args(["health", "--json"]).args(options).current_dir(folder.path()).output().expect("hotline runs")
    };
    for options in [vec![], vec!["--live"]] {
        // The command gives up after two seconds.
        let deadline = Instant::now() + patience(PATIENCE);
        let mut output = health(&options);
        while !output.status.success() && Instant::now() < deadline {
            output = health(&options);
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["status"], if options.is_empty() { "ready" } else { "live" }, "{text}");
    }
    let (status, version) = process.get("/version").await.expect("an answer");
    assert_eq!((status, &version["version"]), (200, &json!(env!("CARGO_PKG_VERSION"))), "{version}");
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    let url = format!("http://{}", process.address);
    let output = run(folder.path(), &["health", "--url", &url]);
    assert_eq!(output.status.code(), Some(1), "nobody serves");
}

#[actix_web::test]
async fn the_configuration_is_printed_with_its_sources_and_without_passwords() {
    let folder = crate::process::data_folder();
    let write = |text: &str| std::fs::write(folder.path().join("hotline.toml"), text).expect("a file");
    let config = |verb: &str| {
        let mut command = hotline();
        command.env("HOTLINE_DATABASE_URL", "postgres://hotline:hidden@db.example/hotline");
        command.env("HOTLINE_RATE_PER_MINUTE", "7").current_dir(folder.path());
        command.args(["config", verb, "--data-dir", "/srv/hotline", "--json"]).output().expect("hotline runs")
    };
    write("log = \"json\"\n");
    let output = config("print");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !text.contains("hidden"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (option, value, source) in [
        ("data-dir", json!("/srv/hotline"), "command line"),
        ("database-url", json!("postgres://hotline:***@db.example/hotline"), "environment"),
        ("rate-per-minute", json!("7"), "environment"),
        ("log", json!("json"), "file"),
        ("events", json!("true"), "default"),
        ("smtp-url", json!(null), "default"),
    ] {
        let expected = json!({"option": option, "value": value, "source": source});
        assert!(printed["options"].as_array().is_some_and(|all| all.contains(&expected)), "{expected} in {text}");
    }
    assert!(config("check").status.success());
    write("mail_from = \"desk@acme.example\"\nlisten = \"nowhere\"\n");
    let output = config("check");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("`listen`") && text.contains("hotline.toml"), "{text}");
}
