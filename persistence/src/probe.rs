//! Checks whether the database responds, on a connection of its own: to those who wait for a connection of the pool, a
//! pool that is used up and a database that is down look the same.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::error::{is_too_many_connections, without_values};

/// Timeout of a check, including a new connection: so short that an outage is noticed while requests still wait.
const CHECK_TIME_MAX: Duration = Duration::from_secs(3);

/// Checks the database.
#[derive(Debug)]
pub struct Probe {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The database responds.
    Responds,
    /// The database runs, but accepts no further connection.
    TooManyConnections(String),
    /// The database does not respond.
    Fails(String),
}

impl Probe {
    pub(crate) fn new(options: PgConnectOptions) -> Self {
        Self { options, connection: None }
    }

    /// The database's address and user, never the password.
    pub fn address(&self) -> String {
        crate::requirements::address(&self.options)
    }

    /// Checks once.
    pub async fn check(&mut self) -> Finding {
        // A connection whose check was interrupted is closed by being dropped.
        let connection = self.connection.take();
        match tokio::time::timeout(CHECK_TIME_MAX, self.attempt(connection)).await {
            Ok(Ok(connection)) => {
                self.connection = Some(connection);
                Finding::Responds
            }
            Ok(Err(error)) if is_too_many_connections(&error) => Finding::TooManyConnections(without_values(&error)),
            Ok(Err(error)) => Finding::Fails(crate::error::connection_failure_reason(&error)),
            Err(_) => Finding::Fails(format!("no response within {} s", CHECK_TIME_MAX.as_secs())),
        }
    }

    async fn attempt(&self, connection: Option<PgConnection>) -> sqlx::Result<PgConnection> {
        if let Some(mut connection) = connection
            && select(&mut connection).await.is_ok()
        {
            return Ok(connection);
        }
        // The server may have been restarted since.
        let mut connection = self.options.connect().await?;
        select(&mut connection).await?;
        Ok(connection)
    }
}

async fn select(db: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("select 1").execute(db).await.map(drop)
}
