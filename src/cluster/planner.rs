//! The assignment of slots to lives: pure computation, run by any member.

use std::collections::BTreeMap;

use hotline_persistence::cluster::{LifeId, LifeRow, SealRow, Slot, SlotRow};

/// Maximum number of slots that a plan moves for balance, and that a member moves as one group. Requests of a group's
/// companies wait about 0.2 s.
pub const MOVES_MAX: usize = 64;

/// Percentage by which a life may deviate from its share before slots move.
const IMBALANCE_PERCENT: usize = 10;

/// The slots to reassign: those that no process serves, those of draining lives, and, when nothing else is in progress,
/// some of those whose owners have more than their share, which is proportional to their processors.
pub fn plan(lives: &[LifeRow], slots: &[SlotRow], seals: &[SealRow]) -> Vec<(Slot, LifeId)> {
    let mut quotas = Quotas::of(lives, slots.len());
    if quotas.0.is_empty() {
        return Vec::new();
    }
    let takes_slots = |life: LifeId, quotas: &Quotas| quotas.0.contains_key(&life);
    let exists = |life: LifeId| lives.iter().any(|row| row.life == life);
    // The owner of a slot once all moves in progress have ended; `None`: the slot must be assigned.
    let future_owner = |row: &SlotRow, quotas: &Quotas| match (row.life, row.next) {
        (Some(_), Some(next)) if takes_slots(next, quotas) => Some(next),
        (Some(life), _) if takes_slots(life, quotas) => Some(life),
        _ => None,
    };
    for row in slots {
        if let Some(life) = future_owner(row, &quotas) {
            quotas.assign(life);
        }
    }
    let mut assignments = Vec::new();
    for row in slots {
        // The heir decides about the slots of an ended life.
        let is_orphaned = row.life.is_some_and(|life| !exists(life));
        if future_owner(row, &quotas).is_none() && !is_orphaned {
            let life = quotas.neediest();
            quotas.assign(life);
            assignments.push((row.slot, life));
        }
    }
    let is_moving = slots.iter().any(|row| row.next.is_some());
    if assignments.is_empty() && !is_moving && seals.is_empty() && quotas.are_unbalanced() {
        for row in slots {
            if assignments.len() == MOVES_MAX {
                break;
            }
            if let Some(life) = row.life
                && let Some(to) = quotas.move_from(life)
            {
                assignments.push((row.slot, to));
            }
        }
    }
    assignments
}

/// For each life that takes slots: its target number of slots, and its current one.
struct Quotas(BTreeMap<LifeId, Quota>);

#[derive(Clone, Copy, Debug, Default)]
struct Quota {
    target: usize,
    current: usize,
}

impl Quotas {
    /// Shares in proportion to processors, by the Webster/Sainte-Laguë method: slots are assigned one by one, each to
    /// the life with the highest ratio of processors to twice its slots plus one. With this rounding, no life's share
    /// grows when another joins.
    fn of(lives: &[LifeRow], slot_count: usize) -> Self {
        let cores = |life: &LifeRow| u64::try_from(life.cores).unwrap_or(1).max(1);
        let mut candidates: Vec<_> =
            lives.iter().filter(|life| !life.draining).map(|life| (life.life, cores(life), 0)).collect();
        candidates.sort_by_key(|(life, ..)| *life);
        for _ in 0..slot_count {
            let next = candidates.iter_mut().reduce(|best, other| {
                let (_, best_cores, best_target) = *best;
                let (_, other_cores, other_target) = *other;
                let is_better = other_cores * (2 * best_target + 1) > best_cores * (2 * other_target + 1);
                if is_better { other } else { best }
            });
            next.into_iter().for_each(|(_, _, target)| *target += 1);
        }
        let target = |slots| usize::try_from(slots).unwrap_or(usize::MAX);
        Self(
            candidates
                .into_iter()
                .map(|(life, _, slots)| (life, Quota { target: target(slots), current: 0 }))
                .collect(),
        )
    }

    fn assign(&mut self, life: LifeId) {
        self.0.entry(life).or_default().current += 1;
    }

    /// The life with the greatest deficit.
    fn neediest(&self) -> LifeId {
        let deficit = |quota: &Quota| (quota.target as i64 - quota.current as i64, quota.target);
        let max = self.0.iter().max_by_key(|(life, quota)| (deficit(quota), std::cmp::Reverse(**life)));
        max.map_or(LifeId::new(0), |(life, _)| *life)
    }

    fn are_unbalanced(&self) -> bool {
        self.0.values().any(|quota| quota.current.abs_diff(quota.target) * 100 > quota.target * IMBALANCE_PERCENT)
    }

