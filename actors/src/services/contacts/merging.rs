//! What a merge requires of contacts: that nothing begins or changes for them meanwhile, and that every copy is
//! updated.

use hotline_persistence::tables::merges::{self, MergedNoun};
use hotline_persistence::{CompanyId, ContactId};

use super::Contacts;
use super::changes::ChangeOutcome;
use crate::Refusal;
use crate::contacts::ContactMark;

impl Contacts {
    /// Marks contacts, like those that are being deleted. They must be in the order of their ids, so that two merges of
    /// the same contacts do not wait for each other.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when an earlier mark of a contact is not removed in time.
    pub(crate) async fn mark_all(
        &self,
        company: CompanyId,
        contacts: &[ContactId],
    ) -> Result<Vec<ContactMark>, Refusal> {
        let mut guards = Vec::with_capacity(contacts.len());
        for contact in contacts {
            guards.push(self.cache.marks.mark((company, *contact)).await?);
        }
        Ok(guards)
    }

    /// Ends the actors of the tickets of marked contacts: the next caller loads each ticket from the tables.
    pub(crate) async fn end_conversations(&self, company: CompanyId, contacts: &[ContactId]) {
        // Under the lock, every earlier reader has registered its actor.
        let _lock = self.cache.write_lock(company).await;
        self.end_tickets(company, contacts.to_vec()).await;
    }

    /// Updates every copy of marked contacts from the tables, which show whether the contacts were merged.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable.
    pub(crate) async fn settle_merge(&self, company: CompanyId, contacts: &[ContactId]) -> Result<(), Refusal> {
        self.settle(company, contacts, ChangeOutcome::Unclear).await?;
        self.end_conversations(company, contacts).await;
        contacts.iter().for_each(|contact| self.cache.forget_last_inbound(company, *contact));
        // If two recipients of a campaign were merged, only one of them remains.
        self.in_transit.withdrawals.invalidate(company);
        Ok(())
    }

    /// The contact that this one was merged into, or none.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the database is unavailable.
    pub async fn successor(&self, company: CompanyId, id: ContactId) -> Result<Option<ContactId>, Refusal> {
        let found = merges::successor(self.base.db(company), company, MergedNoun::Contact, id.0).await?;
        Ok(found.map(ContactId::new))
    }
}
