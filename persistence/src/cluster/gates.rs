//! The slots a cluster member serves: each has a gate, which admits or refuses the work of its companies and is
//! checked before the gates of the companies.

use std::sync::atomic::{AtomicU8, Ordering, fence};

use super::{SLOTS, Slot};
use crate::CompanyId;

/// Looks up the slot of a company in the directory. `None` is treated as a shut slot.
pub type SlotOf = Box<dyn Fn(CompanyId) -> Option<Slot> + Send + Sync>;

/// The gates of all slots; initially shut.
pub struct Gates {
    states: Box<[AtomicU8]>,
    slot_of: SlotOf,
}

/// No work of the slot is in progress, and the log refuses its entries.
const SHUT: u8 = 0;
/// Work in progress continues, but none begins.
const CLOSING: u8 = 1;
/// The slot is served here.
const OPEN: u8 = 2;

impl Gates {
    /// All gates shut.
    pub fn new(slot_of: SlotOf) -> Self {
        Self { states: (0..SLOTS).map(|_| AtomicU8::new(SHUT)).collect(), slot_of }
    }

    /// Whether work of a company may begin here. The caller has already counted its work, so either it sees that the
    /// gate is closing, or the closer sees the work.
    pub(crate) fn is_open(&self, company: CompanyId) -> bool {
        fence(Ordering::SeqCst);
        self.state(company) == OPEN
    }

    /// Whether the log refuses entries of a company.
    pub(crate) fn is_shut(&self, company: CompanyId) -> bool {
        self.state(company) == SHUT
    }

    /// The open slots.
    pub(crate) fn open_slots(&self) -> impl Iterator<Item = Slot> {
        Slot::all().filter(|slot| self.states[slot.index()].load(Ordering::SeqCst) == OPEN)
    }

    /// Opens a gate.
    pub(crate) fn open(&self, slot: Slot) {
        self.set(slot, OPEN);
    }

    /// Stops new work from beginning.
    pub(crate) fn close(&self, slot: Slot) {
        self.set(slot, CLOSING);
        fence(Ordering::SeqCst);
    }

    /// Makes the log refuse the slot's entries.
    pub(crate) fn shut(&self, slot: Slot) {
        self.set(slot, SHUT);
    }

    fn set(&self, slot: Slot, state: u8) {
        self.states[slot.index()].store(state, Ordering::SeqCst);
    }

    fn state(&self, company: CompanyId) -> u8 {
        let slot = (self.slot_of)(company);
        slot.map_or(SHUT, |slot| self.states[slot.index()].load(Ordering::SeqCst))
    }
}
