//! How the store is opened: the checks, the claim to the tables, the recovery, and what then runs in the background.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::PgPool;
use tokio::task::JoinHandle;

use super::{Store, StoreOptions};
use crate::change_log::publish_synced;
use crate::clock;
use crate::cluster::{LifeId, Membership, NewLife, Role, lives};
use crate::db::Housekeeper;
use crate::error::with_timeout;
use crate::fence::Fence;
use crate::id_blocks::IdBlocks;
use crate::journal::{DirLock, JournalError, RecoveredJournal};
use crate::persister::{self, Claim, FencingToken, FlushQueue, Writer};
use crate::pool::{Purpose, WriterClaim};
use crate::scheduler::Scheduler;
use crate::sealed::Keyring;
use crate::tables::secret_keys::{self, NewFile};
use crate::tables::{audit_log, events, idempotency_keys, installation_keys};
use crate::writer_lock::{DataFolder, wait_for_writer_exit};
use crate::{ChangeLog, Durability, Error, EventNews, Readers, Result, journal, migration, pool, recovery};

/// How often the id blocks are checked: far more often than half a block can be used up.
const REFILL_EVERY: Duration = Duration::from_secs(20);

impl Store {
    /// Migrates and recovers, then starts the journal and the persister.
    ///
    /// `on_failure` is called when changes can no longer be made durable: the journal's disk failed, another process
    /// took over as the database's writer, or the database of a cluster has lost commits. Memory is then ahead of the
    /// disk, so the process must stop.
    ///
    /// # Errors
    /// When the database or the journal cannot be opened, or they do not belong together.
    pub async fn open(
        mut options: StoreOptions,
        on_failure: impl Fn(String) + Clone + Send + 'static,
    ) -> Result<Arc<Self>> {
        let connections = match options.role {
            Role::Standalone => pool::STANDALONE_CONNECTIONS_MAX,
            Role::Member(_) => pool::MEMBER_CONNECTIONS_MAX,
        };
        options.database = pool::prepare(&options.database, Purpose::Serve { connections }).await?;
        let mut prepared = Preparation::prepare(&options).await?;
        let missing_keys = prepared.open_keys(&options).await?;
        let role_parts = match &options.role {
            Role::Standalone => {
                let journal = open_journal(&options.journal_dir, options.journal.clone(), prepared.lock.take()).await?;
                open_standalone(&options, journal, &prepared, on_failure.clone()).await?
            }
            Role::Member(new_life) => open_member(&options, new_life, &prepared).await?,
        };
        if matches!(options.role, Role::Standalone) {
            update_key_dependents(&prepared.housekeeping, &options.keys, &missing_keys).await?;
        }
        let life = role_parts.membership.as_ref().map(|membership| membership.life);
        prepared.reconnect_fenced(&options, life).await;
        Ok(Arc::new(Self::start(options, prepared, role_parts, on_failure)))
    }

    /// Starts what runs in the background.
    fn start(
        options: StoreOptions,
        prepared: Preparation,
        role_parts: RoleParts,
        on_failure: impl Fn(String) + Clone + Send + 'static,
    ) -> Self {
        let Preparation { housekeeping, lock: _, claim, events } = prepared;
        let RoleParts { writes, log, token, ids, recovered, membership } = role_parts;
        let life = membership.as_ref().map(|membership| membership.life);
        let fence = life.map(Fence::new);
        fence.iter().for_each(|fence| spawn_fence_watch(fence.clone(), on_failure.clone()));
        if let Some(news) = &events {
            log.queue().set_news(news.clone());
        }
        let writer = Writer::new(writes.clone(), claim, token, events.clone());
        let persister = start_persister(&log, writer, on_failure);
        let refiller = tokio::spawn(refill_ids(ids.clone(), housekeeping.clone(), fence.clone()));
        Self {
            requests: pool::connect_requests(options.database.clone(), options.events, life),
            readers: Readers::new(options.database, life),
            keys: options.keys,
            housekeeping,
            log,
            ids,
            events,
            webhooks: Arc::default(),
            recovered,
            scheduler: Scheduler::new(pool::request_shares()),
            writes,
            persister: Mutex::new(Some(persister)),
            refiller,
            membership,
            fence,
        }
    }
}

/// What every role needs before it claims the tables.
struct Preparation {
    housekeeping: PgPool,
    /// The lock of the journal's folder; `None` in a cluster.
    lock: Option<DirLock>,
    claim: Arc<WriterClaim>,
    events: Option<Arc<EventNews>>,
}

impl Preparation {
    /// Waits for the previous writer, compares the tables with the journal, and migrates.
    async fn prepare(options: &StoreOptions) -> Result<Self> {
        // The process has no life yet, so its transactions need no fence (a lock of the life's row).
        let housekeeping = pool::connect_housekeeping(options.database.clone(), None);
        let lock = match options.role {
            Role::Standalone => Some(lock_journal(&options.journal_dir).await?),
            Role::Member(_) => None,
        };
        let claim = Arc::new(match &lock {
            Some(_) => WriterClaim::of(data_folder(&options.journal_dir)?),
            None => WriterClaim::default(),
        });
        wait_for_writer_exit(&housekeeping, claim.folder()).await?;
        recovery::refuse_older_database(&housekeeping, &options.journal_dir).await?;
        migration::migrate(&housekeeping, options.migration).await?;
        let events = options.events.then(Arc::<EventNews>::default);
        if let Err(error) = create_partitions(&housekeeping, events.is_some()).await {
            tracing::info!(%error, "some tables have no partition for today yet; will retry");
        }
        Ok(Self { housekeeping, lock, claim, events })
    }

