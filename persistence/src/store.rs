//! The store: everything durable in one object, opened first, shared by all actors and handlers, closed last.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::change_log::publish_synced;
use crate::clock;
use crate::cluster::{Membership, NewLife, Role, lives};
use crate::db::Housekeeper;
use crate::error::with_timeout;
use crate::fence::Fence;
use crate::id_blocks::IdBlocks;
use crate::journal::{DirLock, JournalError, RecoveredJournal};
use crate::migration::MigrationPolicy;
use crate::persister::{self, Claim, FencingToken, FlushQueue, Writer};
use crate::pool::{Purpose, WriterClaim};
use crate::probe::Probe;
use crate::scheduler::Scheduler;
use crate::sealed::Keyring;
use crate::tables::secret_keys::{self, NewFile};
use crate::tables::{audit_log, events, idempotency_keys, installation_keys};
use crate::writer_lock::{DataFolder, wait_for_writer};
use crate::{
    ChangeLog, CompanyId, Db, Durability, Error, EventNews, Ownership, Readers, Result, WebhookNews, journal,
    migration, pool, recovery,
};

/// Options for opening the store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The database.
    pub database: PgConnectOptions,
    /// Directory of the journal.
    pub journal_dir: PathBuf,
    /// Limits of the journal.
    pub journal: journal::Options,
    /// When a change counts as durable.
    pub durability: Durability,
    /// Encrypts secrets; its key file is created at the first start.
    pub keys: Keyring,
    /// Whether events are enabled.
    pub events: bool,
    /// Whether this process is alone or one of many on the database.
    pub role: Role,
    /// Whether the database is migrated.
    pub migration: MigrationPolicy,
}

/// The layer below the actors.
pub struct Store {
    /// Connections for the service's own work that belongs to no company: notifications, sweeps, loading at startup. No
    /// request uses them. In a cluster they are read-only: writes go through [`Store::housekeeper`].
    pub housekeeping: PgPool,
    /// Encrypts secrets.
    pub keys: Keyring,
    /// Connections for reads with a single good plan.
    pub readers: Readers,
    /// The log of live changes.
    pub log: ChangeLog,
    /// Ids of live rows.
    pub ids: IdBlocks,
    /// Listeners for events; `None`: events are disabled.
    pub events: Option<Arc<EventNews>>,
    /// Listeners for changed webhooks.
    pub webhooks: Arc<WebhookNews>,
    /// The result of the recovery at startup.
    pub recovered: recovery::RecoveryReport,
    /// Connections for requests; the scheduler shares them among companies.
    requests: PgPool,
    scheduler: Arc<Scheduler>,
    /// The persister's connection. Unlike request connections it runs on the runtime that opened the store, which lives
    /// to the end.
    writes: PgPool,
    persister: Mutex<Option<JoinHandle<()>>>,
    refiller: JoinHandle<()>,
    membership: Option<Arc<Membership>>,
    /// What the transactions of a cluster member begin with.
    fence: Option<Fence>,
}

/// Connection counts at one moment, without those of [`Readers`].
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// Open connections.
    pub open: u32,
    /// Idle ones among them.
    pub idle: usize,
    /// Requests that wait for their company's turn.
    pub waiting: usize,
}

/// The result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseReport {
    /// Entries that only the journal has; the next start writes them to the tables.
    pub entries_in_journal: u64,
}

/// How often the id blocks are checked: far more often than half a block can be used up.
const REFILL_EVERY: Duration = Duration::from_secs(20);

