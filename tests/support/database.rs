//! A database for each test, on a PostgreSQL that all test processes share.

use std::path::PathBuf;

use hotline_postgres::Cluster;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};

/// A database of one test.
pub struct TestDatabase {
    name: String,
    admin: PgConnectOptions,
    /// How to connect to it.
    pub options: PgConnectOptions,
    /// Connections for what a test looks up or breaks by itself.
    pub db: PgPool,
}

/// Where the shared PostgreSQL lies; `examples/stop_test_postgres.rs` stops it.
pub fn shared_folder() -> PathBuf {
    std::env::temp_dir().join(format!("hotline-test-{}", nix::unistd::getuid()))
}

impl TestDatabase {
    pub async fn create() -> Self {
        let cluster = Cluster::shared(shared_folder()).await.expect("the shared PostgreSQL starts");
        let admin = cluster.connect_options().disable_statement_logging();
        let name = hotline_persistence::key::new_key("test_").to_lowercase();
        run(&admin, &format!("create database {name}")).await;
        let options = admin.clone().database(&name);
        let db = hotline_persistence::pool::connect(options.clone());
        Self { name, admin, options, db }
    }

    pub async fn drop(self) {
        self.db.close().await;
        run(&self.admin, &format!("drop database {} with (force)", self.name)).await;
    }
}

async fn run(options: &PgConnectOptions, statement: &str) {
    let mut connection = PgConnection::connect_with(options).await.expect("the shared PostgreSQL answers");
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await.expect(statement);
}
