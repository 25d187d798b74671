//! A person who writes: their numbers, in every spelling, and the ids that the provider uses in place of a number.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::rngs::StdRng;

/// How many people are in a group.
pub const GROUP_SIZE: u64 = 4;

/// The spellings that numbers of a country have.
#[derive(Clone, Copy, Debug)]
enum Country {
    Brazil,
    Mexico,
    Argentina,
    UnitedStates,
}

/// A person whose keys no other person has.
#[derive(Clone, Debug)]
pub struct Person {
    pub seed: u64,
    country: Country,
    /// Whether the provider names the person in the group by their id; if not, always by their number.
    pub is_hidden_in_group: bool,
}

/// What identifies a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A number, counted from the first one of the person (0).
    Number(usize),
    /// An id of the provider, counted from the first one of the person (0).
    Id(usize),
}

/// The keys of a person that the provider names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keys {
    /// Which number, and whether it is in the other spelling.
    pub number: Option<(usize, bool)>,
    pub id: Option<usize>,
}

impl Keys {
    pub fn all(&self) -> BTreeSet<Key> {
        let number = self.number.map(|(number, _)| Key::Number(number));
        number.into_iter().chain(self.id.map(Key::Id)).collect()
    }
}

impl Person {
    pub fn new(seed: u64, random: &mut StdRng) -> Self {
        use Country::{Argentina, Brazil, Mexico, UnitedStates};
        let country = [Brazil, Brazil, Mexico, Argentina, UnitedStates][random.random_range(0..5)];
        Self { seed, country, is_hidden_in_group: random.random() }
    }

    pub fn name(&self) -> String {
        format!("Person {}", self.seed)
    }

    /// A number in one of its spellings, as the provider writes it.
    pub fn number(&self, (number, is_other): (usize, bool)) -> String {
        // No person has more than eight.
        let unique = 8 * self.seed + number as u64;
        match (self.country, is_other) {
            (Country::Brazil, false) => format!("551199{unique:07}"),
            (Country::Brazil, true) => format!("55119{unique:07}"),
            (Country::Mexico, false) => format!("52155{unique:08}"),
            (Country::Mexico, true) => format!("5255{unique:08}"),
            (Country::Argentina, false) => format!("54911{unique:08}"),
            (Country::Argentina, true) => format!("5411{unique:08}"),
            (Country::UnitedStates, _) => format!("1415{unique:07}"),
        }
    }

    /// An id that the provider has in place of a number.
    pub fn id(&self, id: usize) -> String {
        format!("US.{:014}", 8 * self.seed + id as u64)
    }

    /// Which group they are in.
    pub fn group(&self) -> u64 {
        self.seed / GROUP_SIZE
    }

    /// The place of the person in the group, from 0.
    pub fn place_in_group(&self) -> u64 {
        self.seed % GROUP_SIZE
    }

    pub fn number_of(&self, keys: &Keys) -> Option<String> {
        keys.number.map(|number| self.number(number))
    }

    pub fn id_of(&self, keys: &Keys) -> Option<String> {
        keys.id.map(|id| self.id(id))
    }

    /// How a key may be written.
    pub fn spellings(&self, key: Key) -> BTreeSet<String> {
        match key {
            Key::Number(number) => [false, true].into_iter().map(|is_other| self.number((number, is_other))).collect(),
            Key::Id(id) => BTreeSet::from([self.id(id)]),
        }
    }
}

/// The provider's id of a group.
pub fn group_id(group: u64) -> String {
    format!("Y2FwaV9ncm91cDo{group:08}")
}
