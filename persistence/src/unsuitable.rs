//! Why Hotline cannot use a database: its problems, each with a remedy.

use std::fmt;

/// What is wrong with a database, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) remedy: String,
    /// Whether the problem may end without the operator's help, as in a failover.
    pub(crate) is_temporary: bool,
}

impl Problem {
    /// A problem that only the operator can correct.
    pub(crate) fn lasting(what: String, remedy: String) -> Self {
        Self { what, remedy, is_temporary: false }
    }
}

/// A database that Hotline cannot work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsuitableDatabase {
    /// The server's address.
    address: String,
    problems: Vec<Problem>,
}

impl UnsuitableDatabase {
    pub(crate) fn new(address: String, problems: Vec<Problem>) -> Self {
        Self { address, problems }
    }

    /// Whether the database may become usable without the operator's help: the server is a standby or read-only now.
    pub fn is_temporary(&self) -> bool {
        self.problems.iter().all(|problem| problem.is_temporary)
    }
}

impl fmt::Display for UnsuitableDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hotline cannot use PostgreSQL at {}: ", self.address)?;
        for (index, Problem { what, remedy, .. }) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{what} ({remedy})")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnsuitableDatabase {}
