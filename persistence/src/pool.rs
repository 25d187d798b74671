//! Connections to PostgreSQL and the migrations every database gets at start.

use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use crate::Result;

/// Connections for requests and the persister. More than the cores can use only queue inside PostgreSQL.
pub const CONNECTIONS_MAX: u32 = 16;

/// How long a request waits for a connection before it is told the store is unavailable.
const ACQUIRE_TIME_MAX: Duration = Duration::from_secs(3);

/// Opens a pool. No connection is made yet, so it works while the database is down.
pub fn connect(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS_MAX)
        .acquire_timeout(ACQUIRE_TIME_MAX)
        .connect_lazy_with(named(options))
}

/// A pool of one connection: the persister's own.
pub fn connect_one(options: PgConnectOptions) -> PgPool {
    PgPoolOptions::new().max_connections(1).acquire_timeout(ACQUIRE_TIME_MAX).connect_lazy_with(named(options))
}

fn named(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("hotline").disable_statement_logging()
}

/// Brings the database to this release's schema.
///
/// # Errors
/// When the database cannot be reached or a migration fails.
pub async fn migrate(db: &PgPool) -> Result<()> {
    Ok(sqlx::migrate!("./migrations").run(db).await?)
}
