use std::sync::Arc;

use chrono::{DateTime, Utc};
use hotline_persistence::tables::messages::{Direction, MessageRow, Reactor, Revision, RevisionRow};
use hotline_persistence::tables::source::Source;
use hotline_persistence::{Change, CompanyId, ContactId, MessageId, TicketId};

use crate::Refusal;
use crate::tickets::{Author, Command, Context, LastMessage, Ticket};

/// A message of the ticket was edited or deleted, or someone has reacted to it. Also accepted in a closed ticket. It
/// does not open or assign the ticket or count as a message, and the contact does not wait because of it.
#[derive(Clone, Debug)]
pub struct Revise {
    /// Which message of this ticket.
    pub message: MessageId,
    /// What happened to it.
    pub revision: Revision,
    /// When it happened, by the provider's clock.
    pub at: DateTime<Utc>,
    /// Who did it.
    pub author: Author,
}

impl Command for Revise {
    type Reply = ();

    fn decide(self, ticket: &mut Ticket, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let is_last = ticket.row.last_message_id == Some(self.message);
        if let (true, Some(last)) = (is_last, &ticket.last_message) {
            let body = match &self.revision {
                Revision::Edited { body, .. } => Some(body.as_deref()),
                Revision::Deleted { .. } => Some(None),
                Revision::Reacted(_) | Revision::ReactionToSend { .. } | Revision::ReactionSent { .. } => None,
            };
            if let Some(body) = body {
                ticket.last_message =
                    Some(Arc::new(LastMessage { body: body.map(Box::from), ..LastMessage::clone(last) }));
            }
        }
        let (company, id, contact) = (ticket.row.company_id, ticket.row.id, ticket.row.contact_id);
        cx.record(Change::Revision(Box::new(self.into_row(company, id, contact, cx.now))));
        Ok(())
    }
}

impl Revise {
    /// Whether this revision changes the stored revisions of the message. The withdrawal of a reaction changes them
    /// even if it arrives before the reaction, so that the reaction is not shown later.
    pub fn has_effect_on(&self, message: &MessageRow) -> bool {
        let row = self.clone().into_row(message.company_id, message.ticket_id, message.contact_id, self.at);
        let before = message.revisable();
        let mut revised = before.clone();
        // `apply` returns only changes to fields that the API shows, so the stored revisions are compared instead.
        let _ = revised.apply(&row);
        revised != before
    }

    fn into_row(self, company: CompanyId, ticket: TicketId, contact: ContactId, now: DateTime<Utc>) -> RevisionRow {
        let (user_id, user_name) = self.author.user.unzip();
        RevisionRow {
            company_id: company,
            ticket_id: ticket,
            contact_id: contact,
            message_id: self.message,
            revision: self.revision,
            at: self.at.min(now),
            noted_at: now,
            source: self.author.source,
            user_id,
            user_name,
            integration_id: self.author.integration,
        }
    }

    /// A revision by the contact, or by the company's people in another app.
    pub fn reported(message: MessageId, revision: Revision, at: DateTime<Utc>) -> Self {
        let is_by_company = match &revision {
            Revision::Edited { of, .. } | Revision::Deleted { of } => *of == Direction::Outbound,
            Revision::Reacted(reaction) => reaction.by == Reactor::User,
            Revision::ReactionToSend { .. } | Revision::ReactionSent { .. } => true,
        };
        let source = if is_by_company { Source::User } else { Author::CONTACT.source };
        Self { message, revision, at, author: Author { source, ..Author::CONTACT } }
    }
}
