//! A stretch of time.

use chrono::{DateTime, Utc};

/// From a moment, up to but without another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first moment.
    pub from: DateTime<Utc>,
    /// The first moment that does not belong to it.
    pub to: DateTime<Utc>,
}