impl Store {
    /// Migrates and recovers, then starts the journal and the persister.
    ///
    /// `on_failure` is called when changes can no longer be made durable: the journal's disk failed, another process took
    /// over as the database's writer, or the database of a cluster has lost commits. Memory is then ahead of the disk, so
    /// the process must stop.
    ///
    /// # Errors
    /// When the database or the journal cannot be opened, or they do not belong together.
    pub async fn open(
        mut options: StoreOptions,
        on_failure: impl Fn(String) + Clone + Send + 'static,
    ) -> Result<Arc<Self>> {
        let connections = match options.role {
            Role::Alone => pool::ALONE_MAX,
            Role::Member(_) => pool::MEMBER_CONNECTIONS_MAX,
        };
        options.database = pool::prepare(&options.database, Purpose::Serve { connections }).await?;
        // The process has no life yet, so there is nothing to fence.
        let housekeeping = pool::connect_housekeeping(options.database.clone(), None);
        let lock = match options.role {
            Role::Alone => Some(lock_journal(&options.journal_dir).await?),
            Role::Member(_) => None,
        };
        let claim = Arc::new(match &lock {
            Some(_) => WriterClaim::of(data_folder(&options.journal_dir)?),
            None => WriterClaim::default(),
        });
        wait_for_writer(&housekeeping, claim.folder()).await?;
        recovery::compare(&housekeeping, &options.journal_dir).await?;
        migration::migrate(&housekeeping, options.migration).await?;
        let events = options.events.then(Arc::<EventNews>::default);
        if let Err(error) = create_partitions(&housekeeping, events.is_some()).await {
            tracing::info!(%error, "some tables have no partition for today yet; will retry");
        }
        let missing_keys = match &options.role {
            Role::Alone => secret_keys::begin_service(&housekeeping, &options.keys).await?,
            // The processes of a cluster sign with a key that all of them open.
            Role::Member(_) => {
                secret_keys::begin(&housekeeping, &options.keys, NewFile::Made).await?;
                Vec::new()
            }
        };
        let parts = match &options.role {
            Role::Alone => {
                let journal = recover(&options.journal_dir, options.journal.clone(), lock).await?;
                open_alone(&options, journal, &housekeeping, &claim, events.clone(), on_failure.clone()).await?
            }
            Role::Member(new) => open_member(&options, new, &housekeeping, &claim).await?,
        };
        if matches!(options.role, Role::Alone) {
            settle_secrets(&housekeeping, &options.keys, &missing_keys).await?;
        }
        let RoleParts { writes, log, token, ids, recovered, membership } = parts;
        let life = membership.as_ref().map(|membership| membership.life);
        let housekeeping = match life {
            None => housekeeping,
            Some(_) => {
                housekeeping.close().await;
                pool::connect_housekeeping(options.database.clone(), life)
            }
        };
        let requests = pool::connect_requests(options.database.clone(), options.events, life);
        let readers = Readers::new(options.database, life);
        let fence = life.map(Fence::new);
        if let Some(fence) = fence.clone() {
            let on_failure = on_failure.clone();
            tokio::spawn(async move {
                fence.wait_for_end().await;
                on_failure("another process of the cluster has fenced this process".to_owned());
            });
        }
        if let Some(news) = &events {
            log.queue().set_news(news.clone());
        }
        let writer = Writer::new(writes.clone(), claim, token, events.clone());
        let persister = persister::start(log.shared_queue(), log.journal().cloned(), writer, move |error| {
            on_failure(format!("the persister cannot continue: {error}"));
        });
        let refiller = tokio::spawn(refill_ids(ids.clone(), housekeeping.clone(), fence.clone()));
        let persister = Mutex::new(Some(persister));
        let scheduler = Scheduler::new(pool::request_shares());
        Ok(Arc::new(Self {
            housekeeping,
            keys: options.keys,
            readers,
            log,
            ids,
            events,
            webhooks: Arc::default(),
            recovered,
            requests,
            scheduler,
            writes,
            persister,
            refiller,
            membership,
            fence,
        }))
    }

