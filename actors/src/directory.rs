//! The directory: every company's tokens, channels, queues, users, wrap-up types and global variables, in memory.
//! Requests and decisions need no database for them, and so work during an outage.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use hotline_persistence::cluster::SlotFilter;
use hotline_persistence::directory_events::{Notification, NotificationListener};
use hotline_persistence::key::KeyHash;
use hotline_persistence::sealed::Keyring;
use hotline_persistence::tables::channels::ChannelRow;
pub use hotline_persistence::tables::organization::Organization;
use hotline_persistence::tables::tokens::TokenRow;
use hotline_persistence::tables::{companies, organization, tokens};
use hotline_persistence::{
    ChannelId, CompanyId, Database, Error, EventNews, PgPool, QueueId, Result, Slot, TokenId, UserId, WebhookNews,
    WrapupTypeId,
};
use ipnet::{IpNet, Ipv4Net};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::id_map::IdMap;

/// Interval between full reloads, in case a notification was lost while the connection stayed up.
pub const RELOAD_EVERY: Duration = Duration::from_secs(60);

/// Companies that are loaded with the same statements: enough that a statement's fixed cost does not matter, few enough
/// that a change to one of them does not wait for long.
pub(crate) const LOADED_AT_ONCE: usize = 256;

/// Pause before reconnecting to the notifications after a database outage.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// The directory of all companies. Cheap to clone.
#[derive(Clone, Default)]
pub struct Directory {
    state: Arc<DirectoryState>,
}

struct DirectoryState {
    companies: IdMap<CompanyId, Arc<Organization>>,
    tokens: IdMap<KeyHash, Arc<Token>>,
    /// Channels by their public keys, which identify them where there is no company token.
    public_keys: DashMap<String, (CompanyId, ChannelId)>,
    /// The version of the organization that was loaded last.
    last_version: AtomicU64,
    /// Notified of every change.
    changed: watch::Sender<()>,
    loads: DashMap<CompanyId, Arc<CompanyLoads>>,
    /// Interval between full reloads.
    reload_every: Duration,
    /// The keys that decrypt the secrets of channels.
    keys: Keyring,
}

impl Default for DirectoryState {
    fn default() -> Self {
        Self {
            companies: IdMap::default(),
            tokens: IdMap::default(),
            public_keys: DashMap::new(),
            last_version: AtomicU64::new(0),
            changed: watch::Sender::new(()),
            loads: DashMap::new(),
            reload_every: RELOAD_EVERY,
            keys: Keyring::default(),
        }
    }
}

/// The loads of one company. They run one at a time, so that an older result never replaces a newer one.
#[derive(Default)]
struct CompanyLoads {
    /// The number of loads requested.
    requested: AtomicU64,
    /// The last request that the directory includes. Locked by the running load.
    loaded: tokio::sync::Mutex<u64>,
    /// Records that are about to be deleted.
    removals: Mutex<Vec<Removal>>,
}

/// A record that is about to be deleted. In memory it is inactive, even if the tables differ, so nothing new refers to
/// it. An agent who is about to leave a queue is no longer a member of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A user.
    User(UserId),
    /// A queue.
    Queue(QueueId),
    /// An agent of a queue.
    Member(QueueId, UserId),
    /// A wrap-up type.
    WrapupType(WrapupTypeId),
}

impl Removal {
    fn apply_to(self, organization: &mut Organization) {
        if let Self::Member(queue, user) = self {
            if let Some(queue) = organization.queues.get_mut(&queue) {
                queue.users.remove(&user);
            }
            return;
        }
        let active = match self {
            Self::Member(..) => None,
            Self::User(id) => organization.users.get_mut(&id).map(|user| &mut user.active),
            Self::Queue(id) => organization.queues.get_mut(&id).map(|queue| &mut queue.row.active),
            Self::WrapupType(id) => organization.wrapup_types.get_mut(&id).map(|kind| &mut kind.active),
        };
        if let Some(active) = active {
            *active = false;
        }
    }
}

/// A token in memory.
#[derive(Debug)]
pub struct Token {
    /// The stored row.
    pub row: TokenRow,
    /// The networks it may be used from; empty: any.
    allowed: Vec<IpNet>,
    token_use: Arc<TokenUse>,
}

