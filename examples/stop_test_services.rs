//! Stops what the tests share, the service and its PostgreSQL, at the end of `make test`. Fails if the service had
//! ended by itself, if a part of it panicked, or if anything that tests wrote in it was lost or refused.
//!
//! `cargo run -q --example stop_test_services`
#![allow(clippy::expect_used)] // A failed expectation must fail the check.

use hotline_postgres::{Cluster, shared_folder};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

#[path = "../tests/support/running.rs"]
#[allow(dead_code)] // The tests start what is stopped here.
mod running;

use running::Running;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    let outcome = match Running::read() {
        Some(service) => stop_and_check(service).await,
        None => Ok(()),
    };
    Cluster::stop_shared(shared_folder()).await.map_err(|error| error.to_string())?;
    outcome
}

/// Stops the service, and looks at what it has written.
async fn stop_and_check(service: Running) -> Result<(), String> {
    let name = service.database.clone();
    service.stop()?;
    let cluster = Cluster::shared(shared_folder()).await.map_err(|error| error.to_string())?;
    let options = cluster.connect_options().database(&name);
    let mut database = PgConnection::connect_with(&options).await.map_err(|error| error.to_string())?;
    let counts = "select (select count(*) from companies), (select count(*) from rejected_changes)";
    let counted: Result<(i64, i64), _> = sqlx::query_as(counts).fetch_one(&mut database).await;
    let (companies, rejected) = counted.map_err(|error| error.to_string())?;
    println!("the service that tests share served {companies} companies; PostgreSQL refused {rejected} of their rows");
    if rejected > 0 {
        return Err(format!("PostgreSQL refused {rejected} rows of the shared service"));
    }
    // Nothing is kept after a good run, to free its memory; what a failed one left stays for inspection.
    drop(database);
    let mut server = PgConnection::connect_with(&cluster.connect_options()).await.map_err(|error| error.to_string())?;
    let statement = AssertSqlSafe(format!("drop database {name} with (force)"));
    sqlx::query(statement).execute(&mut server).await.map_err(|error| error.to_string())?;
    std::fs::remove_dir_all(running::folder()).map_err(|error| error.to_string())
}
