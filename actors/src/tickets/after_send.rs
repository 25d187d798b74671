//! Follow-up actions that a sender requests with a message.

use hotline_persistence::{QueueId, WrapupTypeId};
use serde::{Deserialize, Serialize};

/// Executed once the channel has accepted the message: transfer, then close.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSend {
    /// Moves the ticket to this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    /// Closes the ticket.
    #[serde(default)]
    pub close_ticket: bool,
    /// The wrap-up type of the closed ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_type_id: Option<WrapupTypeId>,
    /// The wrap-up note, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_note: Option<String>,
}