/// When a token was last used, in milliseconds since 1970, and the last such time written to the table.
#[derive(Debug, Default)]
struct TokenUse {
    last_ms: AtomicI64,
    written_ms: AtomicI64,
}

impl Token {
    fn new(row: TokenRow, token_use: Arc<TokenUse>) -> Self {
        let net = |entry: &String| {
            // An entry that cannot be parsed allows no address.
            let parsed = entry.parse().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from));
            parsed.unwrap_or(IpNet::V4(Ipv4Net::new_assert(std::net::Ipv4Addr::UNSPECIFIED, 32)))
        };
        let allowed = row.allowed_ips.iter().map(net).collect();
        Self { row, allowed, token_use }
    }

    /// Whether it may be used from an address.
    pub fn is_allowed_from(&self, address: Option<IpAddr>) -> bool {
        self.allowed.is_empty()
            || address.is_some_and(|address| self.allowed.iter().any(|range| range.contains(&address)))
    }

    /// Records a use; it is written to the table later.
    pub fn record_use(&self, at: DateTime<Utc>) {
        self.token_use.last_ms.store(at.timestamp_millis(), Ordering::Relaxed);
    }
}

impl Directory {
    /// Loads every company.
    pub async fn load(db: &PgPool, keys: &Keyring, reload_every: Duration) -> Result<Self> {
        let keys = keys.clone();
        let directory = Self { state: Arc::new(DirectoryState { reload_every, keys, ..DirectoryState::default() }) };
        directory.reload_all(db).await?;
        Ok(directory)
    }

    /// A directory of these companies only, for tests and benches of the layers above.
    pub fn of(organizations: impl IntoIterator<Item = Organization>) -> Self {
        let directory = Self::default();
        for organization in organizations {
            directory.put(organization);
        }
        directory
    }

    /// A company, or none.
    pub fn company(&self, id: CompanyId) -> Option<Arc<Organization>> {
        self.state.companies.get(&id).map(|company| company.clone())
    }

    /// The slot of a company; none if the company does not exist or was created a moment ago.
    pub fn slot(&self, id: CompanyId) -> Option<Slot> {
        self.state.companies.get(&id).map(|organization| organization.company.slot)
    }

    /// The companies in the slots that `selects` accepts.
    pub fn companies_in(&self, selects: impl Fn(Slot) -> bool) -> Vec<CompanyId> {
        let companies = self.state.companies.iter();
        companies.filter(|entry| selects(entry.company.slot)).map(|entry| *entry.key()).collect()
    }

    /// The token with this key's hash, or none. The caller must check its validity.
    pub fn token(&self, hash: &KeyHash) -> Option<Arc<Token>> {
        self.state.tokens.get(hash).map(|token| token.clone())
    }

