//! What a sender waits for.

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::Waiting;

use super::attempt::Outcome;
use super::outgoing::Outgoing;

/// What a sender waited for.
pub(super) enum Event {
    Attempted {
        what: Outgoing,
        version: DateTime<Utc>,
        outcome: Outcome,
    },
    /// It is durable what became of a message, not after this place in the log; none: it cannot be made so.
    Noted {
        what: Outgoing,
        seq: Option<Seq>,
    },
    /// Read from the tables, of as many as were asked for; none: they could not be read.
    Read {
        read: Option<Vec<Waiting>>,
        asked: usize,
    },
    /// It is durable that a message has failed, not after this place in the log; none: it cannot be made so.
    Refused {
        id: MessageId,
        seq: Option<Seq>,
    },
    /// The channel is known to be in error.
    Marked,
    /// The channel may have become another.
    DirectoryChanged,
}
