//! Health checks while a process starts, and while its database does not answer.

use nix::sys::signal::Signal;
use serde_json::json;
use sqlx::Connection;

use super::{Starting, postmaster, send_to_postgres};
use crate::process::{Process, database};
use crate::support::eventually;
use crate::support::template::prepared_folder;

/// Leaves a folder whose PostgreSQL runs, and whose service was killed.
fn killed_folder() -> tempfile::TempDir {
    let folder = prepared_folder();
    Process::serve(folder.path()).kill();
    folder
}

async fn says_it_starts(process: &Starting) {
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
    let folder = killed_folder();
    // Migrations wait for it.
    let db = database(folder.path()).await;
    let mut connection = sqlx::PgConnection::connect_with(&db.connect_options()).await.expect("a connection");
    let mut held = connection.begin().await.expect("a transaction");
    let lock = "lock table _sqlx_migrations, schema_needs, ownership in access exclusive mode";
    sqlx::query(lock).execute(&mut *held).await.expect("a lock");

    let mut process = Starting::serve(folder.path(), &[]);
    says_it_starts(&process).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    assert_eq!(postmaster(folder.path()), None, "PostgreSQL was left");
    assert!(process.log().contains("stopped during the start"), "{}", process.log());

    let mut process = Starting::serve(folder.path(), &[]);
    process.is_ready().await;
    process.signal(Signal::SIGINT);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn sigterm_while_the_private_postgresql_starts_stops_both() {
    let folder = killed_folder();
    send_to_postgres(folder.path(), Signal::SIGSTOP);
    let mut process = Starting::serve(folder.path(), &[]);
    says_it_starts(&process).await;
    process.signal(Signal::SIGTERM);
    eventually("it stops", || async { process.log().contains("stopping") }).await;
    send_to_postgres(folder.path(), Signal::SIGCONT);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    assert_eq!(postmaster(folder.path()), None, "PostgreSQL was left");
}

#[actix_web::test]
async fn sigterm_while_a_database_does_not_answer_ends_with_status_0() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("postgres://hotline@{}/hotline", silent.local_addr().expect("an address"));
    let folder = crate::process::data_folder();
    let mut process = Starting::serve(folder.path(), &["--database-url", &url]);
    says_it_starts(&process).await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[actix_web::test]
async fn a_frozen_database_degrades_a_service_that_stays_ready_and_answers_at_once() {
    let folder = prepared_folder();
    let mut process = Starting::serve(folder.path(), &[]);
    process.is_ready().await;
    send_to_postgres(folder.path(), Signal::SIGSTOP);
    eventually("the outage is seen", || async {
        // The client gives up after a second.
        let (status, ready) = process.get("/health/ready").await.expect("an answer in a second");
        assert_eq!(status, 200, "{ready}");
        ready["status"] == "degraded" && ready["reasons"][0]["reason"] == "database_unavailable"
    })
    .await;
    send_to_postgres(folder.path(), Signal::SIGCONT);
    eventually("the end is seen", || async {
        process.get("/health/ready").await.is_some_and(|(_, ready)| ready["status"] == "ready")
    })
    .await;
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}