    /// Notifies of every change of any company.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.state.changed.subscribe()
    }

    /// The channel with this public key, or none.
    pub fn channel(&self, public_key: &str) -> Option<(CompanyId, ChannelId)> {
        self.state.public_keys.get(public_key).map(|channel| *channel)
    }

    /// The channel with this public key, and its company, or none.
    pub fn company_and_channel(&self, public_key: &str) -> Option<(Arc<Organization>, ChannelId)> {
        let (company, channel) = self.state.public_keys.get(public_key).map(|channel| *channel)?;
        self.company(company).map(|organization| (organization, channel))
    }

    /// Writes when the tokens of owned companies were last used, if the table does not have it yet.
    ///
    /// # Errors
    /// When the database cannot answer; the next call retries.
    pub async fn write_uses(&self, db: impl Database<'_>, is_owned: impl Fn(CompanyId) -> bool) -> Result<()> {
        let mut uses: Vec<(TokenId, i64, Arc<TokenUse>)> = Vec::new();
        for token in &self.state.tokens {
            let last_ms = token.token_use.last_ms.load(Ordering::Relaxed);
            if last_ms > token.token_use.written_ms.load(Ordering::Relaxed) && is_owned(token.row.company_id) {
                uses.push((token.row.id, last_ms, token.token_use.clone()));
            }
        }
        if uses.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> =
            uses.iter().filter_map(|(id, ms, _)| Some((*id, DateTime::from_timestamp_millis(*ms)?))).collect();
        tokens::record_uses(db, &rows).await?;
        for (_, ms, token_use) in uses {
            token_use.written_ms.fetch_max(ms, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Follows the tables' notifications for as long as the process runs: every change is seen within a second.
    /// Notifications of events are passed on to `events`.
    pub async fn follow(self, db: PgPool, events: Option<Arc<EventNews>>, webhooks: Arc<WebhookNews>) {
        loop {
            if let Err(error) = self.listen(&db, events.as_deref(), &webhooks).await {
                tracing::debug!(%error, "directory notifications interrupted; reconnecting");
            }
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }

    async fn listen(&self, db: &PgPool, events: Option<&EventNews>, webhooks: &WebhookNews) -> Result<()> {
        let mut notifications = NotificationListener::listen(db).await?;
        // Changes may have been missed while disconnected, so everything is reloaded.
        events.iter().for_each(|events| events.publish_all());
        webhooks.publish_all();
        self.reload_all(db).await?;
        // Reloads at a fixed interval, which notifications do not postpone, because one may have been lost.
        let mut ticks = tokio::time::interval(self.state.reload_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => self.reload_all(db).await?,
                notification = notifications.next() => match notification? {
                    Some(Notification::Directory(company)) => self.refresh(db, company).await?,
                    Some(Notification::Webhooks(company)) => webhooks.publish(company),
                    Some(Notification::Events(company, last)) => {
                        events.iter().for_each(|events| events.publish(company, last));
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    async fn reload_all(&self, db: &PgPool) -> Result<()> {
        let mut ids = companies::of_slots(db, &SlotFilter::all()).await?;
        // Companies that were deleted are included, so that they are dropped.
        ids.extend(self.state.companies.iter().map(|company| *company.key()));
        self.refresh_all(db, &ids).await.map(drop)
    }

    /// Reloads a company: afterwards the directory has everything that was committed before the call. All calls during
    /// one load share the next one.
    pub async fn refresh(&self, db: impl Database<'_>, id: CompanyId) -> Result<()> {
        self.refresh_together(db, &[id]).await
    }

    /// Reloads many companies, as [`Directory::refresh`] does one, with a few statements for a few hundred of them.
    /// Returns those whose rows cannot be read: they stay as they were, and do not affect the others.
    ///
    /// # Errors
    /// When the database cannot answer; some companies may be reloaded then.
    pub async fn refresh_all(&self, db: impl Database<'_>, ids: &[CompanyId]) -> Result<Vec<CompanyId>> {
        // Sorted, because loads are locked in this order: two such calls cannot block each other.
        let ids: Vec<CompanyId> = ids.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let mut unreadable = Vec::new();
        for chunk in ids.chunks(LOADED_AT_ONCE) {
            match self.refresh_together(db, chunk).await {
                // A row may be unreadable, so each company is loaded on its own.
                Err(Error::Database(_)) => {}
                outcome => {
                    outcome?;
                    continue;
                }
            }
            for id in chunk {
                match self.refresh_together(db, &[*id]).await {
                    Err(error @ Error::Database(_)) => {
                        tracing::error!(%error, company.id = %id, "could not load a company's settings; they stay as they were last loaded");
                        unreadable.push(*id);
                    }
                    outcome => outcome?,
                }
            }
        }
        Ok(unreadable)
    }

    /// Reloads companies with the same statements. Ids must be ascending.
    async fn refresh_together(&self, db: impl Database<'_>, ids: &[CompanyId]) -> Result<()> {
        let request = |id: &CompanyId| {
            let loads = self.loads(*id);
            let requested = loads.requested.fetch_add(1, Ordering::AcqRel) + 1;
            (*id, loads, requested)
        };
        let requests: Vec<_> = ids.iter().map(request).collect();
        let mut due_loads = Vec::with_capacity(requests.len());
        for (id, loads, requested) in &requests {
            let loaded = loads.loaded.lock().await;
            if *loaded < *requested {
                due_loads.push((*id, loads, loaded));
            }
        }
        if due_loads.is_empty() {
            return Ok(());
        }
        // This load serves every request made up to now.
        let due_loads: Vec<_> = due_loads
            .into_iter()
            .map(|(id, loads, loaded)| (id, loads, loaded, loads.requested.load(Ordering::Acquire)))
            .collect();
        let ids: Vec<CompanyId> = due_loads.iter().map(|(id, ..)| *id).collect();
        let found = organization::load_all(db, &self.state.keys, &ids).await?;
        let mut found: HashMap<CompanyId, Organization> =
            found.into_iter().map(|organization| (organization.company.id, organization)).collect();
        for (id, loads, mut loaded, included) in due_loads {
            match found.remove(&id) {
                Some(mut organization) => {
                    loads.removals.lock().iter().for_each(|removal| removal.apply_to(&mut organization));
                    self.put(organization);
                }
                None => self.forget(id),
            }
            *loaded = included;
        }
        Ok(())
    }

    fn loads(&self, id: CompanyId) -> Arc<CompanyLoads> {
        self.state.loads.entry(id).or_default().clone()
    }

    /// Makes a record inactive in memory, until [`Directory::end_removal`].
    pub(crate) async fn begin_removal(&self, id: CompanyId, removal: Removal) {
        let loads = self.loads(id);
        // Between two loads, because one that began before would make the record active again.
        let _between = loads.loaded.lock().await;
        loads.removals.lock().push(removal);
        if let Some(current) = self.company(id) {
            let mut organization = Organization::clone(&current);
            removal.apply_to(&mut organization);
            self.state.companies.insert(id, Arc::new(organization));
        }
    }

    /// Undoes [`Directory::begin_removal`]; the next load shows whether the record still exists.
    pub(crate) fn end_removal(&self, id: CompanyId, removal: Removal) {
        let loads = self.loads(id);
        let mut removals = loads.removals.lock();
        // Ends one removal only: two requests may delete the record at once.
        if let Some(index) = removals.iter().position(|other| *other == removal) {
            removals.swap_remove(index);
        }
    }

    fn put(&self, mut organization: Organization) {
        organization.version = self.state.last_version.fetch_add(1, Ordering::Relaxed) + 1;
        let id = organization.company.id;
        let mut hashes = Vec::with_capacity(organization.tokens.len());
        for token in &organization.tokens {
            if let Ok(hash) = KeyHash::try_from(token.hash.as_slice()) {
                let token_use = self.state.tokens.get(&hash).map(|token| token.token_use.clone()).unwrap_or_default();
                self.state.tokens.insert(hash, Arc::new(Token::new(token.clone(), token_use)));
                hashes.push(hash);
            }
        }
        for channel in organization.channels.values() {
            self.state.public_keys.insert(channel.public_key.clone(), (id, channel.id));
        }
        if let Some(before) = self.company(id) {
            let has_key = |channel: &ChannelRow| {
                organization.channels.get(&channel.id).is_some_and(|now| now.public_key == channel.public_key)
            };
            self.drop_keys(&before, |hash| hashes.contains(hash), has_key);
        }
        self.state.companies.insert(id, Arc::new(organization));
        self.state.changed.send_replace(());
    }

    /// Drops a company that does not exist, or must not be served from old data.
    pub(crate) fn forget(&self, id: CompanyId) {
        if let Some((_, before)) = self.state.companies.remove(&id) {
            self.drop_keys(&before, |_| false, |_| false);
        }
        self.state.changed.send_replace(());
    }

    /// Drops the tokens and public keys that a company no longer has. Only its own are scanned: with thousands of
    /// companies, a scan of all keys for each company would take seconds.
    fn drop_keys(
        &self,
        before: &Organization,
        has_token: impl Fn(&KeyHash) -> bool,
        has_key: impl Fn(&ChannelRow) -> bool,
    ) {
        let hashes = before.tokens.iter().filter_map(|token| KeyHash::try_from(token.hash.as_slice()).ok());
        for hash in hashes.filter(|hash| !has_token(hash)) {
            self.state.tokens.remove(&hash);
        }
        for channel in before.channels.values().filter(|channel| !has_key(channel)) {
            self.state.public_keys.remove(&channel.public_key);
        }
    }
}
