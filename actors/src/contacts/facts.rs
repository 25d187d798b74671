//! When a contact last wrote: it decides what a phone channel accepts.

use chrono::{DateTime, Utc};

/// When a contact last wrote on a channel, as far as known. Better knowledge compares greater, so `max` merges two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// Not looked up.
    #[default]
    Unknown,
    /// The contact never wrote.
    Never,
    /// The contact last wrote at this time.
    At(DateTime<Utc>),
}

impl From<Option<DateTime<Utc>>> for Heard {
    fn from(found: Option<DateTime<Utc>>) -> Self {
        found.map_or(Self::Never, Self::At)
    }
}
