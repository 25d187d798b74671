//! Contacts: finds and creates them, and loads the data that their conversations need.

mod changes;
mod identities;
mod merging;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hotline_persistence::tables::channels::ChannelType;
use hotline_persistence::tables::contacts::{self, ContactRef, ContactRow, Visitor};
use hotline_persistence::tables::custom_fields::CustomFieldType;
use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::{messages, webchat_sessions};
use hotline_persistence::{ChannelId, CompanyId, ContactId};
use tokio::sync::Semaphore;

pub use changes::ContactChanges;

use crate::Refusal;
use crate::base::Base;
use crate::channels::InTransit;
use crate::contacts::{ContactCache, ContactFacts, RequiredFacts};
use crate::ticket_actor::TicketScope;
use crate::tickets::{Author, LastInbound, Open, Send, default_queue};
use crate::variables::{ContactValues, variable_names};

/// How long the opening of a ticket waits for the contact's values of variables: a database outage must not delay it.
const VALUES_TIME_MAX: Duration = Duration::from_secs(2);

/// Maximum contacts whose new numbers or addresses wait for the database, a few KiB each. Those of others are saved
/// with their next message.
const LATE_IDENTITIES_MAX: usize = 10_000;

/// Access to all contacts.
pub struct Contacts {
    base: Arc<Base>,
    cache: Arc<ContactCache>,
    /// The tickets, which hold copies of contacts.
    tickets: Arc<TicketScope>,
    /// The campaign messages in transit to them.
    in_transit: Arc<InTransit>,
    /// Permits for [`LATE_IDENTITIES_MAX`].
    late_identities: Arc<Semaphore>,
}

impl Contacts {
    pub(crate) fn new(
        base: Arc<Base>,
        cache: Arc<ContactCache>,
        tickets: Arc<TicketScope>,
        in_transit: Arc<InTransit>,
    ) -> Self {
        Self { base, cache, tickets, in_transit, late_identities: Arc::new(Semaphore::new(LATE_IDENTITIES_MAX)) }
    }

    /// The contacts in memory.
    pub(crate) fn cache(&self) -> &ContactCache {
        &self.cache
    }

