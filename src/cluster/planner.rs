//! The assignment of slots to lives: pure computation, run by any member.

use std::collections::BTreeMap;

use hotline_persistence::cluster::{LifeId, LifeRow, SealRow, Slot, SlotRow};

/// Maximum number of slots that move at a time, of all members together: about a fifth of a second for their companies.
pub const MOVES_MAX: usize = 64;

/// Percentage by which a life may deviate from its share before slots move.
const IMBALANCE_PERCENT: usize = 10;

/// The slots to reassign: those that nobody serves, those of draining lives, and, when nothing else is in progress,
/// some of those whose owners have more than their share by processors.
pub fn plan(lives: &[LifeRow], slots: &[SlotRow], seals: &[SealRow]) -> Vec<(Slot, LifeId)> {
    let mut shares = Shares::of(lives, slots.len());
    if shares.0.is_empty() {
        return Vec::new();
    }
    // The owner of a slot once all moves in progress have ended; `None`: the slot must be assigned.
    let is_taker = |life: LifeId, shares: &Shares| shares.0.contains_key(&life);
    let is_there = |life: LifeId| lives.iter().any(|known| known.life == life);
    let holder = |row: &SlotRow, shares: &Shares| match (row.life, row.next) {
        (Some(_), Some(next)) if is_taker(next, shares) => Some(next),
        (Some(life), _) if is_taker(life, shares) => Some(life),
        _ => None,
    };
    for row in slots {
        if let Some(life) = holder(row, &shares) {
            shares.take(life);
        }
    }
    let mut given = Vec::new();
    for row in slots {
        // The heir decides about the slots of a life that is over.
        let is_left = row.life.is_some_and(|life| !is_there(life));
        if holder(row, &shares).is_none() && !is_left {
            let life = shares.neediest();
            shares.take(life);
            given.push((row.slot, life));
        }
    }
    let is_moving = slots.iter().any(|row| row.next.is_some());
    if given.is_empty() && !is_moving && seals.is_empty() && shares.are_uneven() {
        for row in slots {
            if given.len() == MOVES_MAX {
                break;
            }
            if let Some(life) = row.life
                && let Some(to) = shares.move_from(life)
            {
                given.push((row.slot, to));
            }
        }
    }
    given
}

/// For each life that takes slots: how many it is due, and how many it has.
struct Shares(BTreeMap<LifeId, Share>);

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    due: usize,
    has: usize,
}

impl Shares {
    /// Shares in proportion to processors, by the Webster/Sainte-Laguë method: slots are assigned one by one, each to
    /// the life with the highest ratio of processors to twice its slots plus one. With this rounding, no life's share
    /// grows when another joins.
    fn of(lives: &[LifeRow], slots: usize) -> Self {
        let cores = |life: &LifeRow| u64::try_from(life.cores).unwrap_or(1).max(1);
        let mut takers: Vec<_> =
            lives.iter().filter(|life| !life.draining).map(|life| (life.life, cores(life), 0)).collect();
        takers.sort_by_key(|(life, ..)| *life);
        for _ in 0..slots {
            let next = takers.iter_mut().reduce(|one, other| {
                let wins = other.1 * (2 * one.2 + 1) > one.1 * (2 * other.2 + 1);
                if wins { other } else { one }
            });
            next.into_iter().for_each(|(_, _, due)| *due += 1);
        }
        let due = |due| usize::try_from(due).unwrap_or(usize::MAX);
        Self(takers.into_iter().map(|(life, _, given)| (life, Share { due: due(given), has: 0 })).collect())
    }

    fn take(&mut self, life: LifeId) {
        self.0.entry(life).or_default().has += 1;
    }

    /// The life with the greatest deficit.
    fn neediest(&self) -> LifeId {
        let lacks = |share: &Share| (share.due as i64 - share.has as i64, share.due);
        let most = self.0.iter().max_by_key(|(life, share)| (lacks(share), std::cmp::Reverse(**life)));
        most.map_or(LifeId::new(0), |(life, _)| *life)
    }

    fn are_uneven(&self) -> bool {
        self.0.values().any(|share| share.has.abs_diff(share.due) * 100 > share.due * IMBALANCE_PERCENT)
    }

