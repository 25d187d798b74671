//! What conversations know of contacts, kept near: a message to a number must find its contact while the
//! database is away.

use std::sync::Arc;
use std::time::Duration;

use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::{ChannelId, CompanyId, ContactId};
use moka::sync::Cache;

/// Contacts remembered at most: some 300 bytes each.
const CONTACTS_MAX: u64 = 100_000;

/// How long a contact is remembered: as long as an outage should be survived, and a rename may take to be seen.
const CONTACT_AGE_MAX: Duration = Duration::from_secs(3600);

/// Contacts lately talked to.
pub struct Contacts {
    by_id: Cache<(CompanyId, ContactId), Arc<ContactRef>>,
    by_number: Cache<(CompanyId, String), Arc<ContactRef>>,
    reachable: Cache<(CompanyId, ChannelId, ContactId), ()>,
}

impl Default for Contacts {
    fn default() -> Self {
        Self { by_id: cache(), by_number: cache(), reachable: cache() }
    }
}

fn cache<K: std::hash::Hash + Eq + Send + Sync + 'static, V: Clone + Send + Sync + 'static>() -> Cache<K, V> {
    Cache::builder().max_capacity(CONTACTS_MAX).time_to_live(CONTACT_AGE_MAX).build()
}

impl Contacts {
    /// Remembers a contact.
    pub fn remember(&self, company: CompanyId, contact: &Arc<ContactRef>) {
        self.by_id.insert((company, contact.id), contact.clone());
        if let Some(number) = &contact.number {
            self.by_number.insert((company, number.clone()), contact.clone());
        }
    }

    /// A contact by id, if it is remembered.
    pub fn get(&self, company: CompanyId, id: ContactId) -> Option<Arc<ContactRef>> {
        self.by_id.get(&(company, id))
    }

    /// A contact by number, if it is remembered.
    pub fn with_number(&self, company: CompanyId, number: &str) -> Option<Arc<ContactRef>> {
        self.by_number.get(&(company, number.to_owned()))
    }

    /// Remembers that a channel without phone reaches a contact. It never stops doing so.
    pub fn remember_reachable(&self, company: CompanyId, channel: ChannelId, contact: ContactId) {
        self.reachable.insert((company, channel, contact), ());
    }

    /// Whether it is remembered that a channel without phone reaches a contact.
    pub fn is_reachable(&self, company: CompanyId, channel: ChannelId, contact: ContactId) -> bool {
        self.reachable.contains_key(&(company, channel, contact))
    }
}