    /// The tables as accessed for a company: the only way for a request to run a statement, and for a plain change to
    /// get a transaction.
    pub fn db(&self, company: CompanyId) -> Db<'_> {
        Db::new(&self.requests, self.fence.as_ref(), &self.scheduler, company)
    }

    /// Connections for the service's own writes.
    pub fn housekeeper(&self) -> Housekeeper<'_> {
        Housekeeper::new(&self.housekeeping, self.fence.as_ref())
    }

    /// The companies this process serves.
    pub fn ownership(&self) -> &Ownership {
        self.log.ownership()
    }

    /// This process's view of its cluster; `None`: it is alone.
    pub fn membership(&self) -> Option<&Arc<Membership>> {
        self.membership.as_ref()
    }

    /// Returns whether this process may start an effect outside, such as a call of a provider: it is alone, or its lease
    /// holds. Otherwise another process may have taken over, and would start the same.
    pub fn may_act(&self) -> bool {
        self.membership.as_ref().is_none_or(|membership| membership.lease.holds())
    }

    /// Drops the state of a closed company whose entries are all in the tables.
    pub fn forget(&self, company: CompanyId) {
        // The scheduler keeps state only for companies with running or waiting work, the news only for companies with
        // listeners. The other fields hold no state per company.
        let Self {
            housekeeping: _,
            keys: _,
            readers: _,
            log,
            ids: _,
            events: _,
            webhooks,
            recovered: _,
            requests: _,
            scheduler: _,
            writes: _,
            persister: _,
            refiller: _,
            membership: _,
            fence: _,
        } = self;
        log.forget(company);
        webhooks.forget(company);
    }

    /// Checks whether the database responds.
    pub fn probe(&self) -> Probe {
        self.readers.probe()
    }

    /// The load of the connections.
    pub fn connections(&self) -> Connections {
        let pools = [&self.requests, &self.housekeeping];
        Connections {
            open: pools.iter().map(|pool| pool.size()).sum(),
            idle: pools.iter().map(|pool| pool.num_idle()).sum(),
            waiting: self.scheduler.waiting(),
        }
    }

    /// Flushes everything and ends: the journal first, then the persister. No entry may be appended afterwards. Without
    /// the database, what is not flushed stays in the journal.
    ///
    /// # Errors
    /// When the journal cannot be closed, or when there is none and the database does not accept the last changes.
    pub async fn close(&self) -> Result<CloseReport> {
        self.refiller.abort();
        if let Some(journal) = self.log.journal().cloned() {
            let result = tokio::task::spawn_blocking(move || journal.close()).await;
            result.map_err(|error| Error::Unavailable(error.to_string()))??;
        }
        self.log.queue().close();
        let persister = self.persister.lock().take();
        let is_flushed = match persister {
            Some(persister) => self.flush(persister).await,
            None => true,
        };
        if !is_flushed && self.log.journal().is_none() {
            return Err(Error::Unavailable("the database did not accept the last changes".to_owned()));
        }
        if let Some(journal) = self.log.journal().cloned() {
            let result = tokio::task::spawn_blocking(move || journal.sync_confirmed()).await;
            result.map_err(|error| Error::Unavailable(error.to_string()))?;
        }
        // What is not returned is a gap in the ids, which imply nothing.
        if is_flushed && let Err(error) = self.leave().await {
            tracing::debug!(%error, "the database did not record the end of this process");
        }
        self.readers.close();
        self.scheduler.close();
        // Connections opened on a request's thread are closed with that thread.
        let close = async { tokio::join!(self.writes.close(), self.requests.close(), self.housekeeping.close()) };
        if tokio::time::timeout(POOL_CLOSE_TIME_MAX, close).await.is_err() {
            tracing::debug!("some database connections were not closed in time");
        }
        let entries = if is_flushed { 0 } else { self.log.appended().saturating_sub(self.log.flushed()) };
        Ok(CloseReport { entries_in_journal: entries })
    }

    /// Waits for the persister as long as it makes progress; returns whether it has written everything.
    async fn flush(&self, mut persister: JoinHandle<()>) -> bool {
        let deadline = Instant::now() + CLOSE_TIME_MAX;
        let mut flushed = self.log.flushed();
        while tokio::time::timeout(STALL_TIME_MAX, &mut persister).await.is_err() {
            let before = std::mem::replace(&mut flushed, self.log.flushed());
            if before == flushed || Instant::now() >= deadline {
                // It would take the lock of the next process.
                persister.abort();
                return false;
            }
        }
        true
    }

    /// Returns the reserved ids, and ends the life of a cluster member.
    async fn leave(&self) -> Result<()> {
        self.ids.give_back(&self.writes).await?;
        if let Some(membership) = &self.membership
            && let Some(db) = &membership.db
        {
            // Everything is in the tables, so other processes need not wait for this life to time out.
            self.fence.iter().for_each(Fence::expect_end);
            lives::leave(db, membership.life).await?;
            db.close().await;
        }
        Ok(())
    }
}

