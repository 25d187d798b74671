//! Which slots a member of a cluster serves: one gate each, before the doors of the companies.

use std::sync::atomic::{AtomicU8, Ordering, fence};

use super::{SLOTS, Slot};
use crate::CompanyId;

/// The slot of a company, as the directory has it.
pub type SlotOf = Box<dyn Fn(CompanyId) -> Option<Slot> + Send + Sync>;

/// The gates of all slots; closed at first.
pub struct Gates {
    states: Box<[AtomicU8]>,
    slot_of: SlotOf,
}

/// Nothing of the slot is under way, and the log takes nothing of it.
const SHUT: u8 = 0;
/// What is under way goes on, and nothing begins.
const CLOSING: u8 = 1;
/// The slot is served here.
const OPEN: u8 = 2;

impl Gates {
    /// All closed.
    pub fn new(slot_of: SlotOf) -> Self {
        Self { states: (0..SLOTS).map(|_| AtomicU8::new(SHUT)).collect(), slot_of }
    }

    /// Whether work of a company may begin here. Who asks has counted itself before: either it sees that the gate is
    /// closing, or whoever closes it sees the work.
    pub(crate) fn is_open(&self, company: CompanyId) -> bool {
        fence(Ordering::SeqCst);
        self.state(company) == OPEN
    }

    /// Whether the log takes entries of a company.
    pub(crate) fn is_shut(&self, company: CompanyId) -> bool {
        self.state(company) == SHUT
    }

    /// Whether a company is in one of these slots.
    pub(crate) fn is_in(&self, company: CompanyId, slot: Slot) -> bool {
        (self.slot_of)(company) == Some(slot)
    }

    /// Those that are open.
    pub(crate) fn open_slots(&self) -> impl Iterator<Item = Slot> {
        Slot::all().filter(|slot| self.states[slot.index()].load(Ordering::SeqCst) == OPEN)
    }

    /// Opens a gate.
    pub(crate) fn open(&self, slot: Slot) {
        self.set(slot, OPEN);
    }

    /// Lets nothing begin any more.
    pub(crate) fn close(&self, slot: Slot) {
        self.set(slot, CLOSING);
        fence(Ordering::SeqCst);
    }

    /// Has the log take nothing any more.
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