    /// Opens the key file, and returns the keys that it lacks.
    async fn open_keys(&self, options: &StoreOptions) -> Result<Vec<String>> {
        match &options.role {
            Role::Standalone => secret_keys::begin_service(&self.housekeeping, &options.keys).await,
            // All members sign with one key, which each of them must be able to open: a missing key is an error.
            Role::Member(_) => {
                secret_keys::begin(&self.housekeeping, &options.keys, NewFile::Create).await?;
                Ok(Vec::new())
            }
        }
    }

    /// Reopens a cluster member's connections for its life: from now on they only read, except in transactions that
    /// begin with the life's fence.
    async fn reconnect_fenced(&mut self, options: &StoreOptions, life: Option<LifeId>) {
        if life.is_some() {
            self.housekeeping.close().await;
            self.housekeeping = pool::connect_housekeeping(options.database.clone(), life);
        }
    }
}

/// Calls `on_failure` when another process ends this process's life.
fn spawn_fence_watch(fence: Fence, on_failure: impl Fn(String) + Send + 'static) {
    tokio::spawn(async move {
        fence.wait_for_end().await;
        on_failure("another process of the cluster has fenced this process".to_owned());
    });
}

fn start_persister(log: &ChangeLog, writer: Writer, on_failure: impl Fn(String) + Send + 'static) -> JoinHandle<()> {
    persister::start(log.shared_queue(), log.journal().cloned(), writer, move |error| {
        on_failure(format!("the persister cannot continue: {error}"));
    })
}

/// What differs between a standalone process and a cluster member.
struct RoleParts {
    writes: PgPool,
    log: ChangeLog,
    token: FencingToken,
    ids: IdBlocks,
    recovered: recovery::RecoveryReport,
    membership: Option<Arc<Membership>>,
}

/// Disconnects channels and webhooks whose key is missing, and reconnects those whose key was found.
async fn update_key_dependents(db: &PgPool, keys: &Keyring, missing_keys: &[String]) -> Result<()> {
    let (channels, webhooks) = secret_keys::update_dependents(db, keys).await?;
    if !missing_keys.is_empty() {
        tracing::warn!(
            keys = missing_keys.join(", "), key_file = %keys.path().display(), channels, webhooks,
            "keys that encrypt credentials are missing: channels and webhooks with such credentials are disconnected, \
             and no credentials can be stored. Put the key file back and restart; if a key is lost, run `hotline secret abandon`"
        );
    }
    Ok(())
}

/// Creates the current partitions before anything is written: PostgreSQL refuses a row whose partition is attached
/// while its statement runs.
async fn create_partitions(db: &PgPool, with_events: bool) -> Result<()> {
    let now = clock::now();
    if with_events {
        events::create_partitions(db, now).await?;
    }
    idempotency_keys::create_partitions(db, now).await?;
    audit_log::create_partitions(db, now).await
}

/// Claims the database for a standalone process, and replays what an earlier run left in the journal.
async fn open_standalone(
    options: &StoreOptions,
    mut journal: RecoveredJournal,
    Preparation { housekeeping, claim, events, .. }: &Preparation,
    on_failure: impl Fn(String) + Send + 'static,
) -> Result<RoleParts> {
    let writes = pool::connect_writer(options.database.clone(), claim.clone());
    let epoch = recovery::take_ownership(&writes).await?;
    // Replay with either durability: the entries left in the journal were acknowledged.
    let messages = pool::connect_replay(options.database.clone());
    let connections = recovery::ReplayConnections { writes: &writes, messages: &messages, claim };
    let recovered = recovery::replay(connections, &mut journal, epoch, events.clone()).await?;
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
    new_life: &NewLife,
    Preparation { housekeeping, claim, .. }: &Preparation,
) -> Result<RoleParts> {
    if options.journal_dir.exists() {
        let journal = open_journal(&options.journal_dir, options.journal.clone(), None).await?;
        recovery::refuse_unreplayed(housekeeping, &options.journal_dir, &journal).await?;
    }
    lives::check_clock(housekeeping).await?;
    let peer_key = installation_keys::find_or_create(housekeeping, &options.keys, PEER_KEY).await?;
    let life = lives::begin(housekeeping, new_life).await?;
    let writes = pool::connect_shared_writer(options.database.clone(), life, claim.clone());
    // Take the shared lock now, not with the first change: a standalone process must not start meanwhile.
    with_timeout(async { writes.acquire().await.map(drop) }).await.map_err(|error| match error {
        Error::Unavailable(_) => Error::NotOwner,
        error => error,
    })?;
    let token = FencingToken { claim: Claim::Life(life), journal: lives::journal_of(life) };
    let log = ChangeLog::through_database(Arc::new(FlushQueue::new(0, false)));
    let db = pool::connect_member(options.database.clone(), life);
    let mut membership = Membership::new(life, new_life.node.clone(), peer_key);
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
        create_private_dir(&dir)?;
        Ok::<_, Error>(journal::lock(&dir)?)
    };
    tokio::task::spawn_blocking(lock).await.map_err(|error| Error::Unavailable(error.to_string()))?
}

fn data_folder(dir: &Path) -> Result<DataFolder> {
    DataFolder::of(dir).map_err(|error| Error::Unavailable(format!("read {}: {error}", dir.display())))
}

/// Creates the journal's directory. It contains conversations, so only its owner may read it.
fn create_private_dir(dir: &Path) -> Result<()> {
    if dir.exists() {
        return Ok(());
    }
    let result = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    Ok(result.map_err(|source| JournalError::Io { action: "create", path: dir.to_owned(), source })?)
}

/// Opens and verifies the journal. `lock`: that of its directory, if this process holds it already.
async fn open_journal(dir: &Path, options: journal::Options, lock: Option<DirLock>) -> Result<RecoveredJournal> {
    let dir = dir.to_owned();
    let open = move || {
        create_private_dir(&dir)?;
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
