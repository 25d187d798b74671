//! Many processes on one database: which process serves which company, and how a process that lost a company is kept
//! from writing and answering for it.
//!
//! A company is in one of 1024 [`Slot`]s; a slot is served by one *life*, which is one run of one process. PostgreSQL
//! row locks alone decide who may write: every writing transaction holds a lock on the row of its life, and deleting
//! that row ends the life. The [`Lease`] decides who may answer from memory.
//!
//! A standalone process uses none of this: [`crate::Store::membership`] is `None`.

mod gates;
mod lease;
pub mod lives;
mod moment;
mod placement;
mod slot;
mod slot_filter;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::PgPool;
use tokio::task::JoinHandle;

pub use self::gates::{Gates, SlotOf};
pub use self::lease::{LEASE_TIME, Lease, SEALED_FOR};
pub use self::lives::{LifeRow, NewLife, SealRow, SlotRow};
pub use self::moment::Moment;
pub use self::placement::{Owner, Peer, Placement};
pub use self::slot::{LifeId, NotASlot, SLOTS, Slot};
pub use self::slot_filter::SlotFilter;
use crate::tables::installation_keys::InstallationKey;

/// A process's view of its cluster.
pub struct Membership {
    /// This run of this process.
    pub life: LifeId,
    /// The display name of the machine.
    pub node: String,
    /// Which life serves which slot.
    pub placement: Placement,
    /// How long this life may answer from memory.
    pub lease: Lease,
    /// Connections for the member's own rows; `None` in tests of upper layers.
    pub db: Option<PgPool>,
    peer_key: Arc<InstallationKey>,
    is_retiring: AtomicBool,
    /// Sends heartbeats until the process has started.
    startup_heartbeats: Mutex<Option<StartupHeartbeats>>,
}

/// Sends heartbeats until dropped.
struct StartupHeartbeats(JoinHandle<()>);

impl Drop for StartupHeartbeats {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Heartbeat interval: a lease lasts four of them.
pub const BEAT_INTERVAL: Duration = Duration::from_millis(500);

/// The role in which a process opens the store.
#[derive(Clone, Debug, Default)]
pub enum Role {
    /// It is the only process that writes to its database.
    #[default]
    Standalone,
    /// It is one of many, described by the new life.
    Member(NewLife),
}

impl Membership {
    /// A member that knows no others yet and has no lease.
    pub fn new(life: LifeId, node: String, peer_key: InstallationKey) -> Self {
        let placement = Placement::new(life);
        let (lease, is_retiring) = (Lease::default(), AtomicBool::new(false));
        let startup_heartbeats = Mutex::default();
        Self { life, node, placement, lease, db: None, peer_key: Arc::new(peer_key), is_retiring, startup_heartbeats }
    }

    /// Sends heartbeats while the rest of the process starts: that may take longer than other members wait before they
    /// end this life.
    pub(crate) fn start_heartbeats(&self, db: PgPool) {
        let (life, lease) = (self.life, self.lease.clone());
        let heartbeats = tokio::spawn(async move {
            loop {
                // This life commits nothing before it serves.
                match lives::beat(&db, life, 0).await {
                    Ok(sent_at) => lease.extend(sent_at),
                    Err(error) => tracing::debug!(%error, "heartbeat failed during startup; will retry"),
                }
                tokio::time::sleep(BEAT_INTERVAL).await;
            }
        });
        *self.startup_heartbeats.lock() = Some(StartupHeartbeats(heartbeats));
    }

    /// Ends the startup heartbeats: from now on the running process sends them.
    pub fn end_startup_heartbeats(&self) {
        drop(self.startup_heartbeats.lock().take());
    }

    /// The process is about to stop: clients should send requests to other members from now on.
    pub fn begin_retiring(&self) {
        self.is_retiring.store(true, Ordering::Release);
    }

    /// Whether the process is about to stop.
    pub fn is_retiring(&self) -> bool {
        self.is_retiring.load(Ordering::Acquire)
    }

    /// The key with which cluster members sign their messages.
    pub fn peer_key(&self) -> &InstallationKey {
        &self.peer_key
    }
}
