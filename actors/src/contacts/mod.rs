//! What conversations know of contacts, kept near: a message to a number must find its contact while the
//! database is away.
//!
//! Contacts are plain: they change and go by SQL, behind the actors' backs. What is kept here stays true all the same:
//!
//! - Whoever reads a contact from the tables, to keep it, holds `KnownContacts::looking` until it is kept: in the cache, or
//!   in a ticket's actor that can be found. Whoever has changed one holds `KnownContacts::changing` while it is read anew
//!   and told to all that keep it. So nobody keeps what was read before a change.
//! - What an opening knows of its contact has a `KnownContacts::version`; an opening under an older one looks again.
//! - A contact about to be deleted is marked (`leaving.rs`): nothing live begins or changes for it until it is known
//!   what became of it.

mod hot;
mod pending_deletions;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use hotline_persistence::tables::contacts::ContactRef;
use hotline_persistence::{ChannelId, CompanyId, ContactId};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use hot::HotTickets;
pub(crate) use hot::RegistrationGuard;
use pending_deletions::PendingDeletions;

use crate::tickets::Heard;
use crate::ttl_cache::TtlCache;
pub(crate) use pending_deletions::DeletionGuard;

/// Contacts remembered at most: some 250 bytes each.
const CONTACTS_MAX: usize = 100_000;

/// How long a contact is remembered: as long as an outage should be survived, and a change that was made beside this
/// process may take to be seen.
const CONTACT_AGE_MAX: Duration = Duration::from_secs(3600);

/// Versions of contacts; those that share one look again a little more often.
const VERSIONS: usize = 4096;

/// A contact of a company.
pub(crate) type Key = (CompanyId, ContactId);

/// Contacts lately talked to.
pub(crate) struct KnownContacts {
    by_id: TtlCache<Key, Arc<ContactRef>>,
    /// Only a hint: what `by_id` says of the contact counts.
    by_number: TtlCache<(CompanyId, String), ContactId>,
    /// The same for the id a channel's provider has for a contact.
    by_address: TtlCache<(CompanyId, ChannelId, String), ContactId>,
    reachable: TtlCache<(CompanyId, ChannelId, ContactId), ()>,
    /// When contacts last wrote on a channel.
    heard: TtlCache<(CompanyId, ChannelId, ContactId), Heard>,
    versions: Vec<AtomicU64>,
    turns: DashMap<CompanyId, Arc<RwLock<()>>>,
    /// The tickets whose actors keep a contact.
    pub(crate) hot: Arc<HotTickets>,
    /// The contacts that are being deleted.
    pub(crate) leaving: Arc<PendingDeletions>,
}

impl Default for KnownContacts {
    fn default() -> Self {
        Self {
            by_id: ttl_cache(),
            by_number: ttl_cache(),
            by_address: ttl_cache(),
            reachable: ttl_cache(),
            heard: ttl_cache(),
            versions: (0..VERSIONS).map(|_| AtomicU64::new(0)).collect(),
            turns: DashMap::new(),
            hot: Arc::default(),
            leaving: Arc::default(),
        }
    }
}

fn ttl_cache<K: Hash + Eq + Clone, V: Clone>() -> TtlCache<K, V> {
    TtlCache::new(CONTACTS_MAX, CONTACT_AGE_MAX)
}

impl KnownContacts {
    /// Remembers a contact that was just read.
    pub fn remember(&self, company: CompanyId, contact: &Arc<ContactRef>) {
        self.by_id.insert((company, contact.id), contact.clone());
        if let Some(number) = &contact.number {
            self.by_number.insert((company, number.clone()), contact.id);
        }
    }

    /// Forgets a contact.
    pub(crate) fn forget(&self, company: CompanyId, id: ContactId) {
        self.by_id.remove(&(company, id));
    }