    /// Drops the cached contacts of a company.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { base: _, cache, tickets: _, in_transit: _, late_identities: _ } = self;
        cache.forget_company(company);
    }

    /// The contact with this id, if it exists.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when it is not cached and the database is unavailable.
    pub async fn get(&self, company: CompanyId, id: ContactId) -> Result<Option<Arc<ContactRef>>, Refusal> {
        if let Some(contact) = self.cache.get(company, id) {
            return Ok(Some(contact));
        }
        // Boxed, because the future is large and rarely needed.
        let read = async {
            let _lock = self.cache.read_lock(company).await;
            let found = contacts::find_ref(self.base.readers(), company, id).await?;
            Ok(found.map(|contact| self.remember(company, contact)))
        };
        Box::pin(read).await
    }

    /// Caches contacts that will soon be written to. Returns those that were not cached before.
    pub(crate) async fn prefetch(&self, company: CompanyId, ids: &[ContactId]) -> Result<Vec<ContactId>, Refusal> {
        let missing: Vec<ContactId> = ids.iter().copied().filter(|id| self.cache.get(company, *id).is_none()).collect();
        let _lock = self.cache.read_lock(company).await;
        for contact in contacts::find_refs(self.base.db(company), company, &missing, false).await? {
            self.remember(company, contact);
        }
        Ok(missing)
    }

    /// Drops a contact that was cached by [`Contacts::prefetch`].
    pub(crate) fn evict(&self, company: CompanyId, id: ContactId) {
        self.cache.forget(company, id);
    }

    pub(super) fn remember(&self, company: CompanyId, contact: ContactRef) -> Arc<ContactRef> {
        let contact = Arc::new(contact);
        self.cache.remember(company, &contact);
        contact
    }

    /// Fills empty fields of a contact with the visitor's details.
    pub async fn fill(
        self: &Arc<Self>,
        company: CompanyId,
        contact: &ContactRow,
        visitor: &Visitor,
    ) -> Result<(), Refusal> {
        if !visitor.adds_to(contact) {
            return Ok(());
        }
        let changes = self.changes(company);
        changes.add([contact.id]);
        contacts::fill_empty_fields(self.base.db(company), company, contact.id, visitor).await?;
        changes.settle().await;
        Ok(())
    }

    /// The contact's values of variables. A deleted contact has none; the send itself is refused later.
    pub async fn values(&self, company: CompanyId, id: ContactId) -> Result<ContactValues, Refusal> {
        let found = contacts::find(self.base.db(company), company, id).await?;
        let Some(contact) = found else { return Ok(ContactValues::default()) };
        let custom = contact.custom_fields.0.into_iter().filter_map(|field| {
            let is_list = field.kind.as_deref() == Some(CustomFieldType::Multiselect.as_str());
            Some((field.key?, if is_list { join_options(field.value) } else { field.value }))
        });
        Ok(ContactValues { email: contact.email, custom: custom.collect() })
    }

    /// The greeting for a contact who opens a ticket, if the queue has one.
    pub(crate) async fn greeting(&self, organization: &Organization, open: &Open) -> Option<Send> {
        let channel = organization.channels.get(&open.channel).filter(|_| open.author == Author::CONTACT)?;
        let queue = organization.queues.get(&open.queue.or(default_queue(organization, channel))?)?;
        let text = queue.row.greeting.as_deref().filter(|text| !text.trim().is_empty())?;
        let mut greeting = Send::text(text, Author::AUTOMATION);
        if variable_names(text).any(ContactValues::may_include) {
            // Without the database the greeting is sent with these variables empty.
            let values = tokio::time::timeout(VALUES_TIME_MAX, self.values(open.company, open.contact.id)).await;
            greeting.facts.values = values.ok().and_then(Result::ok).unwrap_or_default();
        }
        Some(greeting)
    }

    /// Adds the missing facts of a contact from the tables; all but the values of variables are then cached.
    pub(crate) async fn look_up_facts(
        &self,
        company: CompanyId,
        (channel, kind): (ChannelId, ChannelType),
        contact: ContactId,
        missing: RequiredFacts,
        facts: &mut ContactFacts,
    ) -> Result<(), Refusal> {
        if missing.reachable {
            facts.reachable = self.look_up_reachable(company, channel, kind, contact).await?;
        }
        if missing.last_inbound {
            let found = self.look_up_last_inbound(company, channel, &[contact]).await?;
            facts.last_inbound = found.first().copied().unwrap_or_default();
        }
        if missing.values {
            facts.values = self.values(company, contact).await?;
        }
        Ok(())
    }

    /// When contacts last wrote on a channel, in the order of `contacts`. Makes one query, and caches the results.
    pub(crate) async fn look_up_last_inbound(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contacts: &[ContactId],
    ) -> Result<Vec<LastInbound>, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let found: HashMap<_, _> =
            messages::last_inbound_at(db, company, channel, contacts).await?.into_iter().collect();
        let remember = |contact: &ContactId| {
            let last_inbound = found.get(contact).copied().flatten().into();
            self.cache.remember_last_inbound(company, channel, *contact, last_inbound);
            last_inbound
        };
        Ok(contacts.iter().map(remember).collect())
    }

    /// Whether a channel reaches a contact without a number: on a webchat if they have had a session, on a phone
    /// channel if its provider has an id of theirs, elsewhere if they have written.
    pub(super) async fn look_up_reachable(
        &self,
        company: CompanyId,
        channel: ChannelId,
        kind: ChannelType,
        contact: ContactId,
    ) -> Result<bool, Refusal> {
        let db = self.base.reads().tables(company).await?;
        let reachable = match kind {
            ChannelType::Webchat => webchat_sessions::exists(db, company, channel, contact).await?,
            ChannelType::Whatsapp => contacts::address_of(db, company, channel, contact).await?.is_some(),
            ChannelType::Messenger | ChannelType::Instagram => {
                messages::contact_has_written(db, company, channel, contact).await?
            }
        };
        if reachable {
            self.cache.remember_reachable(company, channel, contact);
        }
        Ok(reachable)
    }
}

/// The chosen options of a multiselect field, as a variable shows them in a text.
fn join_options(list: String) -> String {
    serde_json::from_str::<Vec<String>>(&list).map_or(list, |options| options.join(", "))
}
