//! Merges of tickets, and of contacts with their tickets: a command for a ticket that was merged into another is
//! executed on the other.

use hotline_persistence::tables::merges::{self, MergedNoun};
use hotline_persistence::tables::tickets::OpenTicketOf;
use hotline_persistence::{ChannelId, CompanyId, ContactId, TicketId};

use super::tickets::Tickets;
use crate::Refusal;
use crate::conversations::Slot;
use crate::tickets::{Command, Execute};

impl Tickets {
    /// Executes a command that follows from an earlier one, such as a message's status. If the ticket was merged into
    /// another since, the command is executed on the other.
    ///
    /// # Errors
    /// As [`Tickets::ask`].
    pub async fn ask_following<C: Command>(
        &self,
        company: CompanyId,
        id: TicketId,
        execute: impl Into<Execute<C>>,
    ) -> Result<C::Reply, Refusal> {
        let execute = execute.into();
        match self.ask_borrowed(company, id, &execute).await {
            Err(Refusal::NotFound) => match Box::pin(self.successor(company, id)).await? {
                Some(successor) => self.ask_borrowed(company, successor, &execute).await,
                None => Err(Refusal::NotFound),
            },
            outcome => outcome,
        }
    }

    /// Why the open ticket of a contact was not found: [`Refusal::ContactChanging`] while the contact is being merged
    /// or deleted, [`Refusal::Retired`] if the contact's slot has changed since.
    pub(crate) async fn explain_missing_ticket(
        &self,
        (company, channel, contact): (CompanyId, ChannelId, ContactId),
        ticket: TicketId,
    ) -> Refusal {
        if self.contacts.cache().marks.is_marked((company, contact)) {
            return Refusal::ContactChanging(contact);
        }
        match self.slot(company, channel, contact).await {
            Ok(Some(Slot::Open(open))) if open == ticket => Refusal::NotFound,
            Ok(_) => Refusal::Retired,
            Err(refusal) => refusal,
        }
    }

    /// Records that a contact was merged into another, for messages that are on their way to the former.
    pub(crate) fn record_merged(&self, company: CompanyId, from: ContactId, into: ContactId) {
        self.scope.inboxes.record_merge(company, from, into);
        self.scope.outboxes.notify_of_merge(company, from, into);
    }

    /// The ticket that this one was merged into, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable.
    pub async fn successor(&self, company: CompanyId, id: TicketId) -> Result<Option<TicketId>, Refusal> {
        let found = merges::successor(self.base.db(company), company, MergedNoun::Ticket, id.0).await?;
        Ok(found.map(TicketId::new))
    }

    /// Loads the conversations of these channels, so that they can be corrected after a merge.
    pub(crate) async fn load_conversations(&self, company: CompanyId, channels: &[ChannelId]) -> Result<(), Refusal> {
        for channel in channels {
            self.conversations(company, *channel).await?;
        }
        Ok(())
    }

    /// Replaces in memory the open tickets of contacts that are being merged: `before` and `after` are the open tickets
    /// before and after the merge.
    pub(crate) fn replace_open_tickets(
        &self,
        company: CompanyId,
        contacts: &[ContactId],
        before: &[OpenTicketOf],
        after: &[OpenTicketOf],
    ) {
        for entry in self.conversations.iter().filter(|entry| entry.key().0 == company) {
            let Some(conversations) = entry.value().get() else { continue };
            for contact in contacts {
                let is_in_slot = |open: &&OpenTicketOf| (open.channel_id, open.contact_id) == (entry.key().1, *contact);
                conversations.set(*contact, after.iter().find(is_in_slot).map(|open| open.id));
            }
        }
        let agent_of = |ticket: TicketId| after.iter().find(|open| open.id == ticket).and_then(|open| open.user_id);
        for open in before.iter().chain(after) {
            self.scope.assigners.record(company, open.id, agent_of(open.id));
        }
    }
}
