//! Slots, to which companies belong, and lives, which serve them.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::Type;

use crate::CompanyId;

/// Number of slots. A slot holds no data, so having more slots than processes costs nothing.
pub const SLOTS: u16 = 1024;

/// A part of all companies, served by one life. `companies.slot` stores the slot of a company.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// The slot with this number, if it exists.
    pub fn new(number: u16) -> Option<Self> {
        (number < SLOTS).then_some(Self(number))
    }

    /// The slot with a number from the database.
    pub fn from_column(number: i16) -> Option<Self> {
        u16::try_from(number).ok().and_then(Self::new)
    }

    /// The slot of a new company, computed like the database's `hotline_slot`.
    pub fn of_new(company: CompanyId) -> Self {
        let hash = Sha256::digest(company.0.to_be_bytes());
        // The last ten bits of its first two bytes.
        Self(u16::from(hash[0] & 3) << 8 | u16::from(hash[1]))
    }

    /// Every slot, by number.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        (0..SLOTS).map(Self)
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }

    /// Its number as stored.
    pub fn column(self) -> i16 {
        // Lossless: the number is below 1024.
        self.0 as i16
    }

    /// Its index in a list of all slots.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl TryFrom<i16> for Slot {
    type Error = NotASlot;
    fn try_from(number: i16) -> Result<Self, NotASlot> {
        Self::from_column(number).ok_or(NotASlot(number))
    }
}

/// The database returned a number that is not a slot.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{0} is not a slot number")]
pub struct NotASlot(i16);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id of a life, which is one run of one process. PostgreSQL assigns each id only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Type)]
#[serde(transparent)]
#[sqlx(transparent)]
pub struct LifeId(i64);

impl LifeId {
    /// The life with this id, which is positive.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for LifeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_new_companies_match_the_database() {
        // `select c, hotline_slot(c) from unnest(array[1, 2, 3, 1000000007]) c`
        for (company, slot) in [(1, 294), (2, 260), (3, 360), (1_000_000_007, 357)] {
            assert_eq!(Slot::of_new(CompanyId::new(company)).number(), slot, "company {company}");
        }
    }

    #[test]
    fn numbers_beyond_the_last_slot_are_refused() {
        assert_eq!(Slot::new(SLOTS - 1).map(Slot::number), Some(SLOTS - 1));
        assert_eq!((Slot::new(SLOTS), Slot::from_column(-1), Slot::from_column(1024)), (None, None, None));
        assert!(Slot::all().zip(0..).all(|(slot, number)| slot.number() == number && slot.column() == number as i16));
    }
}
