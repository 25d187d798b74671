//! Finds the contact of a number or of a provider's id, for inbound messages, sends and reports of providers.
//! The tables decide ([`identities`]); the cache only repeats what they have decided.

use std::sync::Arc;
use std::time::Duration;

use hotline_persistence::tables::contacts::identities::{self, Address, IdentityChange, Keys, Profile};
use hotline_persistence::tables::contacts::{ContactByNumber, ContactRef};
use hotline_persistence::tables::events::{act_as, current_author};
use hotline_persistence::{ChannelId, CompanyId, ContactId};
use tokio::sync::oneshot;

use super::Contacts;
use crate::Refusal;
use crate::base::retry::while_unavailable;
use crate::clock::now;
use crate::tickets::Author;

/// Pause before a sender's new keys are saved again after a database outage.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Maximum time that a message waits for its sender's new key to be saved, if another key has identified the sender: a
/// database outage must not delay the message for longer.
const NEW_KEYS_TIME_MAX: Duration = Duration::from_secs(2);

impl Contacts {
    /// The contact with a number, in any spelling: found, or created.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not cached and the database is unavailable.
    pub async fn find_or_create(
        self: &Arc<Self>,
        company: CompanyId,
        new: ContactByNumber<'_>,
    ) -> Result<Arc<ContactRef>, Refusal> {
        let profile = Profile {
            name: new.name.unwrap_or(new.number),
            country: new.country,
            social_username: None,
            origin: Author::API.source.as_str(),
            since: now(),
        };
        self.identify(company, &Keys::of_number(new.number), &profile).await
    }

    /// The contact of these keys: found, or created. A contact that has one of the keys gets the others.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when none is cached and the database is unavailable.
    pub(in crate::services) async fn identify(
        self: &Arc<Self>,
        company: CompanyId,
        keys: &Keys<'_>,
        profile: &Profile<'_>,
    ) -> Result<Arc<ContactRef>, Refusal> {
        let by_number = keys.number.and_then(|number| self.cache.find_by_number(company, number));
        let by_address =
            keys.address.and_then(|address| self.cache.find_by_address(company, address.channel, address.value));
        let cached = match (by_number, by_address) {
            (Some(contact), None) if keys.address.is_none() => return Ok(contact),
            (None, Some(contact)) if keys.number.is_none() => return Ok(contact),
            (Some(contact), Some(other)) if contact.id == other.id => return Ok(contact),
            (by_number, by_address) => by_address.or(by_number),
        };
        let Some(contact) = cached else { return self.identify_in_tables(company, keys, profile).await };
        let identification = self.spawn_identification(company, keys, profile);
        match tokio::time::timeout(NEW_KEYS_TIME_MAX, identification).await {
            Ok(Ok(Err(Refusal::Unavailable(_))) | Err(_)) | Err(_) => {
                tracing::debug!(contact.id = %contact.id, company.id = %company, "a contact's new number or address was not saved in time");
                Ok(contact)
            }
            Ok(Ok(found)) => found,
        }
    }

    /// Finds or creates the contact in a task of its own. After a database outage the task retries even if the caller
    /// no longer waits: the provider may never report the new keys again.
    fn spawn_identification(
        self: &Arc<Self>,
        company: CompanyId,
        keys: &Keys<'_>,
        profile: &Profile<'_>,
    ) -> oneshot::Receiver<Result<Arc<ContactRef>, Refusal>> {
        let (contacts, (sender, receiver)) = (self.clone(), oneshot::channel());
        let number = keys.number.map(str::to_owned);
        let address = keys.address.map(|address| (address.channel, address.value.to_owned(), address.kind));
        let [name, origin] = [profile.name, profile.origin].map(str::to_owned);
        let [country, social_username] = [profile.country, profile.social_username].map(|text| text.map(str::to_owned));
        let since = profile.since;
        self.base.spawn_for(
            company,
            act_as(current_author(), async move {
                let address =
                    address.as_ref().map(|(channel, value, kind)| Address { channel: *channel, value, kind: *kind });
                let keys = Keys { number: number.as_deref(), address };
                let (country, social_username) = (country.as_deref(), social_username.as_deref());
                let profile = Profile { name: &name, country, social_username, origin: &origin, since };
                let outcome = contacts.identify_in_tables(company, &keys, &profile).await;
                let is_unavailable = matches!(outcome, Err(Refusal::Unavailable(_)));
                // The caller may have stopped waiting.
                let _ = sender.send(outcome);
                if is_unavailable && let Ok(_permit) = contacts.late_identities.try_acquire() {
                    let _ =
                        while_unavailable(RETRY_PAUSE, || contacts.identify_in_tables(company, &keys, &profile)).await;
                }
            }),
        );
        receiver
    }

