//! The cache of contacts: a message to a number must find its contact even while the database is unavailable.
//!
//! Contacts are plain: they are changed by SQL, without the actors. These rules keep the copies in memory current:
//!
//! - A load of a contact from the tables holds `ContactCache::read_lock` until the copy is stored: in the cache, or in
//!   a registered ticket actor. A change of a contact holds `ContactCache::write_lock` while the contact is read again
//!   and all copies are updated. So no copy from before a change survives it.
//! - The opening of a ticket notes the `ContactCache::version` of its contact, and reads the contact again if that has
//!   changed.
//! - A contact about to be deleted or merged is marked (`marks.rs`): nothing live begins or changes for it until the
//!   outcome is known.

mod facts;
mod hot_tickets;
mod marks;

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::{ChannelId, CompanyId, ContactId, phone_numbers};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

pub use facts::{ContactFacts, LastInbound, RequiredFacts};
use hot_tickets::HotTickets;
pub(crate) use hot_tickets::RegistrationGuard;
use marks::ContactMarks;

use crate::clock::now;
use crate::ttl_cache::TtlCache;
pub(crate) use marks::ContactMark;

/// Maximum contacts in the cache: some 250 bytes each.
const CONTACTS_MAX: usize = 100_000;

/// How long a contact is cached: the length of an outage to survive, and the longest time until a change made outside
/// this process is seen.
const CONTACT_AGE_MAX: Duration = Duration::from_secs(3600);

/// Number of version counters. Contacts that share one are read again a little more often.
const VERSION_COUNTERS: usize = 4096;

/// A contact of a company.
pub(crate) type ContactKey = (CompanyId, ContactId);

/// The cache of recently used contacts.
pub(crate) struct ContactCache {
    by_id: TtlCache<ContactKey, Arc<ContactRef>>,
    /// By the hash of the number, which takes less memory. Only a hint: the contact in `by_id` has the current number.
    by_number: TtlCache<(CompanyId, u64), ContactId>,
    /// Hashes numbers with a secret, because callers choose them.
    number_hasher: RandomState,
    /// By the id that a channel's provider has assigned to the contact.
    by_address: TtlCache<(CompanyId, ChannelId, String), ContactId>,
    /// The contacts that a channel without phone numbers is known to reach.
    reachable: TtlCache<(CompanyId, ChannelId, ContactId), ()>,
    /// When contacts last wrote on a channel.
    last_inbound: TtlCache<(CompanyId, ChannelId, ContactId), LastInbound>,
    /// When a merge of contacts, or of their tickets, was settled.
    merged_at: TtlCache<ContactKey, DateTime<Utc>>,
    versions: Vec<AtomicU64>,
    locks: DashMap<CompanyId, Arc<RwLock<()>>>,
    /// The tickets whose actors have a copy of a contact.
    pub(crate) hot_tickets: Arc<HotTickets>,
    /// The contacts that are being deleted or merged.
    pub(crate) marks: Arc<ContactMarks>,
}

impl Default for ContactCache {
    fn default() -> Self {
        Self {
            by_id: ttl_cache(),
            by_number: ttl_cache(),
            number_hasher: RandomState::new(),
            by_address: ttl_cache(),
            reachable: ttl_cache(),
            last_inbound: ttl_cache(),
            merged_at: ttl_cache(),
            versions: (0..VERSION_COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            locks: DashMap::new(),
            hot_tickets: Arc::default(),
            marks: Arc::default(),
        }
    }
}

fn ttl_cache<K: Hash + Eq + Clone, V: Clone>() -> TtlCache<K, V> {
    TtlCache::new(CONTACTS_MAX, CONTACT_AGE_MAX)
}

impl ContactCache {
    /// Caches a contact that was just read.
    pub fn remember(&self, company: CompanyId, contact: &Arc<ContactRef>) {
        self.by_id.insert((company, contact.id), contact.clone());
        if let Some(number) = &contact.number {
            self.by_number.insert((company, self.number_hasher.hash_one(number)), contact.id);
        }
    }

    /// Removes a contact from the cache.
    pub(crate) fn forget(&self, company: CompanyId, id: ContactId) {
        self.by_id.remove(&(company, id));
    }

