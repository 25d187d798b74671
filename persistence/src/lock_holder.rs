//! The session that holds the lock of a database's writer.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use sqlx::FromRow;

/// The session that holds the writer's lock.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct LockHolder {
    /// Id of its process on the database server.
    pub pid: i32,
    /// The session's name.
    pub name: Option<String>,
    /// The client's address; `None` for a unix socket, or if our role may not see it.
    pub address: Option<String>,
    /// When it connected; `None` if our role may not see it.
    pub since: Option<DateTime<Utc>>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL session {}", self.pid)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        if let Some(address) = &self.address {
            write!(f, " from {address}")?;
        } else if self.since.is_some() {
            write!(f, " from a unix socket")?;
        }
        if let Some(since) = self.since {
            write!(f, ", connected since {}", since.to_rfc3339_opts(SecondsFormat::Secs, true))?;
        }
        Ok(())
    }
}