    /// Finds or creates the contact in the tables. Boxed, because the future is large and rarely needed.
    async fn identify_in_tables(
        self: &Arc<Self>,
        company: CompanyId,
        keys: &Keys<'_>,
        profile: &Profile<'_>,
    ) -> Result<Arc<ContactRef>, Refusal> {
        Box::pin(async {
            let lock = self.cache.read_lock(company).await;
            let identified = identities::identify(self.base.db(company), company, keys, profile).await?;
            let contact = self.remember(company, identified.contact);
            self.remember_keys(company, keys, contact.id);
            drop(lock);
            if identified.is_changed {
                let changes = self.changes(company);
                changes.add([contact.id]);
                changes.settle().await;
            }
            Ok(contact)
        })
        .await
    }

    fn remember_keys(&self, company: CompanyId, keys: &Keys<'_>, contact: ContactId) {
        if let Some(number) = keys.number {
            self.cache.remember_number(company, number, contact);
        }
        if let Some(Address { channel, value, kind: _ }) = keys.address {
            self.cache.remember_address(company, channel, value, contact);
        }
    }

    /// Whether there is a contact with this number, in any spelling.
    ///
    /// # Errors
    /// As for [`Contacts::find_by_number`].
    pub async fn is_known_number(&self, company: CompanyId, number: &str) -> Result<bool, Refusal> {
        Ok(self.find_by_number(company, number).await?.is_some())
    }

    /// The contact with this number, in any spelling, if there is one.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not cached and the database is unavailable.
    pub async fn find_by_number(&self, company: CompanyId, number: &str) -> Result<Option<Arc<ContactRef>>, Refusal> {
        if let Some(contact) = self.cache.find_by_number(company, number) {
            return Ok(Some(contact));
        }
        let _lock = self.cache.read_lock(company).await;
        let Some(found) = identities::by_number(self.base.readers(), company, number).await? else { return Ok(None) };
        let contact = self.remember(company, found);
        self.cache.remember_number(company, number, contact.id);
        Ok(Some(contact))
    }

    /// Records a provider's report that the keys of a contact have changed. Opens no ticket.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it cannot be stored now: the provider should retry.
    pub(in crate::services) async fn change_identity(
        self: &Arc<Self>,
        company: CompanyId,
        change: &IdentityChange<'_>,
    ) -> Result<(), Refusal> {
        let Some(contact) = identities::apply_change(self.base.db(company), company, change).await? else {
            return Ok(());
        };
        let changes = self.changes(company);
        changes.add([contact]);
        changes.settle().await;
        Ok(())
    }

    /// Whether a phone channel has an address of the contact, so that it can reach the contact without a number.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when that is not cached and the database is unavailable.
    pub async fn has_address(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
    ) -> Result<bool, Refusal> {
        if self.cache.is_reachable(company, channel, contact) {
            return Ok(true);
        }
        let kind = hotline_persistence::tables::channels::ChannelType::Whatsapp;
        self.look_up_reachable(company, channel, kind, contact).await
    }
}