/// How long shutdown waits for idle connections to close.
const POOL_CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// How long shutdown waits for a database that accepts changes. What is not flushed by then stays in the journal.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(30);

/// How long shutdown waits for a database that accepts none: longer than a flush and its sync take on a busy disk.
const STALL_TIME_MAX: Duration = Duration::from_secs(5);

/// What differs between a process alone and a cluster member.
struct RoleParts {
    writes: PgPool,
    log: ChangeLog,
    token: FencingToken,
    ids: IdBlocks,
    recovered: recovery::RecoveryReport,
    membership: Option<Arc<Membership>>,
}

/// Disconnects what cannot be used because its key is missing, and connects it again once the key was found.
async fn settle_secrets(db: &PgPool, keys: &Keyring, missing: &[String]) -> Result<()> {
    let (channels, webhooks) = secret_keys::settle(db, keys).await?;
    if !missing.is_empty() {
        tracing::warn!(
            keys = missing.join(", "), key_file = %keys.path().display(), channels, webhooks,
            "keys that encrypt credentials are missing: channels and webhooks with such credentials are disconnected, \
             and no credentials can be stored. Put the key file back and restart; if a key is lost, run `hotline secret abandon`"
        );
    }
    Ok(())
}

/// Creates the current partitions before anything is written: PostgreSQL refuses a row whose partition is attached while
/// its statement runs.
async fn create_partitions(db: &PgPool, with_events: bool) -> Result<()> {
    let now = clock::now();
    if with_events {
        events::create_partitions(db, now).await?;
    }
    idempotency_keys::create_partitions(db, now).await?;
    audit_log::create_partitions(db, now).await
}

/// Claims the database for this process alone, and replays what an earlier run left in the journal.
async fn open_alone(
    options: &StoreOptions,
    mut journal: RecoveredJournal,
    housekeeping: &PgPool,
    claim: &Arc<WriterClaim>,
    events: Option<Arc<EventNews>>,
    on_failure: impl Fn(String) + Send + 'static,
) -> Result<RoleParts> {
    let writes = pool::connect_writer(options.database.clone(), claim.clone());
    let epoch = recovery::take_ownership(&writes).await?;
    // Regardless of the current setting: entries left in the journal were acknowledged.
    let messages = pool::connect_replay(options.database.clone());
    let connections = recovery::ReplayConnections { writes: &writes, messages: &messages, claim };
    let recovered = recovery::replay(connections, &mut journal, epoch, events).await?;
    messages.close().await;
    let ids = IdBlocks::reserve(housekeeping, epoch).await?;
    let (log, token) = match options.durability {
        Durability::Journal => {
            let token = FencingToken { claim: Claim::Epoch(epoch), journal: journal.id().to_owned() };
            (start_journal(journal, recovered.watermark, on_failure)?, token)
        }
        Durability::Database => {
            let log = ChangeLog::through_database(Arc::new(FlushQueue::new(0, false)));
            (log, recovery::begin_direct(&writes, epoch).await?)
        }
    };
    Ok(RoleParts { writes, log, token, ids, recovered, membership: None })
}

