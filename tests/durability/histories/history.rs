//! A random history of one person, and the order in which the provider's calls about it come.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::person::{Key, Keys, Person};

/// How many steps a history has before its end.
const STEPS: std::ops::RangeInclusive<usize> = 3..=10;

/// Seconds between two steps, and between two people of a group: the time of deletion is all that tells deleted
/// messages apart.
const STEP_S: i64 = 20;
const PERSON_S: i64 = 5;

/// Seconds of the longest history: within the ten minutes by which a provider's clock may be wrong
/// (`actors/src/channels/inbox.rs`).
pub const LONGEST_S: i64 = (*STEPS.end() as i64 + 2) * STEP_S;

/// The most numbers, and the most ids, that a person has one after the other.
const KEYS_MAX: usize = 3;

/// One in this many steps comes together with the one before it, late, or twice.
const AT_ONCE_ONE_IN: u32 = 3;
const LATE_ONE_IN: u32 = 4;
const TWICE_ONE_IN: u32 = 4;

/// A late step comes at most this many waves late.
const LATE_MAX: usize = 3;

const EMOJI: [&str; 3] = ["\u{1F44D}", "\u{2764}", "\u{1F389}"];

/// Who has written or reacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Contact,
    Company,
}

/// A step of a history. Messages are named by the index of their step.
#[derive(Clone, Debug)]
pub enum Act {
    /// The person writes to the company, or in their group.
    Writes {
        keys: Keys,
        in_group: bool,
    },
    /// The company answers in the provider's own app.
    Answers {
        to: Keys,
    },
    /// The author of a message changes it, or deletes it.
    Edits {
        of: usize,
        side: Side,
    },
    Revokes {
        of: usize,
        side: Side,
    },
    /// Somebody reacts, or removes the reaction (`None`).
    Reacts {
        of: usize,
        side: Side,
        emoji: Option<&'static str>,
    },
    /// The status of an answer changes.
    ChangesStatus {
        of: usize,
        status: &'static str,
    },
    /// The person has other keys from now on. A key that stays the same may be named, too.
    Changes {
        old: Keys,
        new: Keys,
    },
    /// The provider's notice of something else.
    Notice {
        keys: Keys,
    },
    /// A user merges the contacts whose merge is suggested.
    Merges,
}

