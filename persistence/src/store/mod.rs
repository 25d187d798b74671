//! The store: everything durable in one object, opened first, shared by all actors and handlers, closed last.

mod open;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cluster::{Membership, Role, lives};
use crate::db::Housekeeper;
use crate::error::with_timeout;
use crate::fence::Fence;
use crate::id_blocks::IdBlocks;
use crate::migration::MigrationPolicy;
use crate::probe::Probe;
use crate::scheduler::Scheduler;
use crate::sealed::Keyring;
use crate::{
    ChangeLog, CompanyId, Db, Durability, Error, EventNews, Ownership, Readers, Result, WebhookNews, journal, recovery,
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
    /// Whether this process is standalone or a member of a cluster.
    pub role: Role,
    /// Whether opening migrates the database, and how long it waits for locks.
    pub migration: MigrationPolicy,
}

/// The layer below the actors.
pub struct Store {
    /// Connections for the service's own work that belongs to no company: notifications, sweeps, loading at startup. No
    /// request uses them. In a cluster they are read-only: writes go through [`Store::housekeeper`].
    pub housekeeping: PgPool,
    /// Encrypts secrets.
    pub keys: Keyring,
    /// Connections for frequent reads, each with one plan for all values.
    pub readers: Readers,
    /// The log of live changes.
    pub log: ChangeLog,
    /// Ids of live rows.
    pub ids: IdBlocks,
    /// Listeners for events; `None` if events are disabled.
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
    /// Begins each writing transaction of a cluster member; `None` for a standalone process.
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

impl Store {
    /// Access to the tables for a company: the only way for a request to run a statement, and for a plain change to
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

    /// This process's view of its cluster; `None` for a standalone process.
    pub fn membership(&self) -> Option<&Arc<Membership>> {
        self.membership.as_ref()
    }

    /// Returns whether this process may start an external effect, such as a call to a provider: it is standalone, or
    /// its lease holds. Otherwise another process may have taken over, and would start the same effect.
    pub fn may_act(&self) -> bool {
        self.membership.as_ref().is_none_or(|membership| membership.lease.holds())
    }

    /// Reports that content of earlier events of a company was deleted or erased. Call it after the commit.
    pub fn publish_removal(&self, company: CompanyId) {
        self.events.iter().for_each(|news| news.publish_removal(company));
    }

    /// Drops the state of a company that is closed in this process. Its entries must all be in the tables.
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

    /// Returns a probe that checks whether the database responds.
    pub fn probe(&self) -> Probe {
        self.readers.probe()
    }

    /// Whether the database responds on a housekeeping connection now.
    pub async fn responds(&self) -> bool {
        with_timeout(sqlx::query("select 1").execute(&self.housekeeping)).await.is_ok()
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

    /// Closes the journal, then flushes and ends the persister. No entry may be appended afterwards. If the database
    /// does not answer, entries that are not flushed stay in the journal.
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
        // A failure does no harm: unused ids leave a gap, and the life of a cluster member times out.
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
                // If it continued, it could take the writer's lock, which the next process needs.
                persister.abort();
                return false;
            }
        }
        true
    }

    /// Gives back the reserved ids, and ends the life of a cluster member.
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

/// How long shutdown waits for the persister if it makes progress. What is not flushed by then stays in the journal.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(30);

/// How long shutdown waits for progress of the persister: longer than a flush and its sync take on a busy disk.
const STALL_TIME_MAX: Duration = Duration::from_secs(5);
