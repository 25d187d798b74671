//! Limits by key, such as a company, a channel or an address. [`KeyedPermits`] limits how many things run or are open
//! at a time, and [`KeyedBudget`] the bytes in use. Both have a total and a share for each key, are released by guards,
//! and store only keys in use, so their memory is bounded. The caller decides what happens at a limit.

mod budget;
mod permits;

pub use budget::{BudgetLimits, KeyedBudget, ReservedBytes};
pub use permits::{KeyedPermit, KeyedPermits, PermitLimits};

/// Why a permit was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Too many requests with this key, such as a company, a channel or an address, are waiting already.
    #[error("too many requests are already waiting")]
    TooMany,
    /// No permit was free in time.
    #[error("no capacity became free in time")]
    TooLong,
    /// The service is stopping.
    #[error("the service is stopping")]
    Closed,
}

impl From<Denied> for sqlx::Error {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::TooMany => Self::Io(std::io::Error::other(denied)),
            Denied::TooLong => Self::PoolTimedOut,
            Denied::Closed => Self::PoolClosed,
        }
    }
}

impl From<Denied> for crate::Error {
    fn from(denied: Denied) -> Self {
        Self::Unavailable(denied.to_string())
    }
}