impl Act {
    /// The keys that the provider links to one person. A message in a group makes no contact of its author.
    pub fn linked(&self) -> BTreeSet<Key> {
        match self {
            Self::Writes { keys, in_group: false } | Self::Answers { to: keys } => keys.all(),
            Self::Changes { old, new } => old.all().union(&new.all()).copied().collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// A history: its steps in the order in which they happen, and the waves in which the provider's calls come.
pub struct History {
    pub person: Person,
    pub steps: Vec<Act>,
    /// The steps of each wave come at once. A step may come more than once.
    pub waves: Vec<Vec<usize>>,
    since_s: i64,
}

impl History {
    /// The history of a seed, which begins at `since_s`. Its steps and waves follow from the seed alone.
    pub fn of(seed: u64, since_s: i64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let person = Person::new(seed, &mut random);
        let mut draft = Draft { person, steps: Vec::new(), number: 0, id: 0 };
        for _ in 0..random.random_range(STEPS) {
            let step = draft.step(&mut random);
            draft.steps.push(step);
        }
        draft.end(&mut random);
        let waves = waves(&draft.steps, &mut random);
        Self { person: draft.person, steps: draft.steps, waves, since_s }
    }

    /// When a step happens, in seconds since 1970.
    pub fn at_s(&self, step: usize) -> i64 {
        self.since_s + step as i64 * STEP_S + self.person.place_in_group() as i64 * PERSON_S
    }

    /// The provider's id of what a step sends: a message, an edit, a deletion, a reaction or a notice.
    pub fn message_id(&self, step: usize) -> String {
        format!("wamid.{}.{step}", self.person.seed)
    }

    /// The text of a message, an edit or a notice.
    pub fn text(&self, step: usize) -> String {
        format!("{}/{step}", self.person.seed)
    }

    /// The first wave of a step.
    pub fn wave_of(&self, step: usize) -> Option<usize> {
        self.waves.iter().position(|wave| wave.contains(&step))
    }

    /// How many calls the provider makes.
    pub fn calls(&self) -> usize {
        let is_call = |step: &&usize| !matches!(self.steps[**step], Act::Merges);
        self.waves.iter().flatten().filter(is_call).count()
    }
}

/// A history that is being written.
struct Draft {
    person: Person,
    steps: Vec<Act>,
    /// The indices of the number and the id that the person has at present.
    number: usize,
    id: usize,
}

impl Draft {
    fn step(&mut self, random: &mut StdRng) -> Act {
        let found = match random.random_range(0..100) {
            0..=36 => None,
            37..=46 => Some(Act::Answers { to: self.keys(random) }),
            47..=56 => self.group_message(),
            57..=65 => self.random_message(random, |_, _| true).map(|(of, side)| Act::Edits { of, side }),
            66..=70 => self.random_message(random, |_, _| true).map(|(of, side)| Act::Revokes { of, side }),
            71..=81 => self.reacts(random),
            82..=86 => self.changes_status(random),
            87..=90 => self.changes_number(random),
            91..=93 => self.changes_id(random),
            94..=96 => self.notice(random),
            _ => Some(Act::Merges),
        };
        // If this step is not possible, the person writes.
        found.unwrap_or_else(|| Act::Writes { keys: self.keys(random), in_group: false })
    }

    /// Ends a history: all keys of the person are linked, if they were not before, and the person has written.
    fn end(&mut self, random: &mut StdRng) {
        let is_linked = linked_sets(&self.steps).len() <= 1;
        let both = Keys { number: Some((self.number, random.random())), id: Some(self.id) };
        let keys = if is_linked { self.keys(random) } else { both };
        self.steps.push(Act::Writes { keys, in_group: false });
        // That message may have named a key that was unknown before.
        if linked_sets(&self.steps).len() > 1 {
            self.steps.push(Act::Writes { keys: both, in_group: false });
        }
    }

    /// The keys that the provider names: a number in any spelling, an id in its place, or both.
    fn keys(&self, random: &mut StdRng) -> Keys {
        let (number, id) = (Some((self.number, random.random())), Some(self.id));
        match random.random_range(0..4) {
            0 => Keys { number: None, id },
            1 | 2 => Keys { number, id: None },
            _ => Keys { number, id },
        }
    }

    /// A message in the group, where the person is always named by one key, so that a reaction replaces an earlier one.
    /// `None` once the person has another key.
    fn group_message(&self) -> Option<Act> {
        let is_hidden = self.person.is_hidden_in_group;
        let has_key = if is_hidden { self.id == 0 } else { self.number == 0 };
        let keys = group_keys(&self.person);
        has_key.then_some(Act::Writes { keys, in_group: true })
    }

    /// A random message that is wanted and not deleted, and its author; `None` if there is none.
    fn random_message(&self, random: &mut StdRng, is_wanted: impl Fn(Side, bool) -> bool) -> Option<(usize, Side)> {
        let is_revoked =
            |of: usize| self.steps.iter().any(|step| matches!(step, Act::Revokes { of: it, .. } if *it == of));
        let messages = self.steps.iter().enumerate().filter_map(|(index, step)| {
            let (side, in_group) = match step {
                Act::Writes { in_group, .. } => (Side::Contact, *in_group),
                Act::Answers { .. } => (Side::Company, false),
                _ => return None,
            };
            (!is_revoked(index) && is_wanted(side, in_group)).then_some((index, side))
        });
        messages.collect::<Vec<_>>().choose(random).copied()
    }

    fn reacts(&self, random: &mut StdRng) -> Option<Act> {
        let side = if random.random_ratio(1, 4) { Side::Company } else { Side::Contact };
        let (of, _) = self.random_message(random, |_, in_group| {
            !in_group || side == Side::Contact && self.group_message().is_some()
        })?;
        let last = self.steps.iter().rev().find_map(|step| match step {
            Act::Reacts { of: it, side: by, emoji } if (*it, *by) == (of, side) => Some(*emoji),
            _ => None,
        });
        let is_taken_back = last.flatten().is_some() && random.random();
        let emoji = if is_taken_back { None } else { EMOJI.choose(random).copied() };
        Some(Act::Reacts { of, side, emoji })
    }

    fn changes_status(&self, random: &mut StdRng) -> Option<Act> {
        let (of, _) = self.random_message(random, |side, _| side == Side::Company)?;
        Some(Act::ChangesStatus { of, status: if random.random() { "delivered" } else { "read" } })
    }

    /// The person has a new number; the id is not named, named unchanged, or new as well.
    fn changes_number(&mut self, random: &mut StdRng) -> Option<Act> {
        let number = Some((self.number, random.random()));
        let next = Some((self.number + 1, random.random()));
        let (old_id, new_id) = match random.random_range(0..3) {
            0 => (None, None),
            1 => (Some(self.id), None),
            _ => (Some(self.id), Some(self.id + 1)),
        };
        let old = Keys { number, id: old_id };
        if self.number + 1 >= KEYS_MAX || self.id + 1 >= KEYS_MAX || !self.is_known(&old) {
            return None;
        }
        self.number += 1;
        self.id += usize::from(new_id.is_some());
        Some(Act::Changes { old, new: Keys { number: next, id: new_id } })
    }

    /// The person has a new id; the number is named, or not.
    fn changes_id(&mut self, random: &mut StdRng) -> Option<Act> {
        let number = random.random::<bool>().then(|| (self.number, random.random()));
        let old = Keys { number, id: Some(self.id) };
        if self.id + 1 >= KEYS_MAX || !self.is_known(&old) {
            return None;
        }
        self.id += 1;
        Some(Act::Changes { old, new: Keys { number, id: Some(self.id) } })
    }

    /// A notice about a person who has an open ticket: about others, it has no effect.
    fn notice(&self, random: &mut StdRng) -> Option<Act> {
        let keys = self.keys(random);
        self.is_known(&keys).then_some(Act::Notice { keys })
    }

    fn is_known(&self, keys: &Keys) -> bool {
        self.steps.iter().any(|step| !step.linked().is_disjoint(&keys.all()))
    }
}

/// The keys by which a person is named in their group.
pub fn group_keys(person: &Person) -> Keys {
    if person.is_hidden_in_group {
        Keys { number: None, id: Some(0) }
    } else {
        Keys { number: Some((0, false)), id: None }
    }
}

/// The keys that these steps name, in one set for each person they appear to be of.
fn linked_sets(steps: &[Act]) -> Vec<BTreeSet<Key>> {
    let mut sets: Vec<BTreeSet<Key>> = Vec::new();
    for keys in steps.iter().map(Act::linked).filter(|keys| !keys.is_empty()) {
        let (touched, others): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| !set.is_disjoint(&keys));
        sets = others;
        sets.push(touched.into_iter().flatten().chain(keys).collect());
    }
    sets
}

/// The order in which the provider's calls come: several at once, some late, some twice.
///
/// A provider reports a change of keys or another notice only of a person who has a conversation: the call comes after
/// another call that names one of the keys.
fn waves(steps: &[Act], random: &mut StdRng) -> Vec<Vec<usize>> {
    let mut wave_numbers: Vec<usize> = Vec::with_capacity(steps.len());
    let mut waves: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut now = 0;
    for (step, act) in steps.iter().enumerate() {
        if step > 0 && !random.random_ratio(1, AT_ONCE_ONE_IN) {
            now += 1;
        }
        let is_late = random.random_ratio(1, LATE_ONE_IN);
        let delay = if is_late { random.random_range(1..=LATE_MAX) } else { 0 };
        let earliest = match act {
            Act::Changes { old: keys, .. } | Act::Notice { keys } => {
                let is_linked = |(_, earlier): &(&usize, &Act)| !earlier.linked().is_disjoint(&keys.all());
                wave_numbers.iter().zip(steps).filter(is_linked).map(|(wave, _)| wave + 1).min()
            }
            _ => None,
        };
        let number = (now + delay).max(earliest.unwrap_or(0));
        wave_numbers.push(number);
        let mut add = |number: usize, random: &mut StdRng| {
            let wave = waves.entry(number).or_default();
            wave.insert(random.random_range(0..=wave.len()), step);
        };
        add(number, random);
        if random.random_ratio(1, TWICE_ONE_IN) && !matches!(act, Act::Merges) {
            add(number + random.random_range(0..=LATE_MAX), random);
        }
    }
    waves.into_values().collect()
}