    /// Moves one slot from a life above its share to the one with the greatest deficit, if there are such lives.
    fn move_from(&mut self, life: LifeId) -> Option<LifeId> {
        let from = self.0.get(&life).filter(|share| share.has > share.due).copied();
        let to = self.neediest();
        let lacks = self.0.get(&to).is_some_and(|share| share.has < share.due);
        from.filter(|_| lacks && to != life)?;
        self.0.entry(life).and_modify(|share| share.has -= 1);
        self.take(to);
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;

    const SLOTS: u16 = 256;

    fn life(number: i64, cores: i32, draining: bool) -> LifeRow {
        let (node, address, at) = (format!("n{number}"), format!("n{number}:1"), DateTime::UNIX_EPOCH);
        LifeRow {
            life: LifeId::new(number),
            node,
            address,
            speaks: 1,
            draining,
            began_at: at,
            beat_at: at,
            beat_age_ms: 0,
            cores,
        }
    }

    fn rows(owner: impl Fn(u16) -> (Option<i64>, Option<i64>)) -> Vec<SlotRow> {
        let row = |number| {
            let (life, next) = owner(number);
            SlotRow {
                slot: Slot::new(number).expect("a slot"),
                life: life.map(LifeId::new),
                next: next.map(LifeId::new),
            }
        };
        (0..SLOTS).map(row).collect()
    }

    /// The rows once a plan is written, and carried out if `moved`.
    fn after(slots: &[SlotRow], plan: &[(Slot, LifeId)], moved: bool) -> Vec<SlotRow> {
        let mut slots = slots.to_vec();
        for (slot, to) in plan {
            let row = &mut slots[slot.index()];
            match row.life {
                None => (row.life, row.next) = (Some(*to), None),
                Some(_) => row.next = Some(*to).filter(|to| Some(*to) != row.life),
            }
        }
        if moved {
            for row in &mut slots {
                row.life = row.next.take().or(row.life);
            }
        }
        slots
    }

    fn counts(slots: &[SlotRow]) -> BTreeMap<Option<i64>, usize> {
        slots.iter().fold(BTreeMap::new(), |mut counts, row| {
            *counts.entry(row.life.map(LifeId::get)).or_default() += 1;
            counts
        })
    }

    fn lives() -> impl Strategy<Value = Vec<LifeRow>> {
        prop::collection::vec((1..16_i32, prop::bool::weighted(0.2)), 1..7).prop_map(|lives| {
            lives.into_iter().zip(1..).map(|((cores, draining), number)| life(number, cores, draining)).collect()
        })
    }

    proptest! {
        #[test]
        fn whatever_it_begins_with_every_slot_ends_with_a_life_that_takes_slots_and_shares_are_even(
            lives in lives(),
            owners in prop::collection::vec((0..8_i64, 0..8_i64), usize::from(SLOTS)),
        ) {
            let is_there = |number: i64| (1..=lives.len() as i64).contains(&number);
            let some = |number: i64| Some(number).filter(|number| is_there(*number));
            let mut slots = rows(|number| {
                let (life, next) = owners[usize::from(number)];
                (some(life), some(next).filter(|next| some(life).is_some() && *next != life))
            });
            let takers: Vec<_> = lives.iter().filter(|life| !life.draining).collect();
            let mut rounds = 0;
            loop {
                let plan = plan(&lives, &slots, &[]);
                prop_assert!(plan.iter().all(|(_, to)| takers.iter().any(|taker| taker.life == *to)));
                let is_rest = plan.is_empty() && slots.iter().all(|row| row.next.is_none());
                if is_rest {
                    break;
                }
                slots = after(&slots, &plan, true);
                rounds += 1;
                prop_assert!(rounds <= 2 + usize::from(SLOTS) / MOVES_MAX + lives.len(), "it does not come to rest");
            }
            if let Some(cores) = Some(takers.iter().map(|life| life.cores as usize).sum::<usize>()).filter(|all| *all > 0) {
                let counts = counts(&slots);
                for taker in &takers {
                    let due = usize::from(SLOTS) * taker.cores as usize / cores;
                    let has = counts.get(&Some(taker.life.get())).copied().unwrap_or_default();
                    prop_assert!(has.abs_diff(due) <= due / 10 + 2, "{has} of {due}");
                }
                prop_assert!(slots.iter().all(|row| takers.iter().any(|taker| row.life == Some(taker.life))));
            }
        }

        #[test]
        fn no_more_move_than_need_to(cores in prop::collection::vec(1..16_i32, 1..7)) {
            let lives: Vec<_> = cores.iter().zip(1..).map(|(cores, number)| life(number, *cores, false)).collect();
            let mut slots = after(&rows(|_| (None, None)), &plan(&lives, &rows(|_| (None, None)), &[]), true);
            prop_assert!(plan(&lives, &slots, &[]).is_empty(), "what was given out evenly stays");
            let joined: Vec<_> = lives.iter().cloned().chain([life(100, cores[0], false)]).collect();
            let due = usize::from(SLOTS) * cores[0] as usize / (cores.iter().sum::<i32>() + cores[0]) as usize;
            let before = slots.clone();
            loop {
                let plan = plan(&joined, &slots, &[]);
                if plan.is_empty() {
                    break;
                }
                prop_assert!(plan.len() <= MOVES_MAX);
                slots = after(&slots, &plan, true);
            }
            let moved = slots.iter().zip(&before).filter(|(now, then)| now.life != then.life).count();
            prop_assert!(moved <= due + 2, "{moved} moved for a share of {due}");
            prop_assert!(slots.iter().zip(&before).all(|(now, then)| now.life == then.life || now.life == Some(LifeId::new(100))));
        }
    }

    #[test]
    fn one_who_joins_waits_while_something_else_is_going_on() {
        let lives = [life(1, 4, false), life(2, 4, false)];
        let all_of_one = rows(|_| (Some(1), None));
        assert_eq!(plan(&lives, &all_of_one, &[]).len(), MOVES_MAX);
        let sealed_at = DateTime::UNIX_EPOCH;
        let seal = SealRow { life: LifeId::new(9), heir: LifeId::new(1), sealed_at, done: true };
        assert_eq!(plan(&lives, &all_of_one, &[seal]).len(), 0, "a takeover was a moment ago");
        let moving = rows(|number| (Some(1), (number == 5).then_some(2)));
        assert_eq!(plan(&lives, &moving, &[]).len(), 0, "some move already");
    }

    #[test]
    fn what_a_life_that_is_over_has_left_is_for_its_heir() {
        let lives = [life(1, 4, false)];
        assert!(plan(&lives, &rows(|_| (Some(9), None)), &[]).is_empty());
        assert_eq!(plan(&lives, &rows(|_| (None, None)), &[]).len(), usize::from(SLOTS));
        assert!(plan(&[life(1, 4, true)], &rows(|_| (Some(1), None)), &[]).is_empty(), "nobody takes them");
        assert!(plan(&[], &rows(|_| (None, None)), &[]).is_empty());
    }
}
