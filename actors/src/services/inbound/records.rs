//! Referrals and opt-outs of contacts that a provider reports without a message.

use hotline_persistence::tables::contacts::{OptOut, Referral, ReferralRow};
use hotline_persistence::{Change, ChannelId, CompanyId, ContactId};

use super::{Inbound, Sender};
use crate::Refusal;
use crate::base::retry::{no_other_conflict, on_conflict};
use crate::clock::now;

impl Inbound {
    /// Records the referral of a contact who came through an advertisement or link without writing a message then. Does
    /// nothing for someone who never wrote: the provider repeats the referral with their first message.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn record_referral(
        &self,
        company: CompanyId,
        channel: ChannelId,
        address: &str,
        referral: Referral,
    ) -> Result<(), Refusal> {
        let attempt = || async {
            let Some(contact) = self.find_by_address(company, channel, address).await? else { return Ok(()) };
            let referral = referral.clone();
            let row = ReferralRow { company_id: company, contact_id: contact, referral, at: now() };
            self.append_for_contact(company, contact, Change::Referral(Box::new(row))).await
        };
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }

    /// Appends a change to a contact in an entry of its own. Refused if the contact was or is being deleted or merged:
    /// the caller then looks it up again.
    async fn append_for_contact(&self, company: CompanyId, contact: ContactId, change: Change) -> Result<(), Refusal> {
        let (cache, key) = (self.contacts.cache(), (company, contact));
        let version = cache.version(key);
        if self.contacts.get(company, contact).await?.is_none() {
            // The contact was deleted or merged since it was found: the next look-up finds the remaining one, if any.
            cache.forget(company, contact);
            return Err(Refusal::Retired);
        }
        let (_, durable) = cache.marks.unless_marked(key, || {
            if cache.version(key) != version {
                return Err(Refusal::ContactChanging(contact));
            }
            Ok(self.base.store.log.reserve(company)?.append(vec![change])?)
        })?;
        Ok(durable.wait().await?)
    }

    /// Opts a contact out of campaigns, because they stopped the company's marketing messages at the provider. A sender
    /// without a contact needs no opt-out.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be recorded now: the provider should retry.
    pub async fn record_opt_out(&self, company: CompanyId, channel: ChannelId, from: &Sender) -> Result<(), Refusal> {
        let attempt = || async {
            let Some(contact_id) = self.find_contact(company, channel, from).await? else { return Ok(()) };
            // Not the provider's time: it may report late, and a list filtered by `updatedFrom` would miss the change.
            let row = OptOut { company_id: company, contact_id, at: now() };
            self.append_for_contact(company, contact_id, Change::OptOut(row)).await
        };
        on_conflict(self.contacts.cache(), company, attempt, no_other_conflict).await
    }
}
