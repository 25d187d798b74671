//! Why a schema is not used or not migrated.

use std::time::Duration;

use super::blocker::Blocker;

/// Why a schema is not used or not migrated.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The database has no tables yet, and the command does not create them.
    #[error("the database has no tables yet; `hotline migrate`, or the start of the service, creates them")]
    Empty,
    /// The schema is older than this release, and the command does not migrate it.
    #[error(
        "the schema of the database is older than Hotline {}; it lacks {}. Run `hotline migrate`",
        env!("CARGO_PKG_VERSION"), list_names(pending)
    )]
    Pending {
        /// The numbers and names of the missing migrations.
        pending: Vec<String>,
    },
    /// The schema is older than this release, and the database accepts no changes.
    #[error(
        "the database is read-only, as a standby is, and its schema lacks {}; run `hotline migrate` on the primary",
        list_names(pending)
    )]
    ReadOnly {
        /// The numbers and names of the missing migrations.
        pending: Vec<String>,
    },
    /// Other sessions hold a lock that a migration needs.
    #[error(
        "{task} did not get a lock within {} s{}. It changed nothing; end the other session, or use a longer \
         --migration-wait", waited.as_secs(), held_by(blocker.as_ref())
    )]
    Blocked {
        /// What waited.
        task: String,
        /// For how long.
        waited: Duration,
        /// The last session that held the lock.
        blocker: Option<Blocker>,
    },
}

/// At most this many migrations are named in a message.
const NAMED_MAX: usize = 5;

fn list_names(pending: &[String]) -> String {
    let named = pending.iter().take(NAMED_MAX).cloned().collect::<Vec<String>>().join(", ");
    match pending.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn held_by(blocker: Option<&Blocker>) -> String {
    blocker.map(|blocker| format!(", which is held by {blocker}")).unwrap_or_default()
}
