//! A process's view of which life serves which slot.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::RwLock;
use tokio::sync::{Notify, watch};

use super::{LifeId, SLOTS, Slot};

/// Another life and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its id.
    pub life: LifeId,
    /// The display name of its machine.
    pub node: String,
    /// Host and port of its listener for the cluster.
    pub address: String,
}

/// The owner of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process; the slot is open.
    Local,
    /// Another process.
    Remote(Arc<Peer>),
    /// No process at the moment: the slot is moving or being taken over. Requests wait until the placement changes.
    Unassigned,
}

/// The known owner of each slot. It may be stale, which is harmless: a process refuses forwarded requests for slots
/// that it does not serve. Cheap to clone; slots served here are read without a lock.
#[derive(Clone)]
pub struct Placement(Arc<PlacementState>);

struct PlacementState {
    /// The life of this process.
    own_id: LifeId,
    /// The life of each slot, or [`NO_LIFE`]. A slot of this process is listed only while it is open.
    owners: Box<[AtomicI64]>,
    peers: RwLock<HashMap<LifeId, Arc<Peer>>>,
    version: watch::Sender<u64>,
    reload: Notify,
}

/// No life has this id.
const NO_LIFE: i64 = 0;

impl Placement {
    /// The initial view of a life: no slot is served.
    pub fn new(own_id: LifeId) -> Self {
        Self(Arc::new(PlacementState {
            own_id,
            owners: (0..SLOTS).map(|_| AtomicI64::new(NO_LIFE)).collect(),
            peers: RwLock::default(),
            version: watch::Sender::new(0),
            reload: Notify::new(),
        }))
    }

    /// The owner of a slot.
    pub fn owner(&self, slot: Slot) -> Owner {
        let life = self.0.owners[slot.index()].load(Ordering::Acquire);
        if life == self.0.own_id.get() {
            return Owner::Local;
        }
        if life == NO_LIFE {
            return Owner::Unassigned;
        }
        let peers = self.0.peers.read();
        peers.get(&LifeId::new(life)).map_or(Owner::Unassigned, |peer| Owner::Remote(peer.clone()))
    }

    /// Whether another life is in this view: as far as this process knows, it is not over.
    pub fn has_peer(&self, life: LifeId) -> bool {
        self.0.peers.read().contains_key(&life)
    }

    /// The version of this view, incremented with each change.
    pub fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    /// Waits until the version is greater than `since`.
    pub async fn wait_for_change(&self, since: u64) {
        // The sender lives as long as this object.
        let _ = self.0.version.subscribe().wait_for(|version| *version > since).await;
    }

    /// Requests that this view is read from the database again, because a caller found it stale.
    pub fn request_reload(&self) {
        self.0.reload.notify_one();
    }

    /// Waits until a reload is requested.
    pub async fn wait_for_reload_request(&self) {
        self.0.reload.notified().await;
    }

    /// Every other known life.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let peers = self.0.peers.read();
        let mut all: Vec<_> = peers.values().cloned().collect();
        all.sort_by_key(|peer| peer.life);
        all
    }

    /// Number of slots served here.
    pub fn count_here(&self) -> usize {
        let own_id = self.0.own_id.get();
        self.0.owners.iter().filter(|owner| owner.load(Ordering::Relaxed) == own_id).count()
    }

    /// Replaces the other lives and the owners of their slots; `owner` returns `None` for a slot without a process.
    /// Slots of this process stay as [`Placement::open`] and [`Placement::close`] have set them.
    pub fn replace(&self, peers: impl IntoIterator<Item = Peer>, owner: impl Fn(Slot) -> Option<LifeId>) {
        let peers: HashMap<_, _> = peers.into_iter().map(|peer| (peer.life, Arc::new(peer))).collect();
        let has_new_peers = {
            let mut current = self.0.peers.write();
            let has_changed = *current != peers;
            *current = peers;
            has_changed
        };
        let mut has_new_owners = false;
        for slot in Slot::all() {
            let owner = owner(slot);
            if owner != Some(self.0.own_id) {
                has_new_owners |= self.set_owner(slot, owner.map_or(NO_LIFE, LifeId::get));
            }
        }
        if has_new_peers || has_new_owners {
            self.notify();
        }
    }

    /// Marks these slots as served here.
    pub fn open(&self, slots: impl IntoIterator<Item = Slot>) {
        let own_id = self.0.own_id.get();
        if slots.into_iter().fold(false, |has_changed, slot| self.set_owner(slot, own_id) | has_changed) {
            self.notify();
        }
    }

    /// Marks these slots as not served.
    pub fn close(&self, slots: impl IntoIterator<Item = Slot>) {
        if slots.into_iter().fold(false, |has_changed, slot| self.set_owner(slot, NO_LIFE) | has_changed) {
            self.notify();
        }
    }

    /// Returns whether the owner changed.
    fn set_owner(&self, slot: Slot, life: i64) -> bool {
        self.0.owners[slot.index()].swap(life, Ordering::AcqRel) != life
    }

    fn notify(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const HERE: LifeId = LifeId::new(7);
    const THERE: LifeId = LifeId::new(8);

    fn slot(number: u16) -> Slot {
        Slot::new(number).expect("a slot")
    }

    #[test]
    fn a_slot_is_local_only_while_it_is_open() {
        let placement = Placement::new(HERE);
        let peer = Peer { life: THERE, node: "b".to_owned(), address: "b:7400".to_owned() };
        let owner = |slot: Slot| match slot.number() {
            0 => Some(HERE),
            1 => Some(THERE),
            2 => Some(LifeId::new(9)),
            _ => None,
        };
        placement.replace([peer.clone()], owner);
        assert_eq!(placement.owner(slot(0)), Owner::Unassigned, "assigned in the table, but not open yet");
        assert_eq!(placement.owner(slot(1)), Owner::Remote(Arc::new(peer.clone())));
        assert_eq!(placement.owner(slot(2)), Owner::Unassigned, "the address of an unknown life is missing");
        placement.open([slot(0)]);
        assert_eq!((placement.owner(slot(0)), placement.count_here()), (Owner::Local, 1));
        placement.replace([peer], owner);
        assert_eq!(placement.owner(slot(0)), Owner::Local, "a repeated assignment changes nothing");
        placement.close([slot(0)]);
        assert_eq!((placement.owner(slot(0)), placement.count_here()), (Owner::Unassigned, 0));
    }

    #[test]
    fn listeners_are_notified_once_per_change() {
        let placement = Placement::new(HERE);
        let mut changed = Box::pin(placement.wait_for_change(0));
        assert!((&mut changed).now_or_never().is_none());
        placement.open([slot(3), slot(4)]);
        assert!((&mut changed).now_or_never().is_some());
        assert_eq!(placement.version(), 1);
        placement.open([slot(3)]);
        placement.replace([], |_| None);
        assert_eq!(placement.version(), 2, "the slots of this life became unassigned");
        placement.replace([], |_| None);
        assert_eq!(placement.version(), 2);
        assert!(placement.wait_for_change(1).now_or_never().is_some());
        assert!(placement.wait_for_change(2).now_or_never().is_none());
    }
}
