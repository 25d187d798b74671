//! Stops what the tests share, the service and its PostgreSQL; `make test` ends with it. It fails when the service had ended by
//! itself, when a part of it panicked, or when it lost or was refused anything of what its tests wrote.
//!
//! `cargo run -q --example stop_test_services`
#![allow(clippy::expect_used)] // A check that meets the unexpected fails loudly.

use hotline_postgres::{Cluster, shared_folder};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

#[path = "../tests/support/running.rs"]
#[allow(dead_code)] // The tests start what is stopped here.
mod running;

use running::Running;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), String> {
    let outcome = match Running::read() {
        Some(service) => stopped(service).await,
        None => Ok(()),
    };
    Cluster::stop_shared(shared_folder()).await.map_err(|error| error.to_string())?;
    outcome
}

/// Stops the service, and looks at what it has written.
async fn stopped(service: Running) -> Result<(), String> {
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
    // What is well takes no memory until the next run; what is not stays to be looked at.
    drop(database);
    let mut beside = PgConnection::connect_with(&cluster.connect_options()).await.map_err(|error| error.to_string())?;
    let drop = AssertSqlSafe(format!("drop database {name} with (force)"));
    sqlx::query(drop).execute(&mut beside).await.map_err(|error| error.to_string())?;
    std::fs::remove_dir_all(running::folder()).map_err(|error| error.to_string())
}