    /// Drops what is known of a company's contacts. Nothing of the company is under way.
    pub(crate) fn forget_company(&self, company: CompanyId) {
        let Self { by_id, by_number, by_address, reachable, heard, versions: _, turns, hot: _, leaving: _ } = self;
        by_id.remove_where(|(of, _)| *of == company);
        by_number.remove_where(|(of, _)| *of == company);
        by_address.remove_where(|(of, ..)| *of == company);
        reachable.remove_where(|(of, ..)| *of == company);
        heard.remove_where(|(of, ..)| *of == company);
        turns.remove(&company);
        // Versions are shared by contacts of all companies, and only ever make somebody look again. The tickets' actors
        // are listed for as long as they live, and contacts are marked for as long as somebody deletes them.
    }

    /// Forgets what was learned too long ago.
    pub(crate) fn sweep(&self) {
        self.by_id.sweep();
        self.by_number.sweep();
        self.by_address.sweep();
        self.reachable.sweep();
        self.heard.sweep();
    }

    /// A contact by id, if it is remembered.
    pub fn get(&self, company: CompanyId, id: ContactId) -> Option<Arc<ContactRef>> {
        self.by_id.get(&(company, id))
    }

    /// A contact by number, if it is remembered.
    pub fn with_number(&self, company: CompanyId, number: &str) -> Option<Arc<ContactRef>> {
        let id = self.by_number.get(&(company, number.to_owned()))?;
        self.get(company, id).filter(|contact| contact.number.as_deref() == Some(number))
    }

    /// A contact by the id a channel's provider has for them, if it is remembered.
    pub fn with_address(&self, company: CompanyId, channel: ChannelId, address: &str) -> Option<Arc<ContactRef>> {
        let id = self.by_address.get(&(company, channel, address.to_owned()))?;
        self.get(company, id)
    }

    /// Remembers the id a channel's provider has for a contact. It never becomes another's.
    pub fn remember_address(&self, company: CompanyId, channel: ChannelId, address: &str, contact: ContactId) {
        self.by_address.insert((company, channel, address.to_owned()), contact);
    }

    /// Remembers when a contact wrote on a channel, or that they never did.
    pub fn remember_heard(&self, company: CompanyId, channel: ChannelId, contact: ContactId, heard: Heard) {
        // Calls of a provider may come out of order, and a look-up may end after a call that came meanwhile.
        self.heard.merge(&(company, channel, contact), heard, |known, learned| *known.max(learned));
    }

    /// When a contact last wrote on a channel, as far as that is remembered.
    pub fn heard(&self, company: CompanyId, channel: ChannelId, contact: ContactId) -> Heard {
        self.heard.get(&(company, channel, contact)).unwrap_or_default()
    }

    /// Held from before a contact is read until it is kept. Never take it twice: who changes may stand in between.
    pub(crate) async fn looking(&self, company: CompanyId) -> OwnedRwLockReadGuard<()> {
        let turns = self.turns(company);
        turns.read_owned().await
    }

    /// Held while a change is published to all caches of contacts.
    pub(crate) async fn changing(&self, company: CompanyId) -> OwnedRwLockWriteGuard<()> {
        let turns = self.turns(company);
        turns.write_owned().await
    }

    fn turns(&self, company: CompanyId) -> Arc<RwLock<()>> {
        if let Some(turns) = self.turns.get(&company) {
            return turns.clone();
        }
        self.turns.entry(company).or_default().clone()
    }

    /// The version of what is known of a contact: to be asked for before the contact itself.
    pub(crate) fn version(&self, key: Key) -> u64 {
        self.version_of(key).load(Ordering::Acquire)
    }

    /// From here on what was known of a contact before is out of date.
    pub(crate) fn invalidate(&self, key: Key) {
        self.version_of(key).fetch_add(1, Ordering::AcqRel);
    }

    fn version_of(&self, key: Key) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.versions[usize::try_from(hasher.finish() % VERSIONS as u64).unwrap_or(0)]
    }

    /// Remembers that a channel without phone reaches a contact. It never stops doing so.
    pub fn remember_reachable(&self, company: CompanyId, channel: ChannelId, contact: ContactId) {
        self.reachable.insert((company, channel, contact), ());
    }

    /// Whether it is remembered that a channel without phone reaches a contact.
    pub fn is_reachable(&self, company: CompanyId, channel: ChannelId, contact: ContactId) -> bool {
        self.reachable.get(&(company, channel, contact)).is_some()
    }
}
