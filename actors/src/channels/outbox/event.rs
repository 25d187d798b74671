//! The events of a sender.

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::Waiting;

use super::attempt::Outcome;
use super::outgoing::Outgoing;

/// An event that a sender waited for.
pub(super) enum Event {
    Attempted {
        what: Outgoing,
        version: DateTime<Utc>,
        outcome: Outcome,
    },
    /// The outcome of a message is durable, at or before this place in the log; none: it cannot be recorded.
    Noted {
        what: Outgoing,
        seq: Option<Seq>,
    },
    /// Messages read from the tables, and the number requested; none: they could not be read.
    Read {
        read: Option<Vec<Waiting>>,
        asked: usize,
    },
    /// The failure of a message is durable, at or before this place in the log; none: it cannot be recorded.
    Refused {
        id: MessageId,
        seq: Option<Seq>,
    },
    /// The channel's error status was written.
    Marked,
    /// The directory has changed, perhaps this channel with it.
    DirectoryChanged,
}
