//! The company's reactions on their way to a provider. Each is sent like a message, in the order of its conversation,
//! but is stored with the message that it belongs to.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Direction, MessageRow, MessageStatus, MessageType};
use crate::tables::source::Source;
use crate::{ChannelId, CompanyId, ContactId, MessageId, TicketId};

/// A reaction that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionSend {
    /// The id of the message that is sent for the reaction, by which the outcome is recorded.
    pub id: MessageId,
    /// `None`: the reaction is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emoji: Option<String>,
    /// The provider's id of the message that it belongs to.
    pub to: String,
    pub at: DateTime<Utc>,
}

/// The message that a reaction belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionTarget {
    pub id: MessageId,
    /// The provider's id of the message.
    pub to: String,
}

impl ReactionTarget {
    /// Data sent with a reaction to this message, which the provider returns with each of the reaction's statuses.
    pub fn callback_data(&self, reaction: MessageId) -> String {
        format!("{reaction} reaction {}", self.id)
    }

    /// The ids of a reaction and of its message, from [`Self::callback_data`]; `None` for other data.
    pub fn parse_callback_data(data: &str) -> Option<(MessageId, MessageId)> {
        let (reaction, target) = data.split_once(" reaction ")?;
        Some((MessageId::new(reaction.parse().ok()?), MessageId::new(target.parse().ok()?)))
    }
}

impl ReactionSend {
    /// The message that the outbox sends for the reaction. The message itself is never stored.
    pub fn into_message(
        self,
        company: CompanyId,
        (channel, contact, ticket): (ChannelId, ContactId, TicketId),
        target: MessageId,
    ) -> MessageRow {
        MessageRow {
            company_id: company,
            id: self.id,
            job_id: None,
            ticket_id: ticket,
            contact_id: contact,
            channel_id: channel,
            direction: Direction::Outbound,
            kind: MessageType::System,
            body: self.emoji,
            media: None,
            template: None,
            interactive: None,
            content: Some(json!({"reaction": ReactionTarget { id: target, to: self.to }})),
            revisions: None,
            attempts: None,
            quoted_message_id: None,
            status: MessageStatus::Queued,
            error: None,
            user_id: None,
            user_name: None,
            integration_id: None,
            source: Source::Api,
            session_id: None,
            client_id: None,
            after_send: None,
            provider_message_id: None,
            created_at: self.at,
            sent_at: None,
            delivered_at: None,
            read_at: None,
            updated_at: None,
        }
    }
}

impl MessageRow {
    /// The message that this one reacts to, if it is a reaction on its way to the provider.
    pub fn reacts_to(&self) -> Option<ReactionTarget> {
        ReactionTarget::deserialize(self.content.as_ref()?.get("reaction")?).ok()
    }
}
