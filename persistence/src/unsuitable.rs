//! The problems for which Hotline cannot use a database, each with its remedy.

use std::fmt;

/// What is wrong with a database, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) remedy: String,
    /// Whether the problem may end without the operator's help, as in a failover.
    pub(crate) is_passing: bool,
}

impl Problem {
    /// A problem that only an operator corrects.
    pub(crate) fn lasting(what: String, remedy: String) -> Self {
        Self { what, remedy, is_passing: false }
    }
}

/// A database that Hotline cannot work with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsuitable {
    /// The server's address.
    address: String,
    problems: Vec<Problem>,
}

impl Unsuitable {
    pub(crate) fn new(address: String, problems: Vec<Problem>) -> Self {
        Self { address, problems }
    }

    /// Whether the database may become usable without the operator's help: the server is a standby or read-only now.
    pub fn is_passing(&self) -> bool {
        self.problems.iter().all(|problem| problem.is_passing)
    }
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hotline cannot use PostgreSQL at {}: ", self.address)?;
        for (index, Problem { what, remedy, .. }) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{what} ({remedy})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsuitable {}
