//! The sides that are compared, and their rounds.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::dev::SystemRunner;
use actix::{Actor, Addr, Arbiter};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Throughput};
use hotline_persistence::tables::contacts::ContactRef;

use crate::bare::{Ask, Bare};
use crate::callers::Callers;
use crate::case::{Case, IN_FLIGHT_MAX, Kind};
use crate::live::{self, Live};
use crate::plain::Plain;
use crate::slot::Slot;
use crate::support::{self, Company};

/// Tickets of each caller in a round of plain transactions: with all of them, a round would take 15 seconds.
const PLAIN_TICKETS_PER_CALLER: usize = 2;

/// Names of sides.
pub const BARE: &str = "bare_mailbox";
pub const PLAIN: &str = "plain_transactions";

/// A side of the comparison, with the lanes of its callers.
pub enum Side {
    Bare { lanes: Vec<Vec<Addr<Bare>>> },
    Executor { executor: Executor, lanes: Vec<Vec<Slot>> },
}

/// What carries out commands.
#[derive(Clone)]
pub enum Executor {
    Live(Arc<Live>),
    Plain(Arc<Plain>),
}

impl Executor {
    fn name(&self) -> &'static str {
        match self {
            Self::Live(_) => live::NAME,
            Self::Plain(_) => PLAIN,
        }
    }

    fn company(&self) -> &Company {
        match self {
            Self::Live(live) => &live.company,
            Self::Plain(plain) => &plain.company,
        }
    }

    /// Carries out one command.
    async fn ask(&self, slot: &mut Slot, kind: Kind) {
        match self {
            Self::Live(live) => live.ask(slot, kind).await,
            Self::Plain(plain) => plain.ask(slot, kind).await,
        }
    }

    /// Waits until the tables have everything.
    async fn settle(&self) {
        if let Self::Live(live) = self {
            support::drain(&live.store.log).await;
        }
    }
}

impl Side {
    pub fn bare(case: &Case, arbiters: &[Arbiter]) -> Self {
        let start = |arbiter: &Arbiter| Bare::start_in_arbiter(&arbiter.handle(), |_| Bare { answered: 0 });
        let actors: Vec<_> = arbiters.iter().cycle().take(case.tickets).map(start).collect();
        let lane = |lane: Vec<usize>| lane.into_iter().map(|ticket| actors[ticket].clone()).collect();
        Self::Bare { lanes: case.lanes().into_iter().map(lane).collect() }
    }

    /// Brings tickets of these contacts to the start of the case: callers begin at different commands of the cycle.
    pub async fn prepared(case: &Case, executor: Executor, contacts: Range<usize>, callers: &Callers) -> Self {
        let slot = |contact: &Arc<ContactRef>| Slot { contact: contact.clone(), ticket: None, next: 0 };
        let slots: Vec<Slot> = executor.company().contacts[contacts].iter().map(slot).collect();
        let unprepared = slots.chunks(case.tickets.div_ceil(IN_FLIGHT_MAX)).map(<[Slot]>::to_vec).collect();
        let (prepare, for_callers) = (case.prepare, executor.clone());
        let prepared = callers.walk(unprepared, move |mut lane: Vec<Slot>| async move {
            for slot in &mut lane {
                for kind in prepare {
                    for_callers.ask(slot, *kind).await;
                }
            }
            lane
        });
        let slots: Vec<Slot> = prepared.await.into_iter().flatten().collect();

        let tickets_max = if matches!(executor, Executor::Plain(_)) { PLAIN_TICKETS_PER_CALLER } else { usize::MAX };
        let lane = |lane: Vec<usize>| lane.into_iter().take(tickets_max).map(|ticket| slots[ticket].clone()).collect();
        let lanes: Vec<Vec<Slot>> = case.lanes().into_iter().map(lane).collect();
        let numbered = lanes.into_iter().enumerate().collect();
        let (cycle, for_callers) = (case.cycle, executor.clone());
        let lanes = callers.walk(numbered, move |(caller, mut lane): (usize, Vec<Slot>)| async move {
            for slot in &mut lane {
                for kind in &cycle[..caller % cycle.len()] {
                    for_callers.ask(slot, *kind).await;
                    slot.next += 1;
                }
            }
            (caller, lane)
        });
        let lanes = lanes.await.into_iter().map(|(_, lane)| lane).collect();
        executor.settle().await;
        Self::Executor { executor, lanes }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Bare { .. } => BARE,
            Self::Executor { executor, .. } => executor.name(),
        }
    }

    /// Commands in one round.
    pub fn commands(&self, case: &Case) -> u64 {
        let tickets = match self {
            Self::Bare { lanes } => lanes.iter().map(Vec::len).sum::<usize>(),
            Self::Executor { lanes, .. } => lanes.iter().map(Vec::len).sum(),
        };
        (tickets * case.cycles * case.cycle.len()) as u64
    }

    pub fn bench(
        &mut self,
        group: &mut BenchmarkGroup<'_, WallTime>,
        case: &Case,
        system: &SystemRunner,
        callers: &Callers,
    ) {
        group.throughput(Throughput::Elements(self.commands(case)));
        group.bench_function(BenchmarkId::new(self.name(), case.tickets), |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| system.block_on(self.round(case, callers))).sum());
        });
    }

    /// The time of one round.
    pub async fn round(&mut self, case: &Case, callers: &Callers) -> Duration {
        match self {
            Self::Bare { lanes } => {
                let asks = case.cycles * case.cycle.len();
                let started = Instant::now();
                *lanes = callers
                    .walk(std::mem::take(lanes), move |lane: Vec<Addr<Bare>>| async move {
                        for _ in 0..asks {
                            for actor in &lane {
                                actor.send(Ask).await.expect("the actor answers");
                            }
                        }
                        lane
                    })
                    .await;
                started.elapsed()
            }
            Self::Executor { executor, lanes } => {
                let (cycle, times) = (case.cycle, case.cycles * case.cycle.len());
                let for_callers = executor.clone();
                let started = Instant::now();
                *lanes = callers
                    .walk(std::mem::take(lanes), move |mut lane: Vec<Slot>| async move {
                        for _ in 0..times {
                            for slot in &mut lane {
                                for_callers.ask(slot, cycle[slot.next % cycle.len()]).await;
                                slot.next += 1;
                            }
                        }
                        lane
                    })
                    .await;
                let time = started.elapsed();
                executor.settle().await;
                time
            }
        }
    }
}
