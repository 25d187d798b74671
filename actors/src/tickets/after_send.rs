//! What follows a message once its channel has accepted it.

use hotline_persistence::{QueueId, WrapupTypeId};
use serde::{Deserialize, Serialize};

/// Executed once the channel has accepted the message, in this order: the answer is recorded, the ticket is transferred
/// and closed. The sender requests the transfer and the close; `answers` is determined when the message is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AfterSend {
    /// Whether the message counts as an answer to the contact: the ticket awaited one when the message was created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers: bool,
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
