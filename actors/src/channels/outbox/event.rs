//! The events of a sender.

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{MessageError, OutboxEntry, UnsendableMessage};

use super::attempt::AttemptOutcome;
use super::outgoing::Outgoing;
use crate::channels::WithdrawalVersion;

/// An event that a sender waited for.
pub(super) enum Event {
    /// An attempt with this version of the channel has ended.
    Attempted { outgoing: Outgoing, version: DateTime<Utc>, outcome: AttemptOutcome },
    /// The doubt whether a message has left is durable, at or before this place in the log; none: it cannot be
    /// recorded, or was recorded before.
    DoubtRecorded { outgoing: Outgoing, doubt: Doubt, seq: Option<Seq> },
    /// The wait for a status of a message in doubt has ended; with the provider's id if a status has named the message.
    DoubtEnded { outgoing: Outgoing, doubt: Doubt, seq: Option<Seq>, provider_message_id: Option<String> },
    /// The outcome of a message is durable, at or before this place in the log; none: it cannot be recorded.
    Recorded { outgoing: Outgoing, seq: Option<Seq> },
    /// Up to `limit` entries were read from the tables; none: the read failed.
    Read { entries: Option<Vec<OutboxEntry>>, limit: usize },
    /// The failure of a message is durable, at or before this place in the log; none: it cannot be recorded.
    FailureRecorded { id: MessageId, seq: Option<Seq> },
    /// Up to `limit` messages of campaigns were found that are withdrawn at this version of the company's withdrawals;
    /// none: the tables could not be read.
    WithdrawnFound {
        version: WithdrawalVersion,
        withdrawn: Option<Vec<(UnsendableMessage, MessageError)>>,
        limit: usize,
    },
    /// The channel's error status was written.
    ErrorSaved,
    /// The directory has changed, perhaps this channel with it.
    DirectoryChanged,
}

/// Why it is unknown whether a message has left.
pub(super) struct Doubt {
    /// What happened.
    pub(super) reason: String,
    /// Whether only its file is in doubt, because its text is sent separately.
    pub(super) is_part: bool,
    /// Whether a status may name the message by our id.
    pub(super) may_be_named: bool,
    /// The version of the channel that sent it.
    pub(super) version: DateTime<Utc>,
}
