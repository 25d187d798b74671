//! The figures of reports: counted per quarter of an hour, as events happen.
//!
//! Only the persister writes them (`counts.rs`), together with the rows they are derived from; `rebuild` recounts them.

mod counts;
pub mod desk;
mod read;
mod rebuild;
pub mod sales;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};

pub(crate) use counts::{Counts, MessageCell, MessageCounts, TicketCell, TicketCounts, WrapupCell};
pub use read::{Figures, MessageFigures, TicketFigures, WrapupFigures, by_day, by_key, labels, total, wrapups};
pub use rebuild::{Difference, rebuild};

use super::text_enum;
use crate::Period;

text_enum! {
    /// What the figures of tickets and messages are grouped by.
    Dimension {
        /// The whole company, without grouping.
        Company = "company",
        Queue = "queue",
        Channel = "channel",
        User = "user",
        /// The type of a message.
        Type = "type",
        /// Only for the names of deleted wrap-up types: the figures of wrap-up types have their own table.
        Wrapup = "wrapup",
    }
}

text_enum! {
    /// What figures of tickets are grouped by.
    TicketGrouping { Day = "day", Queue = "queue", Channel = "channel", User = "user" }
}

text_enum! {
    /// What figures of messages are grouped by.
    MessageGrouping { Day = "day", Channel = "channel", User = "user", Type = "type" }
}

/// The finest time resolution of the figures: in every time zone, midnight falls on a quarter of an hour in UTC.
pub const QUARTER_HOUR: TimeDelta = TimeDelta::minutes(15);

/// The period of whole quarters of an hour that covers the time from `from` to before `to`.
pub fn widen_to_quarter_hours(from: DateTime<Utc>, to: DateTime<Utc>) -> Period {
    let (begin, end) = (start_of_quarter_hour(from), start_of_quarter_hour(to));
    Period { from: begin, to: if end < to { end + QUARTER_HOUR } else { end } }
}

/// The start of the quarter of an hour that contains a time.
pub fn start_of_quarter_hour(at: DateTime<Utc>) -> DateTime<Utc> {
    // Only times centuries away cannot be rounded.
    at.duration_trunc(QUARTER_HOUR).unwrap_or(at)
}

/// The start of the UTC day that contains a time.
fn start_of_day(at: DateTime<Utc>) -> DateTime<Utc> {
    at.duration_trunc(TimeDelta::days(1)).unwrap_or(at)
}
