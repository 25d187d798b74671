//! The events of a sender.

use chrono::{DateTime, Utc};
use hotline_persistence::MessageId;
use hotline_persistence::journal::Seq;
use hotline_persistence::tables::messages::{MessageError, OutboxEntry, UnsendableMessage};

use super::attempt::AttemptOutcome;
use super::outgoing::Outgoing;
use crate::channels::WithdrawalVersion;

/// An event that a sender waited for. `seq` is a place in the log at or after the entry that records the event, once
/// that entry is durable; `None`: the entry could not be recorded.
pub(super) enum Event {
    /// An attempt has ended; it used this version of the channel.
    Attempted { outgoing: Outgoing, channel_version: DateTime<Utc>, outcome: AttemptOutcome },
    /// It was recorded that a message is in doubt. `seq` is also `None` if that had been recorded before.
    DoubtRecorded { outgoing: Outgoing, doubt: Doubt, seq: Option<Seq> },
    /// The wait for a status that names a message in doubt has ended. `seq` is that of the doubt; without
    /// `provider_message_id`, no status has named the message.
    DoubtEnded { outgoing: Outgoing, doubt: Doubt, seq: Option<Seq>, provider_message_id: Option<String> },
    /// The outcome of a message was recorded.
    Recorded { outgoing: Outgoing, seq: Option<Seq> },
    /// Up to `limit` entries were read from the tables; `None`: the read failed.
    Read { entries: Option<Vec<OutboxEntry>>, limit: usize },
    /// The failure of a message that can never be sent was recorded.
    FailureRecorded { id: MessageId, seq: Option<Seq> },
    /// The tables were searched for up to `limit` withdrawn messages of campaigns; `None`: the search failed. `version`
    /// is that of the company's withdrawals before the search.
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

/// Why it is unknown whether a message was sent.
pub(super) struct Doubt {
    /// What happened.
    pub(super) reason: String,
    /// Whether only its file is in doubt, because its text is sent separately.
    pub(super) is_file_only: bool,
    /// Whether a status may name the message by our id.
    pub(super) may_be_named: bool,
    /// The version of the channel that sent it.
    pub(super) channel_version: DateTime<Utc>,
}
