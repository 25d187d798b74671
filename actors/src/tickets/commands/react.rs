use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::{
    Direction, MessageRow, Reaction, ReactionSend, Reactor, Revision, RevisionRow, Revisions,
};
use hotline_persistence::{Change, MessageId};
use serde_json::json;

use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// The company reacts to a message of the ticket, which may be closed, or withdraws its reaction. A message has one
/// reaction of the company, which its users share. A reaction does not count as an answer to the contact.
#[derive(Clone, Debug)]
pub struct React {
    /// The message as it is now.
    pub message: MessageRow,
    /// `None`: the reaction is withdrawn.
    pub emoji: Option<String>,
    /// Who reacts.
    pub author: Author,
}

impl Command for React {
    /// The message with the reaction.
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        let Revisions { reactions, deleted_at, .. } = self.message.revisions();
        let current = reactions.into_iter().find(|reaction| reaction.key == Reaction::OF_COMPANY);
        let is_unchanged = current
            .as_ref()
            .map_or(self.emoji.is_none(), |current| current.emoji == self.emoji && current.error.is_none());
        if is_unchanged {
            return Ok(self.message);
        }
        let to = self.provider_id(deleted_at.is_some())?;
        // The contact has not seen a reaction that failed, but still sees the one before it.
        let seen_emoji =
            current.and_then(|current| if current.error.is_some() { current.before } else { current.emoji });
        let send = ReactionSend { id: cx.new_message_id()?, emoji: self.emoji.clone(), to, at: cx.now };
        let row = RevisionRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            contact_id: ticket.row.contact_id,
            message_id: self.message.id,
            revision: Revision::ReactionToSend { reaction: self.new_reaction(send.id, seen_emoji, cx.now), send },
            at: cx.now,
            noted_at: cx.now,
            source: self.author.source,
            user_id: self.author.user.as_ref().map(|(id, _)| *id),
            user_name: self.author.user.as_ref().map(|(_, name)| name.clone()),
            integration_id: self.author.integration,
        };
        // A merge may have moved the message since it was read.
        let mut message = MessageRow { ticket_id: ticket.row.id, contact_id: ticket.row.contact_id, ..self.message };
        let mut revisable = message.revisable();
        if revisable.apply(&row).is_some() {
            message.updated_at = Some(cx.now);
        }
        message.revisions = Some(json!(revisable.revisions));
        cx.record(Change::Revision(Box::new(row)));
        Ok(message)
    }
}

impl React {
    /// The provider's id of the message, if the contact can see it.
    fn provider_id(&self, is_deleted: bool) -> Result<String, Refusal> {
        let is_visible = !is_deleted && self.message.direction != Direction::Internal;
        let message_id = self.message.provider_message_id.as_deref().filter(|_| is_visible);
        let message_id =
            message_id.ok_or_else(|| Refusal::invalid("messageId", "must be a message that the contact can see"))?;
        // A provider's message with several files is several messages here, with `#` and a number after its id.
        Ok(message_id.split_once('#').map_or(message_id, |(provider_id, _)| provider_id).to_owned())
    }

    fn new_reaction(&self, sent_as: MessageId, before: Option<String>, at: DateTime<Utc>) -> Reaction {
        let (user_id, user_name) = self.author.user.clone().unzip();
        Reaction {
            key: Reaction::OF_COMPANY.to_owned(),
            by: Reactor::User,
            emoji: self.emoji.clone(),
            name: None,
            user_id,
            user_name,
            integration_id: self.author.integration,
            error: None,
            sent_as: Some(sent_as),
            before,
            at,
        }
    }
}
