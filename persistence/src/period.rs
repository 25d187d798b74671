//! A period of time.

use chrono::{DateTime, Utc};

/// A half-open time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first moment.
    pub from: DateTime<Utc>,
    /// The first moment after the range.
    pub to: DateTime<Utc>,
}