    /// Drops a company's contacts. No work of the company may be running.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self {
            by_id,
            by_number,
            number_hasher: _,
            by_address,
            reachable,
            last_inbound,
            merged_at,
            versions: _,
            locks,
            hot_tickets: _,
            marks: _,
        } = self;
        by_id.remove_where(|(owner, _)| *owner == company);
        by_number.remove_where(|(owner, _)| *owner == company);
        by_address.remove_where(|(owner, ..)| *owner == company);
        reachable.remove_where(|(owner, ..)| *owner == company);
        last_inbound.remove_where(|(owner, ..)| *owner == company);
        merged_at.remove_where(|(owner, _)| *owner == company);
        locks.remove(&company);
        // Versions are shared by contacts of all companies, and a change only causes another read. Ticket actors are
        // registered for as long as they live, and contacts are marked for as long as their deletion takes.
    }

    /// Removes expired entries.
    pub(crate) fn sweep(&self) {
        self.by_id.sweep();
        self.by_number.sweep();
        self.by_address.sweep();
        self.reachable.sweep();
        self.last_inbound.sweep();
        self.merged_at.sweep();
    }

    /// A contact by id, if it is cached.
    pub fn get(&self, company: CompanyId, id: ContactId) -> Option<Arc<ContactRef>> {
        self.by_id.get(&(company, id))
    }

    /// Caches by which number a contact was found: their own, or another spelling of it.
    pub fn remember_number(&self, company: CompanyId, number: &str, contact: ContactId) {
        self.by_number.insert((company, self.number_hasher.hash_one(number)), contact);
    }

    /// A contact by number, in any spelling by which it was found before, if it is cached.
    pub fn find_by_number(&self, company: CompanyId, number: &str) -> Option<Arc<ContactRef>> {
        let id = self.by_number.get(&(company, self.number_hasher.hash_one(number)))?;
        self.get(company, id)
            .filter(|contact| contact.number.as_deref().is_some_and(|own| phone_numbers::is_same(own, number)))
    }

    /// A contact by its id at a channel's provider, if it is cached.
    pub fn find_by_address(&self, company: CompanyId, channel: ChannelId, address: &str) -> Option<Arc<ContactRef>> {
        let id = self.by_address.get(&(company, channel, address.to_owned()))?;
        self.get(company, id)
    }

    /// Caches a contact's id at a channel's provider. Such an id never moves to another contact.
    pub fn remember_address(&self, company: CompanyId, channel: ChannelId, address: &str, contact: ContactId) {
        self.by_address.insert((company, channel, address.to_owned()), contact);
    }

    /// Caches when a contact wrote on a channel, or that they never did.
    pub fn remember_last_inbound(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        last_inbound: LastInbound,
    ) {
        // Calls of a provider may arrive out of order, and a look-up may end after a later call.
        self.last_inbound.merge(&(company, channel, contact), last_inbound, |old, new| *old.max(new));
    }

    /// Forgets when a contact wrote, on every channel: it has taken over the messages of another.
    pub(crate) fn forget_last_inbound(&self, company: CompanyId, contact: ContactId) {
        self.last_inbound.remove_where(|(owner, _, id)| (*owner, *id) == (company, contact));
    }

    /// Records that a merge of contacts, or of their tickets, is settled.
    pub(crate) fn record_merge(&self, company: CompanyId, contacts: &[ContactId]) {
        let at = now();
        contacts.iter().for_each(|contact| self.merged_at.insert((company, *contact), at));
    }

    /// Whether a merge of a contact, or of its tickets, was settled at this time or later.
    pub(crate) fn was_merged_since(&self, company: CompanyId, contact: ContactId, since: DateTime<Utc>) -> bool {
        self.merged_at.get(&(company, contact)).is_some_and(|at| at >= since)
    }

    /// When a contact last wrote on a channel, as far as cached.
    pub fn last_inbound(&self, company: CompanyId, channel: ChannelId, contact: ContactId) -> LastInbound {
        self.last_inbound.get(&(company, channel, contact)).unwrap_or_default()
    }

    /// The required facts, as far as they are cached.
    pub(crate) fn facts(
        &self,
        company: CompanyId,
        channel: ChannelId,
        contact: ContactId,
        required: RequiredFacts,
    ) -> ContactFacts {
        let reachable = required.reachable && self.is_reachable(company, channel, contact);
        let last_inbound =
            if required.last_inbound { self.last_inbound(company, channel, contact) } else { LastInbound::Unknown };
        ContactFacts { reachable, last_inbound, ..ContactFacts::default() }
    }

    /// Held from before a contact is read until the copy is stored. Never take it twice: a waiting writer in between
    /// would cause a deadlock.
    pub(crate) async fn read_lock(&self, company: CompanyId) -> OwnedRwLockReadGuard<()> {
        let lock = self.lock_of(company);
        lock.read_owned().await
    }

    /// Held while a change is applied to all copies of contacts.
    pub(crate) async fn write_lock(&self, company: CompanyId) -> OwnedRwLockWriteGuard<()> {
        let lock = self.lock_of(company);
        lock.write_owned().await
    }

    fn lock_of(&self, company: CompanyId) -> Arc<RwLock<()>> {
        if let Some(lock) = self.locks.get(&company) {
            return lock.clone();
        }
        self.locks.entry(company).or_default().clone()
    }

    /// The version of a contact's data: to be read before the contact itself.
    pub(crate) fn version(&self, key: ContactKey) -> u64 {
        self.version_counter(key).load(Ordering::Acquire)
    }

    /// Marks earlier reads of a contact as stale.
    pub(crate) fn invalidate(&self, key: ContactKey) {
        self.version_counter(key).fetch_add(1, Ordering::AcqRel);
    }

    fn version_counter(&self, key: ContactKey) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.versions[usize::try_from(hasher.finish() % VERSION_COUNTERS as u64).unwrap_or(0)]
    }

    /// Caches that a channel without phone numbers reaches a contact. This never becomes false.
    pub fn remember_reachable(&self, company: CompanyId, channel: ChannelId, contact: ContactId) {
        self.reachable.insert((company, channel, contact), ());
    }

    /// Whether a channel without phone numbers is known to reach a contact.
    pub fn is_reachable(&self, company: CompanyId, channel: ChannelId, contact: ContactId) -> bool {
        self.reachable.get(&(company, channel, contact)).is_some()
    }
}
