use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::{
    Direction, MessageRow, Reaction, ReactionSend, Reactor, Revision, RevisionRow, Revisions,
};
use hotline_persistence::{Change, MessageId};
use serde_json::json;

use crate::Refusal;
use crate::tickets::{Author, Command, Context, Ticket};

/// The company reacts to a message of the ticket, or withdraws its reaction; also in a closed ticket. The provider
/// shows one reaction of the company. A reaction is not an answer.
#[derive(Clone, Debug)]
pub struct React {
    /// The message as it is now.
    pub message: MessageRow,
    /// The reaction; `None`: it is withdrawn.
    pub emoji: Option<String>,
    /// Who reacts.
    pub author: Author,
}

impl Command for React {
    /// The message with the reaction.
    type Reply = MessageRow;

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<MessageRow, Refusal> {
        let Revisions { reactions, deleted_at, .. } = self.message.revisions();
        let known = reactions.into_iter().find(|known| known.key == Reaction::OF_COMPANY);
        let is_same =
            known.as_ref().map_or(self.emoji.is_none(), |known| known.emoji == self.emoji && known.error.is_none());
        if is_same {
            return Ok(self.message);
        }
        let is_seen = deleted_at.is_none() && self.message.direction != Direction::Internal;
        let to = self.message.provider_message_id.as_deref().filter(|_| is_seen);
        let to = to.ok_or_else(|| Refusal::invalid("messageId", "must be a message that the contact can see"))?;
        // One message of the provider with several files is several messages here.
        let to = to.split_once('#').map_or(to, |(whole, _)| whole).to_owned();
        let seen = known.and_then(|known| if known.error.is_some() { known.before } else { known.emoji });
        let send = ReactionSend { id: cx.message_id()?, emoji: self.emoji.clone(), to, at: cx.now };
        let row = RevisionRow {
            company_id: ticket.row.company_id,
            ticket_id: ticket.row.id,
            contact_id: ticket.row.contact_id,
            message_id: self.message.id,
            revision: Revision::Reacts { reaction: self.reaction(send.id, seen, cx.now), send },
            at: cx.now,
            noted_at: cx.now,
            source: self.author.source,
            user_id: self.author.user.as_ref().map(|(id, _)| *id),
            user_name: self.author.user.as_ref().map(|(_, name)| name.clone()),
            integration_id: self.author.integration,
        };
        // A merge may have moved the message since it was read.
        let mut message = MessageRow { ticket_id: ticket.row.id, contact_id: ticket.row.contact_id, ..self.message };
        let mut revised = message.revisable();
        if revised.apply(&row).is_some() {
            message.updated_at = Some(cx.now);
        }
        message.revisions = Some(json!(revised.revisions));
        cx.record(Change::Revision(Box::new(row)));
        Ok(message)
    }
}

impl React {
    fn reaction(&self, sent_as: MessageId, before: Option<String>, at: DateTime<Utc>) -> Reaction {
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
