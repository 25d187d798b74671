//! Many processes on one database: who serves which company, and how a process that does not any more is kept from
//! writing and from answering.
//!
//! A company is in one of 1024 [`Slot`]s, a slot is served by one *life*, which is one run of one process. Who may write
//! is decided by PostgreSQL's row locks and nothing else: every transaction that writes holds a lock on the row of its
//! life, and a life is ended by deleting that row. Who may answer from memory is decided by the [`Lease`].
//!
//! A process alone has none of this: [`crate::Store::membership`] is `None`.

mod gates;
mod lease;
pub mod lives;
mod moment;
mod of_slots;
mod placement;
mod slot;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::PgPool;
use tokio::task::JoinHandle;

pub use self::gates::{Gates, SlotOf};
pub use self::lease::{LEASE_TIME, Lease, SEALED_FOR};
pub use self::lives::{LifeRow, NewLife, SealRow, SlotRow};
pub use self::moment::Moment;
pub use self::of_slots::OfSlots;
pub use self::placement::{Owner, Peer, Placement};
pub use self::slot::{LifeId, NoSlot, SLOTS, Slot};
use crate::tables::installation_keys::InstallationKey;

/// What a process knows of the cluster it is in.
pub struct Membership {
    /// This run of this process.
    pub life: LifeId,
    /// What people call the machine.
    pub node: String,
    /// Who serves which slot.
    pub placement: Placement,
    /// Until when this life may answer from memory.
    pub lease: Lease,
    /// Connections for what the member says of itself; none: in a test of what stands above.
    pub db: Option<PgPool>,
    peer_key: Arc<InstallationKey>,
    is_retiring: AtomicBool,
    /// Shows that it is there until somebody else does.
    starting: Mutex<Option<Starting>>,
}

/// Beats until it is dropped.
struct Starting(JoinHandle<()>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How often a member shows that it is there: four times in a lease.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);

/// How a process opens the store.
#[derive(Clone, Debug, Default)]
pub enum Role {
    /// It is the only one that writes to its database.
    #[default]
    Alone,
    /// It is one of many, which this says of it.
    Member(NewLife),
}

impl Membership {
    /// A member that knows of no one else yet, and has no lease.
    pub fn new(life: LifeId, node: String, peer_key: InstallationKey) -> Self {
        let placement = Placement::new(life);
        let (lease, is_retiring) = (Lease::default(), AtomicBool::new(false));
        let starting = Mutex::default();
        Self { life, node, placement, lease, db: None, peer_key: Arc::new(peer_key), is_retiring, starting }
    }

    /// Shows that it is there while the rest of the process starts, which may take longer than others wait for a beat.
    pub(crate) fn begin_beating(&self, db: PgPool) {
        let (life, lease) = (self.life, self.lease.clone());
        let beats = tokio::spawn(async move {
            loop {
                match lives::beat(&db, life).await {
                    Ok(sent) => lease.extend(sent),
                    Err(error) => tracing::debug!(%error, "a process that starts is not seen"),
                }
                tokio::time::sleep(BEAT_EVERY).await;
            }
        });
        *self.starting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Starting(beats));
    }

    /// Whoever has started the process shows that it is there from here on.
    pub fn has_started(&self) {
        drop(self.starting.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The process is about to stop: whoever sends it requests is to send them to others from here on.
    pub fn begin_retiring(&self) {
        self.is_retiring.store(true, Ordering::Release);
    }

    /// Whether it is.
    pub fn is_retiring(&self) -> bool {
        self.is_retiring.load(Ordering::Acquire)
    }

    /// What the members of a cluster sign with what they say to each other.
    pub fn peer_key(&self) -> &InstallationKey {
        &self.peer_key
    }
}
