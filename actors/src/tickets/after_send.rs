//! What a sender wants to follow a message.

use hotline_persistence::{QueueId, WrapupTypeId};
use serde::{Deserialize, Serialize};

/// What follows once the channel has taken a message: transfer, then close.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSend {
    /// Moves the ticket to this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_id: Option<QueueId>,
    /// Closes the ticket.
    #[serde(default)]
    pub close_ticket: bool,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_type_id: Option<WrapupTypeId>,
    /// In the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrapup_note: Option<String>,
}