/// Begins a life in a cluster. It serves nothing yet: slots are assigned to it later.
async fn open_member(
    options: &StoreOptions,
    new: &NewLife,
    housekeeping: &PgPool,
    claim: &Arc<WriterClaim>,
) -> Result<RoleParts> {
    if options.journal_dir.exists() {
        let journal = recover(&options.journal_dir, options.journal.clone(), None).await?;
        recovery::refuse_unreplayed(housekeeping, &options.journal_dir, &journal).await?;
    }
    lives::check_clock(housekeeping).await?;
    let peer_key = installation_keys::find_or_create(housekeeping, &options.keys, PEER_KEY).await?;
    let life = lives::begin(housekeeping, new).await?;
    let writes = pool::connect_shared_writer(options.database.clone(), life, claim.clone());
    // Take the shared lock now, not with the first change: a process that writes alone must not start meanwhile.
    with_timeout(async { writes.acquire().await.map(drop) }).await.map_err(|error| match error {
        Error::Unavailable(_) => Error::NotOwner,
        error => error,
    })?;
    let token = FencingToken { claim: Claim::Life(life), journal: lives::journal_of(life) };
    let log = ChangeLog::through_database(Arc::new(FlushQueue::new(0, false)));
    let db = pool::connect_member(options.database.clone(), life);
    let mut membership = Membership::new(life, new.node.clone(), peer_key);
    membership.lease.extend(lives::beat(&db, life, 0).await?);
    membership.start_heartbeats(db.clone());
    membership.db = Some(db);
    let recovered = recovery::RecoveryReport { watermark: 0, replayed: 0 };
    Ok(RoleParts { writes, log, token, ids: IdBlocks::of_member(), recovered, membership: Some(Arc::new(membership)) })
}

/// Name of the key with which cluster members sign.
const PEER_KEY: &str = "cluster_peers";

/// Locks the journal against other processes, before anything is done on the database on its behalf.
async fn lock_journal(dir: &Path) -> Result<DirLock> {
    let dir = dir.to_owned();
    let lock = move || {
        create_private(&dir)?;
        Ok::<_, Error>(journal::lock(&dir)?)
    };
    tokio::task::spawn_blocking(lock).await.map_err(|error| Error::Unavailable(error.to_string()))?
}

fn data_folder(dir: &Path) -> Result<DataFolder> {
    DataFolder::of(dir).map_err(|error| Error::Unavailable(format!("read {}: {error}", dir.display())))
}

/// The journal contains conversations, so only its owner may read it.
fn create_private(dir: &Path) -> Result<()> {
    if dir.exists() {
        return Ok(());
    }
    let result = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    Ok(result.map_err(|source| JournalError::Io { action: "create", path: dir.to_owned(), source })?)
}

/// Verifies the journal; `lock`: of its directory, if this process has it already.
async fn recover(dir: &Path, options: journal::Options, lock: Option<DirLock>) -> Result<RecoveredJournal> {
    let dir = dir.to_owned();
    let open = move || {
        create_private(&dir)?;
        let opened = match lock {
            Some(lock) => journal::open_locked(&dir, options, lock),
            None => journal::open(&dir, options),
        };
        Ok::<_, Error>(opened?)
    };
    let recovered =
        tokio::task::spawn_blocking(open).await.map_err(|error| Error::Unavailable(error.to_string()))??;
    if let Some(tail) = recovered.torn_tail() {
        tracing::warn!(cut = ?tail, "discarded an incomplete write at the journal's end; it had not been acknowledged");
    }
    Ok(recovered)
}

fn start_journal(
    journal: RecoveredJournal,
    watermark: journal::Seq,
    on_failure: impl Fn(String) + Send + 'static,
) -> Result<ChangeLog> {
    let queue = Arc::new(FlushQueue::new(watermark, true));
    let synced_queue = queue.clone();
    let journal = journal.start(
        watermark,
        move |entries| publish_synced(&synced_queue, entries),
        move |error| on_failure(format!("the journal cannot be written: {error}")),
    )?;
    Ok(ChangeLog::through_journal(journal, queue))
}

async fn refill_ids(ids: IdBlocks, db: PgPool, fence: Option<Fence>) {
    let mut interval = tokio::time::interval(REFILL_EVERY);
    loop {
        interval.tick().await;
        if let Err(error) = ids.refill(Housekeeper::new(&db, fence.as_ref())).await {
            tracing::debug!(%error, "refill of id blocks will be retried");
        }
    }
}