    /// Moves one slot from a life above its share to the one with the greatest deficit, if there are such lives.
    fn move_from(&mut self, life: LifeId) -> Option<LifeId> {
        let from = self.0.get(&life).filter(|quota| quota.current > quota.target).copied();
        let to = self.neediest();
        let has_deficit = self.0.get(&to).is_some_and(|quota| quota.current < quota.target);
        from.filter(|_| has_deficit && to != life)?;
        self.0.entry(life).and_modify(|quota| quota.current -= 1);
        self.assign(to);
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

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
            protocol_version: 1,
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

    /// The rows once a plan is written and its moves have ended.
    fn carry_out(slots: &[SlotRow], plan: &[(Slot, LifeId)]) -> Vec<SlotRow> {
        let mut slots = slots.to_vec();
        for (slot, to) in plan {
            let row = &mut slots[slot.index()];
            match row.life {
                None => (row.life, row.next) = (Some(*to), None),
                Some(_) => row.next = Some(*to).filter(|to| Some(*to) != row.life),
            }
        }
        for row in &mut slots {
            row.life = row.next.take().or(row.life);
        }
        slots
    }

    fn slots_per_life(slots: &[SlotRow]) -> BTreeMap<Option<i64>, usize> {
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
        fn from_any_state_slots_are_divided_evenly_among_the_lives_that_take_slots(
            lives in lives(),
            owners in prop::collection::vec((0..8_i64, 0..8_i64), usize::from(SLOTS)),
        ) {
            let existing = |number: i64| Some(number).filter(|number| (1..=lives.len() as i64).contains(number));
            let mut slots = rows(|number| {
                let (life, next) = owners[usize::from(number)];
                (existing(life), existing(next).filter(|next| existing(life).is_some() && *next != life))
            });
            let candidates: Vec<_> = lives.iter().filter(|life| !life.draining).collect();
            let mut rounds = 0;
            loop {
                let plan = plan(&lives, &slots, &[]);
                prop_assert!(plan.iter().all(|(_, to)| candidates.iter().any(|candidate| candidate.life == *to)));
                let is_settled = plan.is_empty() && slots.iter().all(|row| row.next.is_none());
                if is_settled {
                    break;
                }
                slots = carry_out(&slots, &plan);
                rounds += 1;
                prop_assert!(rounds <= 2 + usize::from(SLOTS) / MOVES_MAX + lives.len(), "the slots still move");
            }
            let cores = candidates.iter().map(|life| life.cores as usize).sum();
            if let Some(cores) = NonZero::<usize>::new(cores) {
                let counts = slots_per_life(&slots);
                for candidate in &candidates {
                    let share = usize::from(SLOTS) * candidate.cores as usize / cores;
                    let count = counts.get(&Some(candidate.life.get())).copied().unwrap_or_default();
                    prop_assert!(count.abs_diff(share) <= share / 10 + 2, "{count} slots for a share of {share}");
                }
                prop_assert!(slots.iter().all(|row| candidates.iter().any(|life| row.life == Some(life.life))));
            }
        }

        #[test]
        fn only_as_many_slots_move_as_needed(cores in prop::collection::vec(1..16_i32, 1..7)) {
            let lives: Vec<_> = cores.iter().zip(1..).map(|(cores, number)| life(number, *cores, false)).collect();
            let unassigned = rows(|_| (None, None));
            let mut slots = carry_out(&unassigned, &plan(&lives, &unassigned, &[]));
            prop_assert!(plan(&lives, &slots, &[]).is_empty(), "balanced slots stay");
            let lives_with_new: Vec<_> = lives.iter().cloned().chain([life(100, cores[0], false)]).collect();
            let share = usize::from(SLOTS) * cores[0] as usize / (cores.iter().sum::<i32>() + cores[0]) as usize;
            let slots_before = slots.clone();
            loop {
                let plan = plan(&lives_with_new, &slots, &[]);
                if plan.is_empty() {
                    break;
                }
                prop_assert!(plan.len() <= MOVES_MAX);
                slots = carry_out(&slots, &plan);
            }
            let moved = slots.iter().zip(&slots_before).filter(|(row, before)| row.life != before.life).count();
            prop_assert!(moved <= share + 2, "{moved} moved for a share of {share}");
            let new_life = Some(LifeId::new(100));
            let mut pairs = slots.iter().zip(&slots_before);
            prop_assert!(pairs.all(|(row, before)| row.life == before.life || row.life == new_life));
        }
    }

    #[test]
    fn a_new_life_waits_while_slots_move_or_are_taken_over() {
        let lives = [life(1, 4, false), life(2, 4, false)];
        let all_of_one = rows(|_| (Some(1), None));
        assert_eq!(plan(&lives, &all_of_one, &[]).len(), MOVES_MAX);
        let sealed_at = DateTime::UNIX_EPOCH;
        let seal = SealRow { life: LifeId::new(9), heir: LifeId::new(1), sealed_at, done: true };
        assert_eq!(plan(&lives, &all_of_one, &[seal]).len(), 0, "another life was taken over a moment ago");
        let moving = rows(|number| (Some(1), (number == 5).then_some(2)));
        assert_eq!(plan(&lives, &moving, &[]).len(), 0, "a slot already moves");
    }

    #[test]
    fn slots_of_an_ended_life_are_reserved_for_its_heir() {
        let lives = [life(1, 4, false)];
        assert!(plan(&lives, &rows(|_| (Some(9), None)), &[]).is_empty());
        assert_eq!(plan(&lives, &rows(|_| (None, None)), &[]).len(), usize::from(SLOTS));
        assert!(plan(&[life(1, 4, true)], &rows(|_| (Some(1), None)), &[]).is_empty(), "the only life is draining");
        assert!(plan(&[], &rows(|_| (None, None)), &[]).is_empty());
    }
}
